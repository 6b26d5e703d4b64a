"""The periods of time, such as `2026-01-01..2026-02-01`, that rules and references name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from ..errors import ConfigError

REMEDY_PERIOD = "give two times, the earlier one first, such as 2013-01-01..2013-02-01"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTH = re.compile(r"\d{4}-\d{2}")


@dataclass(frozen=True)
class Period:
    """A period of time, from `start` to before `end`, both in microseconds UTC.

    >>> str(Period(0, 86_400_000_000)), str(Period(0, 5_400_000_000))
    ('1970-01-01..1970-01-02', '1970-01-01..1970-01-01T01:30:00Z')
    """

    start: int
    end: int
    unit: ClassVar = "time"

    def __post_init__(self) -> None:
        try:
            text = str(self)
        except OverflowError:  # RFC 3339 has the years 1 to 9999
            text = ""
        if not text or self.start > self.end:
            raise ConfigError(f"a period from {self.start} to {self.end} microseconds; {REMEDY_PERIOD}")
        if self.start == self.end:
            raise ConfigError(f"nothing is in the period {text}; {REMEDY_PERIOD}")

    def __str__(self) -> str:
        ends = (_EPOCH + timedelta(microseconds=end) for end in (self.start, self.end))
        texts = (f"{end.replace(tzinfo=None).isoformat()}Z" for end in ends)
        return "..".join(text.removesuffix("T00:00:00Z") for text in texts)


def parse_period(text: str) -> Period:
    """Read a period, START..END, from RFC 3339 times, dates or months; without a zone they are UTC.

    Raises ConfigError for any other text.

    >>> str(parse_period("2026-01..2026-02")), str(parse_period("2026-01-01T02:00+02:00..2026-01-03"))
    ('2026-01-01..2026-02-01', '2026-01-01..2026-01-03')
    """
    start, _, end = text.partition("..")
    first, last = _time(start, text), _time(end, text)
    if last < first:
        raise ConfigError(f"against {text}: it ends before it starts; {REMEDY_PERIOD}")
    return Period(first, last)


def _time(text: str, period: str) -> int:
    try:
        time = datetime.fromisoformat(f"{text}-01" if _MONTH.fullmatch(text) else text)
    except ValueError:
        raise ConfigError(f"against {period}: {text!r} is no time; {REMEDY_PERIOD}") from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return (time - _EPOCH) // timedelta(microseconds=1)
