"""PairedFold: the reports of all learners of a fold at a checkpoint, in one record for `LearnerComparisons`.

Wire form: a frame (encoding/fields.py) with magic "RSPF"; payload, little-endian: fold, checkpoint, seq,
learners and measures (u32, u32, u64, u32, u32), time and due (i64), failures (u64 a learner), measures (f64,
learner by learner).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray, Int64Array
from ..encoding.fields import Reader, framed, unframed
from ..encoding.json import reading
from ..events.times import NO_TIME
from ..rows.columns import NUMBER_COLUMNS, in_columns
from .comparisons import Checkpoint
from .fold_report import FoldReport

MAGIC = b"RSPF"
VERSION = 1
_HEAD = struct.Struct("<IIQIIqq")


@dataclass(frozen=True, eq=False)
class PairedFold:
    """Checkpoint number `checkpoint` in a fold; seq, time and due as in `FoldReport`.

    measures  [learners, NUMBER_COLUMNS], NaN = no value
    failures  instances so far at which each learner failed
    """

    fold: int
    checkpoint: int
    seq: int
    time: int
    due: int
    measures: FloatArray
    failures: Int64Array

    @classmethod
    def of(cls, reports: list[FoldReport]) -> PairedFold:
        """Make a record of the reports of all learners, given in the order of learners."""
        first = reports[0]
        measures = np.full((len(reports), len(NUMBER_COLUMNS)), np.nan)
        for row, report in zip(measures, reports, strict=True):
            if len(report.measures):
                row[:] = report.measures
        failures = np.array([report.failures for report in reports], np.int64)
        return cls(first.fold, first.checkpoint, first.seq, first.time, first.due, measures, failures)

    @property
    def at(self) -> Checkpoint:
        """The checkpoint, with the grid point as its time, or else the greatest time."""
        moment = self.time if self.due == NO_TIME else self.due
        return Checkpoint(self.checkpoint, None if moment == NO_TIME else moment, self.seq)

    def pack(self) -> bytes:
        """Return the wire form."""
        head = _HEAD.pack(self.fold, self.checkpoint, self.seq, *self.measures.shape, self.time, self.due)
        failures, measures = self.failures.astype("<u8"), np.ascontiguousarray(self.measures, "<f8")
        return framed(MAGIC, VERSION, b"".join((head, failures.tobytes(), measures.tobytes())))

    @classmethod
    def unpack(cls, data: bytes) -> PairedFold:
        """Read the wire form. Raises one of the four `WireError`s for any other bytes."""
        reader = Reader(unframed(data, MAGIC, VERSION, "a checkpoint of a fold"))
        with reading("a checkpoint of a fold"):
            fold, checkpoint, seq, learners, columns, time, due = reader.numbers(_HEAD.format)
            failures = reader.array("<u8", learners).astype(np.int64)
            measures = in_columns(reader.array("<f8", learners * columns).reshape(learners, columns))
            reader.end()
        return cls(fold, checkpoint, seq, time, due, measures, failures)
