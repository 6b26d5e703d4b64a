"""What a fold of a learner says at a checkpoint of the stream: its measures, and what it got wrong.

Of a tested instance two learners' folds exchange a bit, and a score where AUCs are compared; never whole
predictions. All learners of a fold test the same instances (`folds`), so that bits pair by their places.

Wire form: a frame (encoding/frames.py) with magic "RSFR"; payload, little-endian: learner, fold, checkpoint
(u32), seq (u64), time, due (i64), failures (u64), digest and the lengths of the arrays (u32 each), the
arrays; bits are packed.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from ..arrays import BoolArray, FloatArray, Int8Array, Int64Array
from ..encoding.fields import Reader
from ..encoding.frames import framed, unframed
from ..encoding.json import reading, whole
from ..rows.columns import in_columns

MAGIC = b"RSFR"
VERSION = 1
_HEAD = struct.Struct("<IIIQqqQ7I")


@dataclass(frozen=True, eq=False)
class FoldReport:
    """Checkpoint number `checkpoint`, from 0, of a learner (by its place among all) in a fold.

    seq       instances of the stream up to it, whoever tested them; time: the greatest of theirs, NO_TIME =
              none; due: the grid point, of checkpoints on a grid of times
    measures  float64, the NUMBER_COLUMNS of the row of the window; empty where nothing was tested yet
    failures  instances so far at which the learner raised an error or predicted what is no prediction
    digest    crc32 of the ids' hashes of all that the fold has tested, in order: the same for all learners
    wrong     bool[n]: which of the instances that the fold tested since the checkpoint before, in order
    missing   bool[n]: at which of them it failed; empty for none
    labels    int8[n] of them, 1 and 0,
    scores    float64[n], any number where it failed, and
    times     int64[n]; each empty where nobody asks for it
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
        """Which instances have a prediction."""
        return ~self.missing if len(self.missing) else np.ones(len(self), np.bool_)

    def pack(self) -> bytes:
        """Return the wire form: an eighth of a byte an instance, and 9 or 17 where scores are exchanged."""
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
        """Read the wire form. Raises one of the four `WireError`s where the bytes are anything else."""
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
