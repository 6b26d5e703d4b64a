"""EventBuffer: the events that a window holds, in columns that follow the steps of the window.

It serves windows of which Python reads the events themselves: of pairs of models, and of models with a score
of each class. `kernels.rings` has the rings of windows that kernels read.
"""

from __future__ import annotations

from collections.abc import Iterator
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
        """Add and drop what some steps say; `coming` has the events that enter, in order."""
        if not len(steps.shifts) or not steps.shifts.any():
            self.add(coming)
            self.drop(int(steps.leaving.sum()))
            return
        entered = 0
        for flags, gone, shift in zip(
            steps.flags.tolist(), steps.leaving.tolist(), steps.shifts.tolist(), strict=True
        ):
            self.drop(gone)
            if not flags & ENTERS:
                continue
            self.add(coming.part(slice(entered, entered + 1)))
            entered += 1
            if shift:
                places = np.arange(self._end - 1 - shift, self._end)
                for column in self._columns._asdict().values():
                    if column is not None:
                        column[places] = column[np.roll(places, 1)]

    def follow_to_rows(self, events: AnyEvents, steps: Steps, start: int) -> Iterator[int]:
        """Follow steps; yield each step at which a row is due, when it is done. Read all that is yielded.

        events, start  the events of the steps, and the place of the first one in its batch
        """
        due = np.flatnonzero(steps.flags & ROW_DUE).tolist()
        if self._half_life or (len(steps.shifts) and steps.shifts.any()):
            done = 0
            for step in (*due, len(steps.flags) - 1):
                some = steps.part(done, step + 1)
                self.follow(entering(events, some, start), some)
                self._drop_faded()
                if done <= step and some.flags[-1] & ROW_DUE:
                    yield step
                done = step + 1
            return
        coming, held = entering(events, steps, start), len(self)
        self.add(coming)
        first, end = self._first, self._end
        if due:
            gone, here = np.cumsum(steps.leaving), np.cumsum((steps.flags & ENTERS) != 0)
            for step in due:
                self._first, self._end = first + int(gone[step]), first + held + int(here[step])
                yield step
        self._first, self._end = first + int(steps.leaving.sum()), end

    def _drop_faded(self) -> None:
        """Drop the events that have faded beside the others of their class. O(held)."""
        if not self._half_life or not len(self):
            return
        events = self.events()
        kept = events.unfaded(self._half_life)
        if kept.all():
            return
        remaining = events.part(kept)
        for column, new in zip(self._columns._asdict().values(), remaining._asdict().values(), strict=True):
            if column is not None:
                column[self._first : self._first + len(new)] = new
        self._end = self._first + len(remaining.labels)
