"""Which events count, and when a row is due: windows and emissions, frozen, and checked when made.

Each has one spelling, the command line's (`last:10000`, `last:7d`, `fading:7d`, ...): `str()` writes it and
`parse_window`, `parse_every` read it. Durations are whole microseconds.
"""

from __future__ import annotations

import numbers
import re
import sys
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, ClassVar, Literal, get_args

from ..errors import ConfigError

Duration = str | float | timedelta
"""A text such as "7d", "90m" or "0.5s"; a number of seconds; or a timedelta."""

Signal = Literal["placement", "error", "brier"]

ADAPTIVE_EVENTS = 2_000_000
"""Most events in an adaptive window: where nothing changes it would grow for ever."""

_UNITS = {
    "d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1,
}  # fmt: skip
_DURATION = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)(us|ms|s|m|h|d)")
LONGEST = 2**61
"""Microseconds, that every duration stays below: 73,000 years."""


def is_count(value: Any) -> bool:
    """Return whether a value is a whole number, 1 or more, that a counter can hold; numpy's are, too."""
    if isinstance(value, bool):
        return False
    return isinstance(value, numbers.Integral) and 1 <= int(value) < 2**62


def is_positive(value: Any) -> bool:
    """Return whether a value is a number above 0 that a float can hold."""
    positive = type(value) is not bool and isinstance(value, numbers.Real)
    return positive and bool(0 < value <= sys.float_info.max)


def microseconds(duration: Duration, what: str) -> int:
    """Return a duration in whole microseconds. Raises ConfigError, which names `what`, unless it is above 0.

    >>> microseconds("7d", "window"), microseconds(0.5, "window")
    (604800000000, 500000)
    """
    remedy = "a duration is a number of seconds above 0, or a text such as '7d', '12h', '30m' or '0.5s'"
    if isinstance(duration, str):  # of a command line, where '5' is no number of seconds
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
    """Write a duration in the largest unit of which it is a whole number.

    >>> duration_text(604_800_000_000), duration_text(5_400_000_000), duration_text(250_000), duration_text(0)
    ('7d', '90m', '250ms', '0s')
    """
    if not micros:
        return "0s"
    unit, size = next((unit, size) for unit, size in _UNITS.items() if micros % size == 0)
    return f"{micros // size}{unit}"


@dataclass(frozen=True)
class LastEvents:
    """The window of the last k events of a (model, slice).

    >>> str(LastEvents(10_000))
    'last:10000'
    """

    k: int = 10_000
    by_time: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not is_count(self.k):
            raise ConfigError(f"LastEvents(k={self.k!r}): a window holds a whole number of events, 1 or more")
        object.__setattr__(self, "k", int(self.k))

    def __str__(self) -> str:
        return f"last:{self.k}"


@dataclass(frozen=True)
class LastDuration:
    """The window of the events with a time in (t - duration, t], t the greatest time applied.

    Events may come in any order of time: they leave in the order of their times, and one that comes when
    its time has left the window already counts in `seq` alone. In order of time an event costs O(1) beyond
    its ranking; one that comes late moves those behind it, O(their number).

    duration  "7d", a number of seconds, or a timedelta; kept in whole microseconds as `micros`

    >>> str(LastDuration("7d")), LastDuration(3600).micros
    ('last:7d', 3600000000)
    """

    duration: Duration
    by_time: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "duration", duration_text(microseconds(self.duration, "LastDuration")))

    @property
    def micros(self) -> int:
        """The duration in microseconds."""
        return microseconds(self.duration, "LastDuration")

    def __str__(self) -> str:
        return f"last:{self.duration}"


@dataclass(frozen=True)
class Fading:
    """All events, each weighing half as much after every half-life: exponential decay, exact.

    half_life  a whole number of events, or a duration: "7d" or a timedelta

    Events whose weight has fallen to 2^-53 of the mass of their own class are dropped; that changes AUC by
    less than 2^-53 (2.9 T + 2), 3e-12 for half-lives of T = 10,000 events. So it holds 40 to 50 half-lives.
    (docs/windows.md has the method and its proof.) State: some 40 T events, or as many as come in that time.

    >>> str(Fading(10_000)), str(Fading("7d"))
    ('fading:10000', 'fading:7d')
    """

    half_life: int | str | timedelta

    def __post_init__(self) -> None:
        value: Any = self.half_life
        if isinstance(value, str | timedelta) and not (isinstance(value, str) and value.isdecimal()):
            object.__setattr__(self, "half_life", duration_text(microseconds(value, "Fading(half_life)")))
            return
        events = int(value) if isinstance(value, str) else value
        if not is_count(events) or events >= 2**31:
            raise ConfigError(
                f"Fading(half_life={value!r}): a half-life is a whole number of events, 1 to 2147483647, "
                "or a duration such as '7d'"
            )
        object.__setattr__(self, "half_life", int(events))

    @property
    def by_time(self) -> bool:
        """Whether weights fall with time, not with events."""
        return isinstance(self.half_life, str)

    @property
    def ticks(self) -> int:
        """The half-life in events, or in microseconds."""
        if isinstance(self.half_life, int):
            return self.half_life
        return microseconds(self.half_life, "Fading(half_life)")

    def __str__(self) -> str:
        return f"fading:{self.half_life}"


