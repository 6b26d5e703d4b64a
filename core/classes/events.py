"""Events with a score of each class, in columns, and the buffer of the events that a window holds."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, FloatArray, Int64Array
from ..measures.steps import ENTERS, Steps

FADED: Final = 64
"""A fading event is dropped when it weighs less, by so many half-lives, than the heaviest event of its class.
"""


class ClassEvents(NamedTuple):
    """n events of C classes in their order.

    labels   int64[n], the number of the class of each event; or bool[n, C], whether it is of each class
    scores   float64[n, C]
    weights  float64[n]; None: each event counts 1
    ticks    int64[n], of a fading window: the number or the time of each event; else None
    """

    labels: Int64Array | BoolArray
    scores: FloatArray
    weights: FloatArray | None = None
    ticks: Int64Array | None = None

    @property
    def size(self) -> int:
        """How many events there are."""
        return len(self.labels)

    def part(self, which: slice | Int64Array) -> ClassEvents:
        """Return some of the events."""
        return ClassEvents._make(None if column is None else column[which] for column in self)


class EventBuffer:
    """The events that a window holds, the oldest first, in arrays with spare room at their end.

    To add n events costs O(n C) in the mean. If an event comes that is earlier than others, the later events
    are moved: O(held C).
    """

    def __init__(self, none: ClassEvents) -> None:
        """Make a buffer without events.

        `none` is a batch of no events, with the columns that events will have.
        """
        self._columns = none
        self._first = self._end = 0

    def __len__(self) -> int:
        return self._end - self._first

    def events(self) -> ClassEvents:
        """Return the events held, as views: an addition may change them."""
        return self._columns.part(slice(self._first, self._end))

    def add(self, events: ClassEvents) -> None:
        """Add events behind the events held. If the events held have no weights, they weigh 1."""
        self._make_room(events)
        end = self._end + events.size
        for name, column in self._columns._asdict().items():
            if column is not None:
                given = getattr(events, name)
                column[self._end : end] = 1.0 if given is None else given
        self._end = end

    def _make_room(self, events: ClassEvents) -> None:
        columns, held = self._columns, len(self)
        if events.weights is not None and columns.weights is None:
            columns = columns._replace(weights=np.ones(columns.size))
        if self._end + events.size > columns.size:
            room = max(64, 2 * held + events.size)
            columns = ClassEvents._make(
                None if old is None else _moved(old, self._first, held, room) for old in columns
            )
            self._first, self._end = 0, held
        self._columns = columns

    def drop(self, count: int) -> None:
        """Drop the oldest events."""
        self._first += count

    def take_out(self, place: int) -> None:
        """Drop the event at a place, the oldest event being at 0. O(place C)."""
        for column in self._columns:
            if column is not None and place:
                column[self._first + 1 : self._first + place + 1] = column[
                    self._first : self._first + place
                ].copy()
        self._first += 1

    def follow(self, coming: ClassEvents, steps: Steps) -> None:
        """Add and drop events as the steps say; `coming` has the entering events, in order."""
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
                for column in self._columns:
                    if column is not None:
                        column[places] = column[np.roll(places, 1)]

    def drop_faded(self, half_life: int) -> None:
        """Drop the events that have faded, compared with the heaviest events of their class. O(held)."""
        events = self.events()
        if events.ticks is None or not events.size:
            return
        logs = events.ticks / half_life
        if events.weights is not None:
            logs = logs + np.log2(events.weights)
        if events.labels.ndim > 1:  # an event of several classes fades beside the whole window
            heaviest = np.full(len(logs), logs.max())
        else:
            most = np.full(int(events.labels.max()) + 1, -np.inf)
            np.maximum.at(most, events.labels, logs)
            heaviest = most[events.labels]
        kept = np.flatnonzero(logs >= heaviest - FADED)
        if len(kept) == events.size:
            return
        remaining = events.part(kept)
        for column, new in zip(self._columns, remaining, strict=True):
            if column is not None and new is not None:
                column[self._first : self._first + len(kept)] = new
        self._end = self._first + len(kept)


def _moved(column: npt.NDArray[Any], first: int, held: int, room: int) -> npt.NDArray[Any]:
    """Return a column with room for `room` events that begins with the events held."""
    wider = np.empty((room, *column.shape[1:]), column.dtype)
    wider[:held] = column[first : first + held]
    return wider
