"""The columns of a row that give evidence: its logarithm, where its growth began, the events of a block.

Evidence is over all events of an evaluator, not over those of its window. So the detector runs beside the
window. It is fed the events of an update; a row then reads the latest block that was full at the row's `seq`.
"""

from __future__ import annotations

import numpy as np

from ..arrays import NO_INT64, FloatArray, Int8Array, Int64Array
from ..evidence.below import EvidenceBelow
from ..rows import slots
from ..rows.columns import INTEGER_COLUMNS, NO_BLOCK
from ..rows.rows import Rows

_SEQ = INTEGER_COLUMNS.index("seq")
_MEASURES = slice(slots.EVIDENCE, slots.BLOCK_EVENTS + 1)
_NUMBERS = slice(slots.MEASURES + slots.EVIDENCE, slots.MEASURES + slots.BLOCK_EVENTS + 1)


class EvidenceColumns:
    """The detector of an evaluator, and what its rows read.

    Invariant: `_ends` has the `seq` of each block that became full in the present update, and `_table` the
    columns of a row from there on; its first line is for rows before these blocks.
    """

    def __init__(self, bound: float, blocks: int) -> None:
        self.detector = EvidenceBelow(bound, blocks=blocks)
        self._ends: Int64Array = NO_INT64
        self._table: FloatArray = np.full((1, 3), np.nan)

    def load(self, data: bytes, seq: int) -> None:
        """Take a detector's state, after `seq` events; ValueError if the state has other settings."""
        detector = EvidenceBelow.from_bytes(data)
        if (detector.bound, detector.blocks) != (self.detector.bound, self.detector.blocks):
            raise ValueError(f"its evidence is below {detector.bound:g}, in blocks of {detector.blocks}")
        if detector.events > seq:
            raise ValueError(f"its evidence has {detector.events} of {seq} events")
        self.detector = detector
        if detector.full_blocks:
            before = seq - detector.events
            self._table = np.array([[detector.evidence, before + detector.since, detector.block_events]])  # type: ignore[operator]

    def follow(self, labels: Int8Array, scores: FloatArray, seq: int) -> None:
        """Feed the events of an update, before which `seq` events were applied."""
        before = seq - self.detector.events
        blocks = self.detector.follow(labels, scores)
        self._ends = seq + 1 + blocks.ends
        newer = np.column_stack([blocks.evidence, before + blocks.since, blocks.events])
        self._table = np.concatenate([self._table, newer])

    def settle(self) -> None:
        """Forget the blocks of the present update but the latest; its rows are written."""
        self._ends, self._table = NO_INT64, self._table[-1:]

    def write(self, rows: Rows) -> None:
        """Write the columns of rows."""
        found = self._table[np.searchsorted(self._ends, rows.integers[:, _SEQ], "right")]
        rows.numbers[:, _NUMBERS] = found
        rows.reasons[:, _MEASURES] = np.where(np.isnan(found), NO_BLOCK, 0)
