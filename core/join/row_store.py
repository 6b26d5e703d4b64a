"""Rows of batches by number: appended, taken in any order, and dropped when they are no longer needed."""

from __future__ import annotations

from itertools import pairwise
from typing import Generic

import numpy as np

from ..arrays import Int64Array
from ..shard.buffer import TimedBatch


class RowStore(Generic[TimedBatch]):
    """Rows 0 to n - 1 in O(log n) batches: each batch is at least twice as long as the next batch.

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
