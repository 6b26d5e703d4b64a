"""Events of many evaluators that wait, because no row depends on them yet.

Applying one event to an evaluator costs 20 to 30 us of Python around kernels that need less than 1 us. A
packet of many small models brings one event for each. So events wait here, in the order in which they came,
until a row of their evaluator falls due or enough events wait to make a call cheap for each.

Invariant: the events of an evaluator are a chain through the columns. `_last[number]` is the place of its
newest event, `_before[place]` that of the event before it, -1 ends the chain; `_counts[number]` is its
length. So taking the events of some evaluators costs time in proportion to these events alone. Places of
events that were taken stay in the columns until they are the larger part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..arrays import NO_FLOATS, NO_INT8, NO_INT64, FloatArray, Int8Array, Int64Array
from ..kernels.compile import entry
from ..kernels.rings import with_room

_FIRST_CAPACITY = 256


class Run(NamedTuple):
    """Binary events of one evaluator, in their order."""

    number: int
    scores: FloatArray
    labels: Int8Array
    times: Int64Array | None


@entry
def _link(numbers: Int64Array, place: int, before: Int64Array, last: Int64Array, counts: Int64Array) -> None:
    """Append new events, from `place` on, to the chains of their evaluators."""
    for number in numbers:
        before[place] = last[number]
        last[number] = place
        counts[number] += 1
        place += 1


@entry
def _unlink(
    numbers: Int64Array, before: Int64Array, last: Int64Array, counts: Int64Array, places: Int64Array
) -> None:
    """Write the places of all events of some evaluators, one after another, oldest first.

    Empty the chains.
    """
    end = 0
    for number in numbers:
        end += counts[number]
        place, at = last[number], end
        while place >= 0:
            at -= 1
            places[at] = place
            place = before[place]
        last[number] = -1
        counts[number] = 0


class PendingEvents:
    """The events that wait, by the number of their evaluator. Either all events have times, or none has.

    >>> pending = PendingEvents()
    >>> pending.add(np.array([0, 1, 0]), np.array([0.1, 0.2, 0.3]), np.array([1, 0, 0], np.int8), None)
    >>> [run] = pending.pop(np.array([0]))
    >>> run.scores, len(pending)
    (array([0.1, 0.3]), 1)
    """

    def __init__(self) -> None:
        self._start_anew()
        self._last = self._counts = NO_INT64

    def _start_anew(self) -> None:
        self._numbers = self._before = NO_INT64
        self._scores, self._labels = NO_FLOATS, NO_INT8
        self._times: Int64Array | None = None
        self._used = 0
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    @property
    def nbytes(self) -> int:
        """How many bytes of memory the columns take."""
        times = 0 if self._times is None else 8
        return len(self._numbers) * (25 + times) + 16 * len(self._last)

    def fits(self, times: Int64Array | None) -> bool:
        """Return whether events with these times, or without times, may join the events that wait."""
        return not self._waiting or (times is None) == (self._times is None)

    def add(
        self, numbers: Int64Array, scores: FloatArray, labels: Int8Array, times: Int64Array | None
    ) -> None:
        """Append events; event i is for the evaluator `numbers[i]`. O(events), amortised."""
        start, end = self._used, self._used + len(numbers)
        self._make_room(end, int(numbers.max(initial=-1)) + 1, times is not None)
        self._numbers[start:end], self._scores[start:end], self._labels[start:end] = numbers, scores, labels
        if self._times is not None and times is not None:
            self._times[start:end] = times
        _link(numbers, start, self._before, self._last, self._counts)
        self._used = end
        self._waiting += len(numbers)

    def _make_room(self, places: int, evaluators: int, timed: bool) -> None:
        if evaluators > len(self._last):
            room = 1 << (evaluators - 1).bit_length()
            self._last = with_room(self._last, room, -1)
            self._counts = with_room(self._counts, room)
        if places > len(self._numbers):
            room = max(_FIRST_CAPACITY, 1 << (places - 1).bit_length())
            self._numbers = with_room(self._numbers, room)
            self._before = with_room(self._before, room)
            self._scores = with_room(self._scores, room)
            self._labels = with_room(self._labels, room)
            if timed:
                self._times = with_room(NO_INT64 if self._times is None else self._times, room)

    def pop(self, numbers: Int64Array) -> Iterator[Run]:
        """Remove the events of some evaluators and yield them. O(these events), amortised."""
        numbers = numbers[numbers < len(self._counts)]  # for higher numbers no event ever waited
        counts = self._counts[numbers]
        ends = np.cumsum(counts)
        taken = int(ends[-1]) if len(ends) else 0
        places = np.empty(taken, np.int64)
        _unlink(numbers, self._before, self._last, self._counts, places)
        scores, labels = self._scores[places], self._labels[places]
        times = None if self._times is None else self._times[places]
        self._waiting -= taken
        self._numbers[places] = -1
        if not self._waiting:
            self._start_anew()
        elif self._used > 2 * self._waiting + _FIRST_CAPACITY:
            self._close_gaps()
        for number, end, count in zip(numbers.tolist(), ends.tolist(), counts.tolist(), strict=True):
            if count:
                run = slice(end - count, end)
                yield Run(number, scores[run], labels[run], None if times is None else times[run])

    def pop_all(self) -> Iterator[Run]:
        """Remove all events and yield them, by rising number of the evaluator."""
        return self.pop(np.flatnonzero(self._counts))

    def _close_gaps(self) -> None:
        """Rewrite the columns with only the events that wait, in their order."""
        kept = np.flatnonzero(self._numbers[: self._used] >= 0)
        numbers, scores, labels = self._numbers[kept], self._scores[kept], self._labels[kept]
        times = None if self._times is None else self._times[kept]
        self._last[:], self._counts[:] = -1, 0
        self._start_anew()
        self.add(numbers, scores, labels, times)
