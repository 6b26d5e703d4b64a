"""Durations: their spellings, such as `7d`, `90m` or `0.5s`, and their lengths in whole microseconds."""

from __future__ import annotations

import numbers
import re
import sys
from datetime import timedelta
from decimal import Decimal
from typing import Any

from ..errors import ConfigError

Duration = str | float | timedelta
"""A duration: a text such as "7d", "90m" or "0.5s"; a number of seconds; or a timedelta."""

_UNITS = {
    "d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1,
}  # fmt: skip
_DURATION = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)(us|ms|s|m|h|d)")

LONGEST = 2**61
"""Every duration is below this many microseconds: 73,000 years."""


def is_numpy_duration(value: Any) -> bool:
    """Return whether a value is a `numpy.timedelta64`, which `numbers` takes for a whole number.

    The function does not import the class, because numpy takes long to import and `--help` does not need it.
    """
    return getattr(getattr(value, "dtype", None), "kind", None) == "m"


def is_positive(value: Any) -> bool:
    """Return whether a value is a number above 0 that a float can hold."""
    if isinstance(value, bool) or is_numpy_duration(value):
        return False
    positive = isinstance(value, numbers.Real)
    return positive and bool(0 < value <= sys.float_info.max)


def microseconds(duration: Duration, what: str) -> int:
    """Return a duration in whole microseconds.

    Raises ConfigError, with `what` as the setting's name, for a duration that is not above 0.

    >>> microseconds("7d", "window"), microseconds(0.5, "window")
    (604800000000, 500000)
    """
    remedy = "a duration is a number of seconds above 0, or a text such as '7d', '12h', '30m' or '0.5s'"
    # a text is read as on a command line, where '5' is no duration: a unit is needed
    if isinstance(duration, str):
        remedy = "give a number and its unit (us, ms, s, m, h, d), such as '7d', '12h', '30m' or '0.5s'"
    if isinstance(duration, timedelta):
        micros = duration // timedelta(microseconds=1)
    elif isinstance(duration, str):
        found = _DURATION.fullmatch(duration.strip())
        if found is None:
            if duration.strip().replace(".", "", 1).isdecimal():
                remedy += f"; {duration.strip()} seconds are '{duration.strip()}s'"
            raise ConfigError(f"{what}: {duration!r} is no duration; {remedy}")
        micros = int(Decimal(found[1]) * _UNITS[found[2]])
    elif is_positive(duration) and float(duration) < LONGEST:
        micros = round(Decimal(float(duration)) * 1_000_000)
    else:
        raise ConfigError(f"{what}: {duration!r} is no duration; {remedy}")
    if not 0 < micros < LONGEST:
        raise ConfigError(f"{what}: {duration!r} is no duration from 1 microsecond to 73,000 years; {remedy}")
    return micros


def duration_text(micros: int) -> str:
    """Return the text of a duration, in the largest unit of which the duration is a whole number.

    >>> duration_text(604_800_000_000), duration_text(5_400_000_000), duration_text(250_000), duration_text(0)
    ('7d', '90m', '250ms', '0s')
    """
    if not micros:
        return "0s"
    unit, size = next((unit, size) for unit, size in _UNITS.items() if micros % size == 0)
    return f"{micros // size}{unit}"


def parse_lateness(text: str, what: str = "lateness") -> int:
    """Read how late an event may come: a duration, or 0. Returns microseconds.

    what  the name of the duration in errors

    >>> parse_lateness("10m"), parse_lateness("0s"), parse_lateness("0")
    (600000000, 0, 0)
    """
    found = _DURATION.fullmatch(text.strip())
    if text.strip() == "0" or (found is not None and not Decimal(found[1])):
        return 0
    return microseconds(text, what)


def lateness_of(duration: Duration, what: str) -> int:
    """Return a duration in whole microseconds, where 0 is allowed; raises as `microseconds` does.

    >>> lateness_of(0, "stale"), lateness_of("0s", "stale"), lateness_of(timedelta(minutes=1), "stale")
    (0, 0, 60000000)
    """
    if isinstance(duration, str):
        return parse_lateness(duration, what)
    if duration == timedelta(0) or (duration == 0 and not isinstance(duration, bool)):
        return 0
    return microseconds(duration, what)
