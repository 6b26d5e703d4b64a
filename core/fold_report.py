"""What a fold of a learner says at a checkpoint of the stream: its measures, and what it got wrong.

Of a tested instance two learners' folds exchange a bit, and a score where AUCs are compared; never whole
predictions. All learners of a fold test the same instances (`folds`), so that bits pair by their places.

Wire form, little-endian: magic "RSFR", version u8, reserved u8, crc32 of the rest u32; then the length of a
JSON head u32, the head, and the arrays that it announces.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .errors import CorruptBytesError, ForeignBytesError, FutureVersionError, TruncatedBytesError
from .events import FloatArray, Int8Array, Int64Array

MAGIC = b"RSFR"
VERSION = 1
_HEAD = struct.Struct("<4sBBII")

Bits = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class FoldReport:
    """Checkpoint number `checkpoint`, from 0, of a learner (by its place among all) in a fold.

    seq       instances of the stream up to it, whoever tested them; time: the greatest of theirs, NO_TIME =
              none; due: the grid point, of checkpoints on a grid of times
    measures  float64, the NUMBER_COLUMNS of the row of the window; empty where nothing was tested yet
    failures  instances so far at which the learner raised an error or predicted what is no prediction
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
    measures: FloatArray
    wrong: Bits
    missing: Bits
    labels: Int8Array
    scores: FloatArray
    times: Int64Array

    def __len__(self) -> int:
        return len(self.wrong)

    @property
    def answered(self) -> Bits:
        """Which instances have a prediction."""
        return ~self.missing if len(self.missing) else np.ones(len(self), np.bool_)

    def pack(self) -> bytes:
        """Return the wire form: an eighth of a byte an instance, and 9 or 17 where scores are exchanged."""
        numbers = (self.learner, self.fold, self.checkpoint, self.seq, self.time, self.due, self.failures)
        arrays = (
            np.ascontiguousarray(self.measures, "<f8"), np.packbits(self.wrong), np.packbits(self.missing),
            np.ascontiguousarray(self.labels, np.int8), np.ascontiguousarray(self.scores, "<f8"),
            np.ascontiguousarray(self.times, "<i8"),
        )  # fmt: skip
        sizes = [len(each) for each in (self.measures, self.wrong, self.missing, self.labels, self.scores)]
        head = json.dumps([*numbers, *sizes, len(self.times)]).encode()
        body = b"".join((head, *(array.tobytes() for array in arrays)))
        crc = zlib.crc32(body)
        return _HEAD.pack(MAGIC, VERSION, 0, crc, len(head)) + body

    @classmethod
    def unpack(cls, data: bytes) -> FoldReport:
        """Read the wire form. Raises one of the four `WireError`s where the bytes are anything else."""
        if bytes(data[:4]) != MAGIC[: len(data)] or not data:
            raise ForeignBytesError(f"{len(data)} bytes are not the report of a fold")
        if len(data) < _HEAD.size:
            raise TruncatedBytesError(f"the report of a fold ends after {len(data)} bytes, inside its head")
        _, version, reserved, crc, length = _HEAD.unpack_from(data)
        if not 0 < version <= VERSION:
            raise FutureVersionError(
                f"the report of a fold has version {version}: this rocsteady reads up to {VERSION}"
            )
        body = data[_HEAD.size :]
        if reserved or zlib.crc32(body) != crc:
            raise CorruptBytesError("the report of a fold fails its checksum; it was damaged or cut short")
        try:
            return cls._read(json.loads(body[:length]), body[length:])
        except (ValueError, TypeError, OverflowError) as damage:
            raise CorruptBytesError(f"the report of a fold contradicts itself: {damage}") from damage

    @classmethod
    def _read(cls, head: list[int], arrays: bytes) -> FoldReport:
        learner, fold, checkpoint, seq, time, due, failures, *sizes = map(int, head)
        measures, wrong, missing, labels, scores, times = sizes
        if min(learner, fold, checkpoint, seq, failures, *sizes) < 0:
            raise ValueError("a number below 0")
        if not {missing, labels, scores, times} <= {0, wrong}:
            raise ValueError(f"arrays of the lengths {sizes}")
        at = 0

        def array(count: int, dtype: str) -> npt.NDArray[np.generic]:
            nonlocal at
            found = np.frombuffer(arrays, dtype, count, at)
            at += found.nbytes
            return found

        def bits(count: int) -> Bits:
            return np.unpackbits(array(-(-count // 8), "u1").astype(np.uint8), count=count).astype(np.bool_)

        found = cls(
            learner, fold, checkpoint, seq, time, due, failures,
            array(measures, "<f8").astype(np.float64), bits(wrong), bits(missing),
            array(labels, "i1").astype(np.int8), array(scores, "<f8").astype(np.float64),
            array(times, "<i8").astype(np.int64),
        )  # fmt: skip
        if at != len(arrays):
            raise ValueError(f"{len(arrays) - at} bytes too many")
        return found
