"""The records of a fold at a checkpoint, for the machines that compare learners.

`FoldReport` is the report of one learner: its measures, and its wrong predictions. For each tested instance a
report has one bit, and a score if AUCs are compared; never a whole prediction. All learners of a fold test
the same instances (`folds`), so that bits are paired by their places. Wire form: a frame
(encoding/fields.py) with magic "RSFR"; payload, little-endian: learner, fold, checkpoint (u32), seq (u64),
time, due (i64), failures (u64), digest and the lengths of the arrays (u32 each), the arrays; bits are packed.

`PairedFold` has the measures of all learners in one record, for `LearnerComparisons`. Wire form: a frame with
magic "RSPF"; payload, little-endian: fold, checkpoint, seq, learners and measures (u32, u32, u64, u32, u32),
time and due (i64), failures (u64 a learner), measures (f64, learner by learner).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from ..arrays import BoolArray, FloatArray, Int8Array, Int64Array
from ..encoding.fields import Reader, framed, unframed
from ..encoding.json import reading, whole
from ..events.times import NO_TIME
from ..rows.columns import NUMBER_COLUMNS, in_columns
from .comparisons import Checkpoint

MAGIC, PAIRED_MAGIC = b"RSFR", b"RSPF"
VERSION = 1
_HEAD, _PAIRED_HEAD = struct.Struct("<IIIQqqQ7I"), struct.Struct("<IIQIIqq")


@dataclass(frozen=True, eq=False)
class FoldReport:
    """Checkpoint number `checkpoint`, from 0, of a learner (by its place among all learners) in a fold.

    The arrays have an entry for each of the n instances that the fold tested since the checkpoint before.

    seq       number of instances of the stream up to the checkpoint, in all folds; time: their greatest time,
              NO_TIME = no times; due: the grid point, of checkpoints on a grid of times
    measures  float64, the NUMBER_COLUMNS of the row of the window; empty before the first tested instance
    failures  instances so far at which the learner raised an error or returned no valid prediction
    digest    crc32 of the ids' hashes of all instances tested by the fold, in order: equal for all learners
    wrong     bool[n]: whether the prediction was wrong
    missing   bool[n]: whether the learner failed; empty if it never did
    labels    int8[n], 1 and 0; empty if not needed
    scores    float64[n], of no meaning where the learner failed; empty if not needed
    times     int64[n]; empty if not needed
    """

    learner: int
    fold: int
    checkpoint: int
    seq: int
    time: int
    due: int
    failures: int
    digest: int
    measures: FloatArray
    wrong: BoolArray
    missing: BoolArray
    labels: Int8Array
    scores: FloatArray
    times: Int64Array

    def __len__(self) -> int:
        return len(self.wrong)

    @property
    def answered(self) -> BoolArray:
        """Whether each instance has a prediction, bool[n]."""
        return ~self.missing if len(self.missing) else np.ones(len(self), np.bool_)

    def pack(self) -> bytes:
        """Return the wire form: an eighth of a byte an instance, with scores 9 or 17 bytes more."""
        sizes = [len(each) for each in (self.measures, self.wrong, self.missing, self.labels, self.scores)]
        head = _HEAD.pack(
            self.learner, self.fold, self.checkpoint, self.seq, self.time, self.due, self.failures,
            self.digest, *sizes, len(self.times),
        )  # fmt: skip
        arrays = (
            np.ascontiguousarray(self.measures, "<f8"), np.packbits(self.wrong), np.packbits(self.missing),
            np.ascontiguousarray(self.labels, np.int8), np.ascontiguousarray(self.scores, "<f8"),
            np.ascontiguousarray(self.times, "<i8"),
        )  # fmt: skip
        return framed(MAGIC, VERSION, b"".join((head, *(array.tobytes() for array in arrays))))

    @classmethod
    def unpack(cls, data: bytes) -> FoldReport:
        """Read the wire form. Raises one of the four `WireError`s for any other bytes."""
        reader = Reader(unframed(data, MAGIC, VERSION, "the report of a fold"))
        with reading("the report of a fold"):
            *numbers, measures, wrong, missing, labels, scores, times = reader.numbers(_HEAD.format)
            learner, fold, checkpoint, seq, time, due, failures, digest = numbers
            _ = whole(seq), whole(failures)
            if not {missing, labels, scores, times} <= {0, wrong}:
                raise ValueError(f"arrays of the lengths {[wrong, missing, labels, scores, times]}")

            def bits(count: int) -> BoolArray:
                return np.unpackbits(reader.array("u1", -(-count // 8)), count=count).astype(np.bool_)

            report = cls(
                learner, fold, checkpoint, seq, time, due, failures, digest,
                in_columns(reader.array("<f8", measures)),
                bits(wrong), bits(missing), reader.array("i1", labels),
                reader.array("<f8", scores), reader.array("<i8", times),
            )  # fmt: skip
            reader.end()
        return report


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
        shape = self.measures.shape
        head = _PAIRED_HEAD.pack(self.fold, self.checkpoint, self.seq, *shape, self.time, self.due)
        failures, measures = self.failures.astype("<u8"), np.ascontiguousarray(self.measures, "<f8")
        return framed(PAIRED_MAGIC, VERSION, b"".join((head, failures.tobytes(), measures.tobytes())))

    @classmethod
    def unpack(cls, data: bytes) -> PairedFold:
        """Read the wire form. Raises one of the four `WireError`s for any other bytes."""
        reader = Reader(unframed(data, PAIRED_MAGIC, VERSION, "a checkpoint of a fold"))
        with reading("a checkpoint of a fold"):
            fold, checkpoint, seq, learners, columns, time, due = reader.numbers(_PAIRED_HEAD.format)
            failures = reader.array("<u8", learners).astype(np.int64)
            measures = in_columns(reader.array("<f8", learners * columns).reshape(learners, columns))
            reader.end()
        return cls(fold, checkpoint, seq, time, due, measures, failures)
