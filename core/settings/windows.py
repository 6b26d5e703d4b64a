"""Windows, which decide which events count, and emissions, which decide when a row is due.

A window and an emission are checked when made.

Each object has one spelling, that of the command line (`last:10000`, `last:7d`, ...). `str()` writes the
spelling; `parse_window` and `parse_every` read it. Code asks a window or an emission for its properties
(`EveryWindow`) and never for its class. Durations are whole microseconds (durations.py).
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Literal, get_args

from ..errors import ConfigError
from .durations import Duration, duration_text, is_numpy_duration, is_positive, microseconds

Signal = Literal["placement", "error", "brier"]

ADAPTIVE_EVENTS = 2_000_000
"""The most events in an adaptive window: if the stream never changed, the window would grow for ever."""


def is_count(value: Any) -> bool:
    """Return whether a value is a whole number, 1 or more, that a counter can hold.

    A whole number of numpy is allowed, too.
    """
    if isinstance(value, bool) or is_numpy_duration(value):
        return False
    return isinstance(value, numbers.Integral) and 1 <= int(value) < 2**62


NEVER_LEAVE, COUNT, DURATION, GIVEN = range(4)
"""The kinds of rules by which events leave a window; `EveryWindow.rule` describes them."""


class EveryWindow:
    """The base class of windows: it has their properties, with the values that most windows have."""

    @property
    def by_time(self) -> bool:
        """Whether the window depends on the times of events."""
        return self.micros > 0

    @property
    def has_end(self) -> bool:
        """Whether events leave the window, or lose weight."""
        return self.rule[0] != NEVER_LEAVE or self.ticks > 0

    @property
    def size(self) -> int | None:
        """How many events a full window holds; None if the window has no such number."""
        kind, number = self.rule
        return number if kind == COUNT else None

    @property
    def micros(self) -> int:
        """How long an event stays, in microseconds; 0 if no duration limits its stay."""
        kind, number = self.rule
        return number if kind == DURATION else 0

    @property
    def ticks(self) -> int:
        """The half-life of an event, in events or in microseconds; 0 if events do not fade."""
        return 0

    @property
    def signal(self) -> Signal | None:
        """The signal that the window adapts to; None if the window does not adapt."""
        return None

    @property
    def rule(self) -> tuple[int, int]:
        """The rule by which events leave the window, as (kind, number).

        NEVER_LEAVE  no event leaves, but a faded event is dropped
        COUNT        the last `number` events stay
        DURATION     the events of the last `number` microseconds stay
        GIVEN        the signal decides how many events stay; if the window holds more than `number` events,
                     the oldest sixteenth leaves
        """
        return NEVER_LEAVE, 0


@dataclass(frozen=True)
class LastEvents(EveryWindow):
    """The window of the last k events of a (model, slice).

    >>> str(LastEvents(10_000))
    'last:10000'
    """

    k: int = 10_000

    def __post_init__(self) -> None:
        if not is_count(self.k):
            raise ConfigError(f"LastEvents(k={self.k!r}): a window holds a whole number of events, 1 or more")
        object.__setattr__(self, "k", int(self.k))

    @property
    def rule(self) -> tuple[int, int]:
        """The rule by which events leave, as in `EveryWindow`."""
        return COUNT, self.k

    def __str__(self) -> str:
        return f"last:{self.k}"


@dataclass(frozen=True)
class LastDuration(EveryWindow):
    """The window of the events with a time in (t - duration, t].

    Here t is the greatest event time that was applied.

    Events may come in any order of time: they leave in the order of their times. An event whose time has
    already left the window counts in `seq` alone. An event in order of time costs O(1) beside the cost of its
    rank. A late event moves the m events with later times: O(m).

    duration  a text such as "7d", a number of seconds, or a timedelta; kept in whole microseconds as `micros`

    >>> str(LastDuration("7d")), LastDuration(3600).micros
    ('last:7d', 3600000000)
    """

    duration: Duration

    def __post_init__(self) -> None:
        object.__setattr__(self, "duration", duration_text(microseconds(self.duration, "LastDuration")))

    @property
    def rule(self) -> tuple[int, int]:
        """The rule by which events leave, as in `EveryWindow`."""
        return DURATION, microseconds(self.duration, "LastDuration")

    def __str__(self) -> str:
        return f"last:{self.duration}"


@dataclass(frozen=True)
class Fading(EveryWindow):
    """The window of all events, where each weighs half as much after every half-life.

    The decay is exponential and exact.

    half_life  a whole number of events; or a duration: a text such as "7d", or a timedelta

    Events whose weight has fallen to 2^-53 of the mass of their own class are dropped. So the window holds
    the events of 40 to 50 half-lives, and a state has as many events. With a half-life of T events, dropping
    changes AUC by less than 2^-53 (2.9 T + 2): 3e-12 for T = 10,000. docs/architecture/weighted.md has the
    method and its proof.

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
        """Whether weights fall with time (True) or with the number of events (False)."""
        return isinstance(self.half_life, str)

    @property
    def ticks(self) -> int:
        """The half-life, in events or in microseconds."""
        if isinstance(self.half_life, int):
            return self.half_life
        return microseconds(self.half_life, "Fading(half_life)")

    def __str__(self) -> str:
        return f"fading:{self.half_life}"


