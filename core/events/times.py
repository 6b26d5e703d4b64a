"""Times given as numbers: conversion from a unit, and a check for numbers that look like another unit.

A number of a unit counts from 1970-01-01T00:00:00Z. The package represents every time as a whole number of
microseconds.

When numbers are doubtful
    More than half of the times are dated before 1990 or after 2100, and lie 10 million or further from 0.
    Units differ by a factor of 1,000, while the number for the year 2100 is only 7 times the number for 1990.
    So a time of the years 1990 to 2100 that is read in a wrong unit always falls outside these years: seconds
    read as microseconds put 90 days into 8 seconds of January 1970. `20240102` read as seconds is a day of
    August 1970. Smaller numbers are not doubted: they are counters (0, 1, 2, ...) or times since a start, not
    dates.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import NO_TIME as NO_TIME
from ..arrays import FloatArray, Int64Array
from ..errors import ConfigError, InputError

END_OF_TIME = 2**63 - 1
"""The time of the clock after the input has ended."""

IDLE = END_OF_TIME - 1
"""The `settled` of a heartbeat of an idle partition: the clock does not wait for this partition until it
sends events again."""

ADDED = END_OF_TIME - 2
"""The `settled` of a heartbeat that says no time, but names a source that was added to its partition while
the job ran. The partition's packets hold events of that source, too.
"""

PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""The number of ticks of each time unit in a second."""

FARTHEST = 2**61
"""Microseconds, 70,000 years. Times of windows, and spans between them, are nearer to 0 than this number, so
that no sum or difference of a few of them overflows."""

