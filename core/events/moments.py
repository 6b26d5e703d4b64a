"""The one reader of times: a value of any type, or an array of numpy, as microseconds UTC.

A time is a datetime or a date of Python, a `datetime64` of numpy, a `Timestamp` of pandas or of Beam, a text,
or a number in a unit. A time without a zone is in UTC. A date is the begin of its day. Fractions of a
microsecond are cut off.

A `Period` of pandas is a span of time, not a moment. The package never reads a Period as a time, because its
begin and its end are equally likely. `PERIOD_REMEDY` says what the user can do.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import Int64Array
from .numbers import INTEGER, number
from .times import (
    AFTER_LAST_TIME,
    FIRST_TIME,
    NO_TIME,
    PER_SECOND,
    from_float_ticks,
    from_ticks,
    micros_of,
    scaled,
)

PERIOD_REMEDY = "a Period is a span of time and no moment; give its begin with .to_timestamp()"

_UNIX_EPOCH_DAY = 719_163
_INSTANT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[Tt ]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?)?"
    r"(?:([Zz])|([+-])([0-9]{2})(?::?([0-9]{2})(?::([0-9]{2}))?)?)?)?"
)


def is_period(value: object) -> bool:
    """Return whether a value is a Period of pandas, or the `repr` of a Period."""
    return type(value).__name__ == "Period" or (isinstance(value, str) and value.startswith("Period('"))


def beam_micros(value: object) -> int | None:
    """Return the microseconds of a `Timestamp` of Beam; None for any other value."""
    micros = getattr(value, "micros", None) if type(value).__name__ == "Timestamp" else None
    return micros if isinstance(micros, int) else None


def instant(value: object, unit: str = "s") -> int | None:
    """Return a moment as microseconds UTC; None for a value that is no moment in the years 1 to 9999.

    Text is RFC 3339 (no zone: UTC; seconds, or minutes and seconds, may be absent), a date, or a number;
    a number counts `unit`s since 1970. Fractions of a microsecond are cut off.

    >>> instant("1970-01-01T01:00:00.000001+01:00"), instant("2", "ms"), instant("soon")
    (1, 2000, None)
    """
    if isinstance(value, np.generic):
        if isinstance(value, np.datetime64):
            micros = int(datetime64_micros(np.array([value]))[0])
            return None if micros == NO_TIME else micros
        if isinstance(value, np.timedelta64):
            return None
        value = value.item()
    moment: int | None = None
    if isinstance(value, date):
        moment = micros_of(value) if value == value else None  # NaT of pandas is a date, unequal to itself
    elif isinstance(value, str) and INTEGER.fullmatch(text := value.strip()) and len(text) < 40:
        moment = scaled(int(text), unit)
    elif isinstance(value, int) and not isinstance(value, bool):
        moment = scaled(value, unit)
    elif isinstance(value, Decimal) and _is_whole(value):
        moment = scaled(int(value), unit)
    elif (ticks := number(value)) is not None:
        if abs(ticks) < AFTER_LAST_TIME * 1_000.0:
            moment = int(from_float_ticks(np.array([ticks]), unit)[0])
    elif isinstance(value, str) and (match := _INSTANT.fullmatch(value.strip())):
        moment = _from_parts(match)
    else:
        moment = beam_micros(value)
    return moment if moment is not None and FIRST_TIME <= moment < AFTER_LAST_TIME else None


def _is_whole(value: Decimal) -> bool:
    """Return whether a decimal is a whole number below 1e25, which a float64 might round."""
    return value.is_finite() and abs(value) < 10**25 and value % 1 == 0


def _from_parts(match: re.Match[str]) -> int | None:
    year, month, day, hour, minute, second, fraction, _, sign, *ahead = match.groups()
    try:
        days = date(int(year), int(month), int(day)).toordinal() - _UNIX_EPOCH_DAY
    except ValueError:
        return None
    h, m, s = int(hour or 0), int(minute or 0), int(second or 0)
    zone_h, zone_m, zone_s = (int(part or 0) for part in ahead)  # zones of years before 1900 have seconds
    if h > 23 or m > 59 or s > 60 or zone_h > 23 or zone_m > 59 or zone_s > 59:  # 60: a leap second
        return None
    zone = (zone_h * 3600 + zone_m * 60 + zone_s) * (-1 if sign == "-" else 1)
    micros = int((fraction or "0")[:6].ljust(6, "0"))
    return (days * 86_400 + h * 3600 + m * 60 + s - zone) * 1_000_000 + micros


def datetime64_micros(array: npt.NDArray[Any]) -> Int64Array:
    """Read an array of `datetime64` of any unit, int64[n] microseconds UTC.

    NO_TIME for NaT, and for a time outside the years 1 to 9999. numpy's own conversion wraps: the year
    300000 in seconds has no microseconds in int64.
    """
    known = ~np.isnat(array)
    unit, count = np.datetime_data(array.dtype)
    if count == 1 and unit in PER_SECOND:
        return from_ticks(array.astype(np.int64), unit, known)
    if unit not in ("ns", "ps", "fs", "as"):  # in units finer than a microsecond, int64 holds few years
        least, end = (np.datetime64(time, "us").astype(array.dtype) for time in (FIRST_TIME, AFTER_LAST_TIME))
        known &= (array >= least) & (array < end)
        array = np.where(known, array, least)
    return from_ticks(array.astype("M8[us]").astype(np.int64), "us", known)
