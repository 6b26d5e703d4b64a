"""The columns of a row that give evidence.

They are the logarithm of the evidence, where evidence began, the number of events of a block, and the bound.

Evidence is over all events of an evaluator, not over those of its window. So the detector runs beside the
window. The detector receives the events of an update; a row then reads the latest block that was full at the
row's `seq`.
"""

from __future__ import annotations

import numpy as np

from ..arrays import NO_INT64, FloatArray, Int8Array, Int64Array
from ..evidence.below import EvidenceBelow
from ..rows import slots
from ..rows.columns import INTEGER_COLUMNS
from ..rows.reasons import NO_BLOCK, NO_REFERENCE, REFERENCE_GROWS
from ..rows.rows import Rows
from ..settings.evaluator import EvaluatorSettings

_SEQ = INTEGER_COLUMNS.index("seq")
_MEASURES = slice(slots.EVIDENCE, slots.EVIDENCE_BOUND + 1)
_NUMBERS = slice(slots.MEASURES + slots.EVIDENCE, slots.MEASURES + slots.EVIDENCE_BOUND + 1)
_CHOSEN = ("wanted", "blocks", "gap")
"""The settings of a detector, by the names that the detector gives them."""


class EvidenceColumns:
    """The detector of an evaluator, and the columns that rows read from it.

    Invariant: `_ends` has the `seq` of each block that became full in the present update, and `_table` a line
    of the columns of a row for each of these blocks; the first line is for rows before these blocks. `_why`
    has the reason for the nulls of each line. The end of a period that gives the bound has a line, too.
    """

    def __init__(self, settings: EvaluatorSettings) -> None:
        assert settings.evidence_below is not None
        self.detector = EvidenceBelow(
            settings.evidence_below, blocks=settings.evidence_blocks, gap=settings.block_gap
        )
        self._ends: Int64Array = NO_INT64
        self._table, self._why = self._latest(0)

    def load(self, data: bytes, seq: int) -> None:
        """Load a detector's state, after `seq` events; raises ValueError if the state has other settings."""
        detector = EvidenceBelow.from_bytes(data)
        is_alike = all(getattr(detector, name) == getattr(self.detector, name) for name in _CHOSEN)
        if not is_alike:
            found = ", ".join(f"{name} {getattr(detector, name)}" for name in _CHOSEN)
            raise ValueError(f"its evidence has other settings: {found}")
        if detector.events > seq:
            raise ValueError(f"its evidence has {detector.events} of {seq} events")
        self.detector = detector
        self._table, self._why = self._latest(seq - detector.events)

    def _latest(self, before: int) -> tuple[FloatArray, Int64Array]:
        """Return the line of columns for the detector's state, as one row.

        `before` is the number of events before the detector's first event.
        """
        detector = self.detector
        since = None if detector.since is None else before + detector.since
        line = [detector.evidence, since, detector.block_events, detector.bound]
        why = REFERENCE_GROWS if detector.learns else NO_REFERENCE if detector.bound is None else NO_BLOCK
        return np.array([line], np.float64), np.array([why])

    def follow(self, labels: Int8Array, scores: FloatArray, times: Int64Array | None, seq: int) -> None:
        """Give the events of an update to the detector, after `seq` events of earlier updates."""
        learnt = self.detector.learns
        blocks = self.detector.follow(labels, scores, times)
        before = seq + len(scores) - self.detector.events
        bound = np.full(len(blocks.ends), self.detector.bound, np.float64)  # None gives NaN
        newer = np.column_stack([blocks.evidence, before + blocks.since, blocks.events, bound])
        self._ends = seq + 1 + blocks.ends
        if learnt and not self.detector.learns:
            nothing = [np.nan, np.nan, np.nan, self.detector.bound]
            newer = np.concatenate([np.array([nothing], np.float64), newer])
            self._ends = np.insert(self._ends, 0, seq + 1 + blocks.learnt)
        self._table = np.concatenate([self._table, newer])
        why = NO_REFERENCE if self.detector.bound is None else NO_BLOCK
        self._why = np.concatenate([self._why, np.full(len(newer), why)])

    def settle(self) -> None:
        """Forget the blocks of the present update except the latest; the rows of the update are written."""
        self._ends, self._table, self._why = NO_INT64, self._table[-1:], self._why[-1:]

    def write(self, rows: Rows) -> None:
        """Write the columns of evidence into rows."""
        lines = np.searchsorted(self._ends, rows.integers[:, _SEQ], "right")
        found = self._table[lines]
        rows.numbers[:, _NUMBERS] = found
        rows.reasons[:, _MEASURES] = np.where(np.isnan(found), self._why[lines][:, None], 0)
