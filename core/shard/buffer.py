"""Rows of batches that wait: in a buffer until the clock passes their times, or in a store by number."""

from __future__ import annotations

import heapq
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np

from ..arrays import Int64Array
from ..events.batch import EventBatch, LabelBatch

_PER_BATCH = 200
"""About how many bytes a batch takes in memory beside its columns."""


TimedBatch = TypeVar("TimedBatch", EventBatch, LabelBatch)
"""Events (also predictions, as events without labels), or labels."""


class ReorderBuffer(Generic[TimedBatch]):
    """Batches that wait, each sorted by time, with the number of rows that each batch has already released.

    Adding n rows costs O(n), or a sort if the rows are not in order of time. A release costs O(rows
    released), and O(log batches) for every batch that has rows to release.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, int, TimedBatch]] = []
        self._number = 0
        self._bytes = 0.0

    def __len__(self) -> int:
        """Return how many rows wait. O(batches)."""
        return sum(len(batch) - start for _, _, start, _, batch in self._heap)

    def add(self, batch: TimedBatch, packed_bytes: int) -> None:
        """Hold a batch; `packed_bytes` is its size in the wire form."""
        if not len(batch):
            return
        times = times_of(batch)
        if (np.diff(times) < 0).any():
            batch = batch.take(np.argsort(times, kind="stable"))
            times = times_of(batch)
        self._push(batch, 0, packed_bytes)

    def _push(self, batch: TimedBatch, start: int, size: int) -> None:
        self._number += 1
        heapq.heappush(self._heap, (int(times_of(batch)[start]), self._number, start, size, batch))
        self._bytes += size * (len(batch) - start) / len(batch)

    def release(self, clock: int) -> list[TimedBatch]:
        """Remove the rows with a time before `clock` and return them as parts, each in order of time."""
        parts, rest = [], []
        while self._heap and self._heap[0][0] < clock:
            _, _, start, size, batch = heapq.heappop(self._heap)
            self._bytes -= size * (len(batch) - start) / len(batch)
            end = int(np.searchsorted(times_of(batch), clock, "left"))
            parts.append(batch.part(start, end))
            if end < len(batch):
                rest.append((batch, end, size))
        for left in rest:
            self._push(*left)
        return parts

    def moment(self, share: float) -> int:
        """Return a time that about `share` of the waiting rows do not exceed; at least one row must wait."""
        ends = np.array([times_of(batch)[-1] for *_, batch in self._heap])
        starts = np.array([time for time, *_ in self._heap])
        return int(np.quantile(np.concatenate([starts, ends]), share, method="higher"))

    def packets(self) -> list[bytes]:
        """Return the waiting rows as packed batches."""
        return [batch.part(start, len(batch)).pack() for *_, start, _, batch in sorted(self._heap)]

    def snapshot_bytes(self) -> int:
        """Return about how many bytes `packets` has, with 16 for each packet. O(1)."""
        return int(self._bytes) + 16 * len(self._heap)

    def live_bytes(self) -> int:
        """Return about how much memory the buffer takes. O(1)."""
        return int(self._bytes) + _PER_BATCH * len(self._heap)


class RowStore(Generic[TimedBatch]):
    """Rows 0 to n - 1, appended, taken in any order, and dropped when they are no longer needed.

    They are in O(log n) batches: each batch is at least twice as long as the next batch.

    A row is copied O(log n) times, amortised.
    """

    def __init__(self) -> None:
        self._batches: list[TimedBatch] = []

    def __len__(self) -> int:
        return sum(map(len, self._batches))

    def append(self, batch: TimedBatch) -> Int64Array:
        """Append the rows of a batch; return their numbers, int64[len(batch)]."""
        before = len(self)
        if len(batch):
            self._batches.append(batch)
            while len(self._batches) > 1 and len(self._batches[-2]) < 2 * len(self._batches[-1]):
                last = self._batches.pop()
                self._batches[-1] = type(last).concat([self._batches[-1], last])
        return np.arange(before, len(self))

    def take(self, rows: Int64Array) -> TimedBatch | None:
        """Return the rows of some numbers; None if `rows` is empty. O(rows + log n)."""
        if not len(rows):
            return None
        starts = np.cumsum([0, *map(len, self._batches)])
        where: Int64Array = np.searchsorted(starts, rows, "right") - 1
        order: Int64Array = np.argsort(where, kind="stable")
        bounds = [*np.flatnonzero(np.diff(where[order], prepend=-1)).tolist(), len(rows)]
        parts = []
        for start, end in pairwise(bounds):
            place = where[order[start]]
            parts.append(self._batches[place].take(rows[order[start:end]] - starts[place]))
        taken: TimedBatch = parts[0]
        if len(parts) > 1:
            back = np.empty(len(rows), np.int64)
            back[order] = np.arange(len(rows))
            taken = type(taken).concat(parts).take(back)
        return taken

    def keep(self, rows: Int64Array) -> None:
        """Drop all but the given rows, which get the numbers 0, 1, 2, ..."""
        kept = self.take(rows)
        self._batches = []
        if kept is not None:
            self.append(kept)

    def whole(self) -> TimedBatch | None:
        """Return all rows in one batch; None if the store is empty."""
        return self.take(np.arange(len(self)))


def times_of(batch: EventBatch | LabelBatch) -> Int64Array:
    """Return the times of a batch that must have times."""
    if batch.times is None:
        raise AssertionError("a batch without times is refused before it comes here")
    return batch.times