@dataclass(frozen=True)
class Adaptive:
    """The window that shrinks when its signal changes: ADWIN (Bifet & Gavalda 2007), over one signal.

    delta   nominal chance of a false alarm, in (0, 1). Nominal: the values are not independent
    signal  "placement": how well each event of the rarer class is placed among the other class, whose mean
            is the AUC; "error": of the decision at the threshold; "brier": squared error of a probability

    When ADWIN drops what is older than a change, the one window of all measures drops it too, and the next
    row says `drift`. It holds at most ADAPTIVE_EVENTS.

    >>> str(Adaptive()), str(Adaptive(0.01, "error"))
    ('adaptive:0.002:placement', 'adaptive:0.01:error')
    """

    delta: float = 0.002
    signal: Signal = "placement"
    by_time: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (is_positive(self.delta) and self.delta < 1):
            raise ConfigError(
                f"Adaptive(delta={self.delta!r}): delta is a chance of false alarms, between 0 and 1"
            )
        object.__setattr__(self, "delta", float(self.delta))
        if self.signal not in get_args(Signal):
            raise ConfigError(f"Adaptive(signal={self.signal!r}): give 'placement', 'error' or 'brier'")

    def __str__(self) -> str:
        return f"adaptive:{self.delta!r}:{self.signal}"


@dataclass(frozen=True)
class AllEvents:
    """The window that holds every event since the beginning. Memory grows with the stream.

    >>> str(AllEvents())
    'all'
    """

    by_time: ClassVar[bool] = False

    def __str__(self) -> str:
        return "all"


Window = LastEvents | LastDuration | Fading | Adaptive | AllEvents
WINDOWS = get_args(Window)


def parse_window(text: str) -> Window:
    """Read `last:10000`, `last:7d`, `fading:10000`, `fading:7d`, `adaptive[:DELTA[:SIGNAL]]` or `all`.

    >>> parse_window("last:500"), parse_window("adaptive:0.01:error")
    (LastEvents(k=500), Adaptive(delta=0.01, signal='error'))
    """
    kind, _, rest = text.partition(":")
    if text == "all":
        return AllEvents()
    if kind == "last" and rest:
        return LastDuration(rest) if rest[-1].isalpha() else LastEvents(_count(rest, f"window {text!r}"))
    if kind == "fading" and rest:
        return Fading(rest if rest[-1].isalpha() else _count(rest, f"window {text!r}"))
    if kind == "adaptive" and text[-1] != ":":
        delta, _, signal = rest.partition(":")
        chosen: Any = {"signal": signal} if signal else {}
        if delta:
            chosen["delta"] = read_number(delta, f"window {text!r}")
        return Adaptive(**chosen)
    raise ConfigError(
        f"window {text!r} is not known; use last:N (the last N events), last:7d, fading:N, fading:7d, "
        "adaptive[:DELTA[:placement|error|brier]] or all"
    )


@dataclass(frozen=True)
class EveryEvents:
    """A row after every n-th applied event of a (model, slice).

    >>> str(EveryEvents(100))
    '100'
    """

    n: int = 100

    def __post_init__(self) -> None:
        if not is_count(self.n):
            raise ConfigError(
                f"EveryEvents(n={self.n!r}): a row comes every whole number of events, 1 or more"
            )
        object.__setattr__(self, "n", int(self.n))

    def __str__(self) -> str:
        return str(self.n)


@dataclass(frozen=True)
class EverySeconds:
    """A row at every point of a fixed grid of event times, where the window changed since the last one.

    The grid is that of the multiples of the duration since 1970 UTC. A row for the grid point g (its `due`)
    is made when the clock passes it, which is when the first event after g comes: events at g are in it. A
    window by time is then that of g: it may change because time alone went by. Where nothing changed there
    is no row, whatever the silence. An event that comes later than g with a time before it changes no row.

    duration  "1h", a number of seconds, or a timedelta; kept in whole microseconds as `micros`

    >>> str(EverySeconds("1h")), EverySeconds(60).micros
    ('1h', 60000000)
    """

    duration: Duration

    def __post_init__(self) -> None:
        object.__setattr__(self, "duration", duration_text(microseconds(self.duration, "EverySeconds")))

    @property
    def micros(self) -> int:
        """The duration in microseconds."""
        return microseconds(self.duration, "EverySeconds")

    def __str__(self) -> str:
        return str(self.duration)


Emission = EveryEvents | EverySeconds
EMISSIONS = get_args(Emission)


def parse_every(text: str) -> Emission:
    """Read a number of events, or a duration.

    >>> parse_every("100"), parse_every("1h")
    (EveryEvents(n=100), EverySeconds(duration='1h'))
    """
    if text and text[-1].isalpha() and text[0].isdecimal():
        return EverySeconds(text)
    return EveryEvents(_count(text, "every"))


def parse_lateness(text: str) -> int:
    """Read how late an event may come, in microseconds: a duration, or 0.

    >>> parse_lateness("10m"), parse_lateness("0s"), parse_lateness("0")
    (600000000, 0, 0)
    """
    found = _DURATION.fullmatch(text.strip())
    if text.strip() == "0" or (found is not None and not Decimal(found[1])):
        return 0
    return microseconds(text, "lateness")


def _count(text: str, what: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"{what}: {text!r} is not a whole number") from None


def read_number(text: str, what: str) -> float:
    """Return the number that a text spells. Raises ConfigError, which names `what`."""
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{what}: {text!r} is not a number") from None
