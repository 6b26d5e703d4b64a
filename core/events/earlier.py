"""Marks the records that an earlier job read: they waited in its state when this job began with the state.

A job counts the fates of the records that it read itself. So the records of the state must stay
distinguishable from these until they are applied or refused, through every machine and every restart. Its
position in its source, a column that all batches have, is marked: position p is stored as -3 - p. Unmarked
positions are -1 (unknown) and above. A mark stays: a record that waits in the state of a second job stays
marked.

A batch without positions cannot be marked. Its records can only be applied, or be late when they come in: a
machine that drops records later, such as a join or a deduplicator, needs their positions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from ..arrays import Int64Array
from .batch import PacketBatch

EARLIER_LOST = "events_taken_up_lost"
"""The counter of events of an earlier job that were late, unmatched or duplicates in this job."""

EARLIER_USED = "labels_taken_up_used"
"""The counter of labels of an earlier job that served a prediction in this job."""

_MARKED = -3

Records = TypeVar("Records", bound=PacketBatch)


def marked(batch: Records) -> Records:
    """Return the batch, with its records marked as those of an earlier job.

    >>> from rocsteady import EventBatch, TextColumn
    >>> batch = EventBatch(TextColumn.of(["m"]), np.array([0.5]), np.array([1]), positions=np.array([7]))
    >>> earlier(batch), earlier(marked(batch)), real_positions(marked(marked(batch)).positions).tolist()
    (0, 1, [7])
    """
    if batch.positions is None:
        return batch
    positions = batch.positions
    return replace(batch, positions=np.where(positions < -1, positions, _MARKED - positions))


def earlier(batch: PacketBatch) -> int:
    """Return how many records of a batch an earlier job read."""
    return 0 if batch.positions is None else int(np.count_nonzero(batch.positions < -1))


def real_positions(positions: Int64Array) -> Int64Array:
    """Return positions in their source, without marks; -1 = unknown."""
    return np.where(positions < -1, _MARKED - positions, positions)