FIRST_TIME = -62_135_596_800_000_000
"""0001-01-01T00:00:00Z in microseconds: RFC 3339 has no earlier time."""
AFTER_LAST_TIME = 253_402_300_800_000_000
"""10000-01-01T00:00:00Z in microseconds: RFC 3339 has no time from this moment on."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_START_OF_1990 = 631_152_000_000_000
_END_OF_2100 = 4_133_980_800_000_000
SMALL = 10_000_000
"""Numbers below this are no dates. The least date without dashes since 1990 is 19900101."""

_DIGIT_FORMS = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
"""Formats of dates written as one number, by the number of digits. (10 digits are seconds.)"""


def are_near(times: Int64Array) -> bool:
    """Return whether all times are there and less than 70,000 years from 1970."""
    return not len(times) or bool(times.min() > -FARTHEST and times.max() < FARTHEST)


def check_times(times: Int64Array | None, needs: str, one: str) -> None:
    """Raise InputError if a time is missing, or not `are_near`.

    needs, one  for the message: the setting that needs times, and whose times they are, such as "event"
    """
    if times is not None and are_near(times):
        return
    if times is None or times.min() == NO_TIME:
        raise InputError(f"{needs} needs the time of every {one}; give times= (--time COL)")
    raise InputError(f"{needs}: a time lies more than 70,000 years from 1970; check the unit of the times")


def checked_unit(unit: str, name: str = "time_unit") -> str:
    """Return `unit` if it is a unit of time. Raises ConfigError otherwise."""
    if unit not in PER_SECOND:
        raise ConfigError(f"{name}={unit!r}: give one of {', '.join(PER_SECOND)}")
    return unit


def micros_of(time: date) -> int:
    """Return a datetime, or the begin of a date, as microseconds UTC; without a zone it is in UTC."""
    if not isinstance(time, datetime):
        time = datetime(time.year, time.month, time.day, tzinfo=UTC)
    moment = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (moment - EPOCH) // timedelta(microseconds=1)


def in_range(micros: Int64Array, known: npt.NDArray[np.bool_]) -> Int64Array:
    """Return the times, with NO_TIME for each time that is not `known` or is outside the years 1 to 9999."""
    known &= (micros >= FIRST_TIME) & (micros < AFTER_LAST_TIME)
    return np.where(known, micros, NO_TIME)


def scaled(ticks: Any, unit: str) -> Any:
    """Return one whole number of a unit, or an array of them, as microseconds."""
    return ticks // 1_000 if unit == "ns" else ticks * (1_000_000 // PER_SECOND[unit])


def from_ticks(ticks: Int64Array, unit: str, known: npt.NDArray[np.bool_] | None = None) -> Int64Array:
    """Return whole numbers of a unit as microseconds.

    NO_TIME for a time that is not `known` or is out of range. O(n).
    """
    least, end = (number_of(time, unit) for time in (FIRST_TIME, AFTER_LAST_TIME))
    if known is None:
        if not len(ticks) or (int(ticks.min()) >= least and int(ticks.max()) < end):
            return np.asarray(scaled(ticks, unit))
        known = np.ones(len(ticks), np.bool_)
    known &= (ticks >= least) & (ticks < end)
    return np.where(known, scaled(np.where(known, ticks, 0), unit), NO_TIME)


def from_float_ticks(ticks: FloatArray, unit: str) -> Int64Array:
    """Return numbers of a unit as microseconds; NO_TIME for NaN and for a number out of range. O(n)."""
    per_tick = 1_000_000 / PER_SECOND[unit]
    known = np.abs(ticks) < 1e18 / per_tick  # the product fits into int64; False for NaN
    ticks = np.where(known, ticks, 0.0)
    if unit == "ns":
        return in_range(np.floor(ticks / 1_000).astype(np.int64), known)
    # the fraction is converted by itself: the product of a large number would be rounded
    whole = np.trunc(ticks)
    rest = np.rint((ticks - whole) * per_tick)
    return in_range(whole.astype(np.int64) * int(per_tick) + rest.astype(np.int64), known)


def date_text(micros: int) -> str:
    """Return a time as RFC 3339, without fractions of a second; a midnight as its date alone.

    >>> date_text(1_704_153_600_000_000), date_text(20_240_102_000_000)
    ('2024-01-02', '1970-08-23T06:15:02Z')
    """
    moment = EPOCH + timedelta(seconds=micros // 1_000_000)
    if micros % 86_400_000_000:
        return moment.isoformat().replace("+00:00", "Z")
    return moment.date().isoformat()


class Doubt(NamedTuple):
    """A finding: numbers look like times in another unit than `unit`, in which they are read.

    finding  the finding in words, with one of the numbers, but without the name of the column and a remedy
    other    the unit in which that number is a date of the years 1990 to 2100; None = no unit
    form     the format in which the digits of that number are a date of these years; None = no format
    """

    finding: str
    other: str | None
    form: str | None


def doubt_in(times: Int64Array, unit: str) -> Doubt | None:
    """Return the doubt about times that were given as numbers of `unit`; None if there is no doubt. O(n).

    times  microseconds, none of them NO_TIME

    >>> doubt_in(np.array([20_240_102_000_000]), "s").form
    '%Y%m%d'
    >>> doubt_in(np.array([1_704_153_600_000]), "us").other
    'ms'
    """
    if not len(times) or (times.min() >= _START_OF_1990 and times.max() < _END_OF_2100):
        return None
    small = SMALL * (1_000_000 / PER_SECOND[unit])
    doubtful = ((times < _START_OF_1990) & (np.abs(times) >= small)) | (times >= _END_OF_2100)
    rows = np.flatnonzero(doubtful)
    if 2 * len(rows) <= len(times):
        return None
    micros = int(times[rows[0]])
    example = number_of(micros, unit)
    finding = f"numbers such as {example} are read in {unit}, as {date_text(micros)}"
    return Doubt(finding, likely_unit(example, unit), likely_form(example))


def number_of(micros: int, unit: str) -> int:
    """Return the whole number of `unit` that was read as `micros` microseconds."""
    return micros * 1_000 if unit == "ns" else micros // (1_000_000 // PER_SECOND[unit])


def likely_unit(number: int, unit: str) -> str | None:
    """Return the unit, other than `unit`, in which a number is a time of the years 1990 to 2100.

    None if there is no such unit.

    >>> likely_unit(1_704_067_200, "us"), likely_unit(1_704_067_200_000_000, "s"), likely_unit(7, "s")
    ('s', 'us', None)
    """
    for other, per_second in PER_SECOND.items():
        if other != unit and _START_OF_1990 <= number * 1_000_000 // per_second < _END_OF_2100:
            return other
    return None


def likely_form(number: int) -> str | None:
    """Return the format in which the digits of a number are a date of the years 1990 to 2100.

    None if there is no such format.

    >>> likely_form(20_240_102), likely_form(202_401_022_359), likely_form(20_241_302)
    ('%Y%m%d', '%Y%m%d%H%M', None)
    """
    form = _DIGIT_FORMS.get(len(str(number)))
    if form is None:
        return None
    try:
        return form if 1990 <= datetime.strptime(str(number), form).replace(tzinfo=UTC).year <= 2100 else None
    except ValueError:
        return None