@dataclass(frozen=True)
class Adaptive(EveryWindow):
    """A window that becomes smaller when its signal changes.

    The detector is ADWIN (Bifet & Gavalda 2007), over one signal.

    delta   the nominal probability of a false alarm, in (0, 1). The probability is nominal, because the
            values are not independent.
    signal  "placement": how well each event of the rarer class is placed among the other class. The mean
            placement is the AUC. "error": whether the decision at the threshold is wrong. "brier": the
            squared error of a probability. A model with a score of each class has one signal, too.

    All measures share one window. When ADWIN drops the values before a change, the window drops their events,
    and the next row has `drift` = True. The window holds at most two million events.

    >>> str(Adaptive()), str(Adaptive(0.01, "error"))
    ('adaptive:0.002:placement', 'adaptive:0.01:error')
    """

    delta: float = 0.002
    signal: Signal = "placement"

    def __post_init__(self) -> None:
        if not (is_positive(self.delta) and self.delta < 1):
            raise ConfigError(
                f"Adaptive(delta={self.delta!r}): delta is a chance of false alarms, between 0 and 1"
            )
        object.__setattr__(self, "delta", float(self.delta))
        if self.signal not in get_args(Signal):
            raise ConfigError(f"Adaptive(signal={self.signal!r}): give 'placement', 'error' or 'brier'")

    @property
    def rule(self) -> tuple[int, int]:
        """The rule by which events leave, as in `EveryWindow`."""
        return GIVEN, ADAPTIVE_EVENTS

    def __str__(self) -> str:
        return f"adaptive:{self.delta!r}:{self.signal}"


@dataclass(frozen=True)
class AllEvents(EveryWindow):
    """The window that holds every event since the beginning. Memory grows with the stream.

    >>> str(AllEvents())
    'all'
    """

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
    micros: ClassVar[int] = 0
    """The microseconds between the points of the grid; 0, because there is no grid."""

    def __post_init__(self) -> None:
        if not is_count(self.n):
            raise ConfigError(
                f"EveryEvents(n={self.n!r}): a row comes every whole number of events, 1 or more"
            )
        object.__setattr__(self, "n", int(self.n))

    @property
    def events(self) -> int:
        """The number of events between rows; 0 if rows are on a grid of times."""
        return self.n

    def __str__(self) -> str:
        return str(self.n)


@dataclass(frozen=True)
class EverySeconds:
    """A row at every point of a fixed grid of event times, if the window changed since the last row.

    The grid points are the multiples of the duration since 1970 UTC. The row for the grid point g (its `due`)
    is made when the clock passes g, that is, when the first event after g comes. Events at g are in the row.
    A window by time is then the window at g: it may change although no event came. If the window did not
    change, there is no row, however long no event comes. An event before g may come after the row of g; it
    changes no row that was made.

    duration  a text such as "1h", a number of seconds, or a timedelta; kept in whole microseconds as `micros`

    >>> str(EverySeconds("1h")), EverySeconds(60).micros
    ('1h', 60000000)
    """

    duration: Duration
    events: ClassVar[int] = 0
    """The number of events between rows; 0, because rows are on a grid of times."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "duration", duration_text(microseconds(self.duration, "EverySeconds")))

    @property
    def micros(self) -> int:
        """The step of the grid in microseconds."""
        return microseconds(self.duration, "EverySeconds")

    def __str__(self) -> str:
        return str(self.duration)


Emission = EveryEvents | EverySeconds


def check_emission(every: Any) -> None:
    """Raise ConfigError for a setting `every` that is no emission."""
    if not isinstance(every, Emission):
        raise ConfigError(f"every={every!r}: give EveryEvents(n), n 1 or more, or EverySeconds('1h')")


def parse_every(text: str) -> Emission:
    """Read an emission: a number of events, or a duration.

    >>> parse_every("100"), parse_every("1h")
    (EveryEvents(n=100), EverySeconds(duration='1h'))
    """
    if text and text[-1].isalpha() and text[0].isdecimal():
        return EverySeconds(text)
    try:
        number = int(text)
    except ValueError:
        raise ConfigError(
            f"every: {text!r} is neither a whole number of events, such as 100, nor a duration, such as 1h"
        ) from None
    return EveryEvents(number)


def _count(text: str, what: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"{what}: {text!r} is not a whole number") from None


def read_number(text: str, what: str) -> float:
    """Return the number that a text spells. Raises ConfigError, which gives `what` as the setting's name."""
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{what}: {text!r} is not a number") from None


def number_text(number: float) -> str:
    """Return the shortest text that `read_number` reads as this number."""
    return repr(number).removesuffix(".0")


def needs_times(window: Window, every: Emission) -> str | None:
    """Return the window or the emission that needs event times, as on the command line.

    None if neither the window nor the emission needs them.

    >>> needs_times(LastEvents(5), parse_every("1h")), needs_times(LastEvents(5), EveryEvents(5))
    ('every 1h', None)
    """
    if window.by_time:
        return f"window {window}"
    return f"every {every}" if every.micros else None
