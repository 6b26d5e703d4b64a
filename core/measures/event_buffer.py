"""EventBuffer: the events that a window holds, in columns that follow the steps of the window.

It serves windows of which Python reads the events themselves: of pairs of models, and of models with a score
of each class. `kernels.rings` has the rings of windows that kernels read.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any, Final, Generic, Protocol, Self, TypeVar

import numpy as np

from ..arrays import BoolArray, Int64Array
from ..events.times import NO_TIME
from ..kernels.rings import with_room
from .steps import ENTERS, ROW_DUE, Steps

FADED: Final = 64
"""Half-lives by which a fading event weighs less than the heaviest of its class when it is dropped."""

_MISSING = {"weights": 1.0, "times": NO_TIME}
"""The value of an event without weight, or without time, where other events have one."""


class Events(Protocol):
    """n events: a NamedTuple of columns, each an array of n rows or None."""

    @property
    def labels(self) -> Any:
        """The labels of the events."""

    def part(self, which: slice | Int64Array | BoolArray) -> Self:
        """Return some of the events."""

    def unfaded(self, half_life: int) -> BoolArray:
        """Return which events of a fading window are not `FADED`."""

    def _asdict(self) -> dict[str, Any]: ...


AnyEvents = TypeVar("AnyEvents", bound=Events)


def entering(events: AnyEvents, steps: Steps, start: int) -> AnyEvents:
    """Return the events that enter; `start` is the place in the batch of the first of `events`."""
    enters = (steps.flags & ENTERS) != 0
    if enters.all() and len(events.labels) == len(enters):
        return events
    return events.part(steps.events[enters] - start)


class EventBuffer(Generic[AnyEvents]):
    """The events that a window holds, the oldest first, in arrays with spare room at their end.

    To add n events costs O(n) in the mean. An event that comes before later ones moves these: O(held).
    """

    def __init__(self, none: AnyEvents, half_life: int = 0) -> None:
        """Begin without events.

        none       has the columns that events will have
        half_life  ticks of a fading window; 0: events do not fade
        """
        self._columns = none
        self._half_life = half_life
        self._first = self._end = 0

    def __len__(self) -> int:
        return self._end - self._first

    def events(self) -> AnyEvents:
        """Return the events held, as views: an addition may change them."""
        return self._columns.part(slice(self._first, self._end))

    def add(self, events: AnyEvents) -> None:
        """Add events behind those held."""
        self._make_room(events)
        end = self._end + len(events.labels)
        for name, column in self._columns._asdict().items():
            if column is not None:
                given = getattr(events, name)
                column[self._end : end] = _MISSING[name] if given is None else given
        self._end = end

    def _make_room(self, events: AnyEvents) -> None:
        held, coming = len(self), len(events.labels)
        columns: Any = self._columns
        size = len(columns.labels)
        for name, column in events._asdict().items():
            if column is not None and getattr(columns, name) is None:
                columns = columns._replace(**{name: np.full(size, _MISSING[name])})
        if self._end + coming > size:
            room = max(64, 2 * held + coming)
            moved = {
                name: with_room(old[self._first : self._end], room)
                for name, old in columns._asdict().items()
                if old is not None
            }
            columns = columns._replace(**moved)
            self._first, self._end = 0, held
        self._columns = columns

    def drop(self, count: int) -> None:
        """Drop the oldest events."""
        self._first += count

    def take_out(self, place: int) -> None:
        """Drop the event at a place, the oldest event being at 0. O(place)."""
        for column in self._columns._asdict().values():
            if column is not None and place:
                column[self._first + 1 : self._first + place + 1] = column[
                    self._first : self._first + place
                ].copy()
        self._first += 1

    def follow(self, coming: AnyEvents, steps: Steps) -> None:
        """Apply steps: add the events that enter, from `coming` in order, and drop the events that leave."""
        for _ in self._follow_to(np.flatnonzero(steps.shifts), coming, steps):
            pass

    def _follow_to(self, stops: Int64Array, coming: AnyEvents, steps: Steps) -> Iterator[int]:
        """Follow steps; yield each of `stops`, the late ones among them, when it is done."""
        self.add(coming)
        first, end = self._first, self._end
        if len(stops):
            firsts = first + np.cumsum(steps.leaving)
            enters = (steps.flags & ENTERS) != 0
            ends = end - len(coming.labels) + np.cumsum(enters)
            shifts = steps.shifts[stops].tolist() if len(steps.shifts) else repeat(0)
            places = zip(stops.tolist(), firsts[stops].tolist(), ends[stops].tolist(), shifts, strict=False)
            for step, self._first, self._end, shift in places:
                if shift:
                    self._move_last(shift)
                yield step
        self._first, self._end = first + int(steps.leaving.sum()), end

    def _move_last(self, shift: int) -> None:
        """Move the newest event before the `shift` events that came before it."""
        last = self._end - 1
        for column in self._columns._asdict().values():
            if column is not None:
                moved = column[last].copy()
                column[last - shift + 1 : last + 1] = column[last - shift : last]
                column[last - shift] = moved

    def follow_to_rows(self, events: AnyEvents, steps: Steps, start: int) -> Iterator[int]:
        """Follow steps; yield each step at which a row is due, when it is done. Read all that is yielded.

        events, start  the events of the steps, and the place of the first one in its batch
        """
        is_due = (steps.flags & ROW_DUE) != 0
        if not self._half_life:
            stops = np.flatnonzero(is_due | (steps.shifts != 0) if len(steps.shifts) else is_due)
            for step in self._follow_to(stops, entering(events, steps, start), steps):
                if is_due[step]:
                    yield step
            return
        done = 0
        for step in np.union1d(np.flatnonzero(is_due), len(is_due) - 1).tolist():
            some = steps.part(done, step + 1)
            self.follow(entering(events, some, start), some)
            self._drop_faded()
            if is_due[step]:
                yield step
            done = step + 1

    def _drop_faded(self) -> None:
        """Drop the events that have faded beside the others of their class. O(held)."""
        events = self.events()
        if not len(self):
            return
        kept = events.unfaded(self._half_life)
        if kept.all():
            return
        remaining = events.part(kept)
        for column, new in zip(self._columns._asdict().values(), remaining._asdict().values(), strict=True):
            if column is not None:
                column[self._first : self._first + len(new)] = new
        self._end = self._first + len(remaining.labels)
