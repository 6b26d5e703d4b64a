"""Writes moments and numbers as text, in the same form in the report's page and in its sentences."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from unicodedata import combining, east_asian_width

import numpy as np

from ..core.arrays import FloatArray

if TYPE_CHECKING:
    from ..core.compare.comparisons import Checkpoint

DAY = 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

DASH = "\u2013"
"""The text for null in a table."""


def _at(micros: float) -> datetime:
    """Return microseconds UTC as a datetime; outside the years 1 to 9999, the first or last datetime."""
    try:
        return _EPOCH + timedelta(microseconds=int(micros))
    except OverflowError:
        return (datetime.max if micros > 0 else datetime.min).replace(tzinfo=UTC)


def moment(micros: float) -> str:
    """Write microseconds UTC to the minute.

    >>> moment(1380153600_000000.0)
    '26 Sep 2013, 00:00'
    """
    return f"{day(micros)}, {_at(micros):%H:%M}"


def day(micros: float) -> str:
    """Write the day of microseconds UTC.

    >>> day(1380153600_000000.0)
    '26 Sep 2013'
    """
    at = _at(micros)
    return f"{at.day} {_MONTHS[at.month - 1]} {at.year}"


def short_day(micros: float, beside: float) -> str:
    """Write the day of microseconds UTC, without its year if that is the year of the moment `beside`.

    >>> short_day(1380153600_000000.0, 1380157200_000000.0), short_day(1380153600_000000.0, 1e15)
    ('26 Sep', '26 Sep 2013')
    """
    return day(micros).removesuffix(f" {_at(beside).year}")


def stamp(micros: float, *, dates: bool = False) -> str:
    """Write microseconds UTC in the form of a table's cell, to the minute or as a date.

    >>> stamp(1380153600_000000.0), stamp(1380153600_000000.0, dates=True)
    ('2013-09-26 00:00', '2013-09-26')
    """
    return _at(micros).strftime("%Y-%m-%d" if dates else "%Y-%m-%d %H:%M")


def exactly(micros: float) -> str:
    """Write microseconds UTC to the second.

    >>> exactly(1380153601_000000.0)
    '2013-09-26 00:00:01'
    """
    return f"{_at(micros):%Y-%m-%d %H:%M:%S}"


def checkpoint(at: Checkpoint) -> str:
    """Write the place of a checkpoint in a stream: the event's number, and the time if known.

    >>> from rocsteady.core.compare.comparisons import Checkpoint
    >>> checkpoint(Checkpoint(0, 1380153601_000000, 1234))
    'event 1,234, 2013-09-26 00:00:01 UTC'
    """
    text = f"event {at.seq:,}"
    return text if at.time is None else f"{text}, {exactly(at.time)} UTC"


def all_dates(*times: FloatArray) -> bool:
    """Return whether all moments (microseconds UTC, NaN = missing) are midnights, so that hours show nothing.

    >>> all_dates(np.array([1380153600_000000.0, np.nan])), all_dates(np.array([1.0]))
    (True, False)
    """
    return not any((values[np.isfinite(values)] % DAY).any() for values in times)


def span(first: float, last: float, *, dates: bool = False) -> str:
    """Write a span of time in days; within one day in minutes, unless times are dates.

    >>> span(1379203200_000000.0, 1380153600_000000.0)
    'from 15 to 26 Sep 2013'
    >>> span(1380153600_000000.0, 1380157200_000000.0)
    'on 26 Sep 2013 from 00:00 to 01:00'
    """
    one, other = _at(first), _at(last)
    if one.date() == other.date():
        if dates:
            return f"on {day(last)}"
        clock = [f"{at:%H:%M}" for at in (one, other)]
        return f"on {day(last)} " + (
            f"at {clock[0]}" if clock[0] == clock[1] else f"from {clock[0]} to {clock[1]}"
        )
    begun = day(first)
    if one.year == other.year:
        begun = str(one.day) if one.month == other.month else f"{one.day} {_MONTHS[one.month - 1]}"
    return f"from {begun} to {day(last)}"


def share(value: float) -> str:
    """Write a level in percent.

    >>> share(0.95), share(0.999)
    ('95%', '99.9%')
    """
    return f"{100 * value:.6g}%"


def number(value: float | None, digits: str) -> str:
    """Write a measure; `digits` is "rank", "share", "score" or "count". None and NaN are a dash.

    >>> number(0.71154, "rank"), number(0.71154, "share"), number(1234.0, "count"), number(25.131177, "score")
    ('0.712', '0.7115', '1,234', '25.131')
    """
    if value is None or math.isnan(value):
        return DASH
    if math.isinf(value):
        return "\u221e" if value > 0 else "\u2212\u221e"
    if digits == "count":
        text = f"{value:,.0f}" if value == round(value) else f"{value:,.2f}"
    elif digits in ("rank", "share"):
        text = f"{value:.3f}" if digits == "rank" else f"{value:.4f}"
        text = text.lstrip("-") if float(text) == 0 else text
    else:
        text = f"{value:.5g}"
    return text.replace("-", "\u2212") if value < 0 else text


def p_value(p: float | None) -> str:
    """Write a p-value with three decimals, a small p-value with four; None is a dash.

    >>> p_value(0.0488), p_value(0.00098), p_value(1e-9), p_value(1.0), p_value(None)
    ('0.049', '0.0010', '<0.0001', '1', '–')
    """
    if p is None:
        return DASH
    if p < 0.0001:
        return "<0.0001"
    return "1" if p == 1 else f"{p:.3f}" if p >= 0.001 else f"{p:.4f}"


def with_interval(value: float, low: float, high: float) -> str:
    """Write an AUC and its interval; an unknown AUC is a dash, and an unknown interval is left out.

    >>> with_interval(0.71154, 0.7, 0.72263), with_interval(0.7, np.nan, np.nan)
    ('0.712 [0.700, 0.723]', '0.700')
    """
    if math.isnan(value):
        return DASH
    known = not math.isnan(low) and not math.isnan(high)
    return f"{value:.3f}" + (f" [{low:.3f}, {high:.3f}]" if known else "")


def counted(count: int, noun: str) -> str:
    """Write a count and its noun, in the plural except for 1.

    >>> counted(1, "row"), counted(1995, "row")
    ('1 row', '1,995 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def letters(text: str) -> int:
    """Return the width of a text in letters.

    A wide letter, such as a Chinese one, counts two, a combining mark none.

    >>> letters("abc"), letters("\u6f22\u5b57"), letters("e\u0301")
    (3, 4, 1)
    """
    return sum(2 if east_asian_width(letter) in "WF" else 0 if combining(letter) else 1 for letter in text)
