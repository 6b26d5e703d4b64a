"""A buffer of events, predictions or labels that wait until the clock passes their times."""

from __future__ import annotations

import heapq
from typing import Generic, TypeVar

import numpy as np

from ..arrays import Int64Array
from ..events.batch import EventBatch
from ..events.unjoined import LabelBatch

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


def times_of(batch: EventBatch | LabelBatch) -> Int64Array:
    """Return the times of a batch that must have times."""
    if batch.times is None:
        raise AssertionError("a batch without times is refused before it comes here")
    return batch.times
