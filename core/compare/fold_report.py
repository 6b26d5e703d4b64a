"""FoldReport: the report of a learner in a fold at a checkpoint: its measures, and its wrong predictions.

For each tested instance a report has one bit, and a score if AUCs are compared; never a whole prediction. All
learners of a fold test the same instances (`folds`), so that bits are paired by their places.

Wire form: a frame (encoding/fields.py) with magic "RSFR"; payload, little-endian: learner, fold, checkpoint
(u32), seq (u64), time, due (i64), failures (u64), digest and the lengths of the arrays (u32 each), the
arrays; bits are packed.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from ..arrays import BoolArray, FloatArray, Int8Array, Int64Array
from ..encoding.fields import Reader, framed, unframed
from ..encoding.json import reading, whole
from ..rows.columns import in_columns

MAGIC = b"RSFR"
VERSION = 1
_HEAD = struct.Struct("<IIIQqqQ7I")


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
            return cls._read(reader)

    @classmethod
    def _read(cls, reader: Reader) -> FoldReport:
        numbers = reader.numbers(_HEAD.format)
        learner, fold, checkpoint, seq, time, due, failures, digest = numbers[:8]
        measures, wrong, missing, labels, scores, times = numbers[8:]
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
