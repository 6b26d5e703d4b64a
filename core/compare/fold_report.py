"""The records of a fold at a checkpoint, and the base of the machines that compare learners by these records.

`FoldReport` is the report of one learner: its measures, and its wrong predictions. For each tested instance a
report has one bit, and a score if AUCs are compared; a report never has a whole prediction. All learners of a
fold test the same instances (`folds`), so that bits are paired by their places. Wire form: a frame
(encoding/fields.py) with magic "RSFR"; payload, little-endian: learner, fold, checkpoint (u32), seq (u64),
time, due (i64), failures (u64), digest and the lengths of the arrays (u32 each), the arrays; bits are packed.

`PairedFold` has the measures of all learners in one record, for `LearnerComparisons`. Wire form: a frame with
magic "RSPF"; payload, little-endian: fold, checkpoint, seq, learners and measures (u32, u32, u64, u32, u32),
time and due (i64), failures (u64 a learner), measures (f64, learner by learner).

`GatheringMachine` is the base of the state machines. It collects the records of numbered checkpoints until
all senders have sent their records.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Generic, Self, TypeVar

import numpy as np

from ..arrays import BoolArray, FloatArray, Int8Array, Int64Array
from ..encoding.fields import Reader, framed, packed_text, unframed
from ..encoding.json import reading, whole
from ..events.records import MAGIC as WORD_MAGIC
from ..events.records import unpack_record
from ..events.times import NO_TIME
from ..rows.columns import NUMBER_COLUMNS
from .comparison_settings import ComparisonSettings
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
    measures  float64, the NUMBER_COLUMNS of the row of the window; empty before the first tested instance. Of
              learners that give a score of each class: the numbers of the row of all classes, and
              MEANS_NUMBERS
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
                reader.array("<f8", measures),
                bits(wrong), bits(missing), reader.array("i1", labels),
                reader.array("<f8", scores), reader.array("<i8", times),
            )  # fmt: skip
            reader.end()
        return report


@dataclass(frozen=True, eq=False)
class PairedFold:
    """Checkpoint number `checkpoint` in a fold; seq, time and due as in `FoldReport`.

    measures  [learners, columns], NaN = no value; the columns of `FoldReport.measures`
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
    def of(cls, reports: list[FoldReport], columns: int = len(NUMBER_COLUMNS)) -> PairedFold:
        """Make a record of the reports of all learners, given in the order of learners.

        columns  how many measures the reports have, if they have any
        """
        first = reports[0]
        measures = np.full((len(reports), columns), np.nan)
        for row, report in zip(measures, reports, strict=True):
            if len(report.measures):
                row[:] = report.measures
        failures = np.array([report.failures for report in reports], np.int64)
        return cls(first.fold, first.checkpoint, first.seq, first.time, first.due, measures, failures)

    @property
    def at(self) -> Checkpoint:
        """The checkpoint; its time is the grid point, or without a grid the greatest time."""
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
            measures = reader.array("<f8", learners * columns).reshape(learners, columns)
            reader.end()
        return cls(fold, checkpoint, seq, time, due, measures, failures)


Output = TypeVar("Output")

_COUNTS = struct.Struct("<QQ")
_ENTRY = struct.Struct("<QIQ")
_FEW_HUNDRED_BYTES = 500


class GatheringMachine(Generic[Output]):
    """A state machine that compares the records of some senders when all have reached a checkpoint.

    Records may come in any order; checkpoints are compared in order of their numbers. A second record of the
    same sender and checkpoint is dropped. The machine ignores the end of the input and other control records:
    a checkpoint is complete when all senders have sent their records for it.
    """

    _magic: ClassVar[bytes]
    _what: ClassVar[str]
    """The magic of the machine's snapshots, and their name in errors."""

    def __init__(self, settings: ComparisonSettings, senders: int) -> None:
        self.settings = settings
        self._senders = range(senders)
        self._next = 0
        self._waiting: dict[tuple[int, int], bytes] = {}  # by (checkpoint, sender)
        self._waiting_bytes = 0
        self._head_bytes = len(self.to_bytes()) - self._held_bytes

    def apply(self, record: bytes) -> list[Output]:
        """Take a packed record; return the results of the checkpoints that are now complete.

        Raises a `WireError` for bytes that are no record. Raises InputError for a record that belongs
        elsewhere or contradicts records of the other senders.
        """
        outputs: list[Output] = []
        if record[:4] == WORD_MAGIC:
            unpack_record(record)
            return outputs
        self._wait(*self._place_of(record), record)
        while all((self._next, sender) in self._waiting for sender in self._senders):
            found = [self._waiting.pop((self._next, sender)) for sender in self._senders]
            self._next += 1
            self._waiting_bytes -= sum(map(len, found))
            outputs += self._compared(found)
        return outputs

    def _wait(self, sender: int, checkpoint: int, record: bytes) -> None:
        """Hold a record until its checkpoint is complete. O(1)."""
        if checkpoint >= self._next and (checkpoint, sender) not in self._waiting:
            self._waiting[checkpoint, sender] = record
            self._waiting_bytes += len(record)

    def _place_of(self, record: bytes) -> tuple[int, int]:
        """Return the sender and the checkpoint of a record. Raises the errors of `apply`."""
        raise NotImplementedError

    def _compared(self, records: list[bytes]) -> Iterable[Output]:
        """Return the results of a checkpoint from the records of all senders, in order of senders."""
        raise NotImplementedError

    # ---- state

    def to_bytes(self) -> bytes:
        """Return a snapshot: a frame around the settings (text) and the result of `_write`."""
        content = packed_text(self.settings.to_json()), *self._write()
        return framed(self._magic, VERSION, b"".join(content))

    def _loaded(self, data: bytes) -> Self:
        """Load a snapshot into this new machine, and return the machine.

        Raises OtherConfigurationError if the snapshot has other settings, a `WireError` for any other bytes.
        """
        reader = Reader(unframed(data, self._magic, VERSION, self._what))
        with reading(self._what):
            self.settings.check(reader.text())
            self._read(reader)
            reader.end()
        return self

    def _write(self) -> list[bytes]:
        """Return the wire form of the records that wait, for `_read`."""
        parts = [_COUNTS.pack(self._next, len(self._waiting))]
        for (checkpoint, sender), record in sorted(self._waiting.items()):
            parts += [_ENTRY.pack(checkpoint, sender, len(record)), record]
        return parts

    def _read(self, reader: Reader) -> None:
        """Load the state that `_write` returned. Raises ValueError for other bytes."""
        self._next, records = reader.numbers(_COUNTS.format)
        for _ in range(records):
            checkpoint, sender, size = reader.numbers(_ENTRY.format)
            if checkpoint < self._next or sender not in self._senders:
                raise ValueError(f"sender {sender} waits at checkpoint {checkpoint} of {self._next}")
            record = bytes(reader.read(size))
            if self._place_of(record) != (sender, checkpoint):
                raise ValueError(f"a record of another place waits for sender {sender}")
            self._wait(sender, checkpoint, record)
        if len(self._waiting) != records:
            raise ValueError("a record waits twice")

    def wakes_at(self) -> int | None:
        """Return None: this state machine needs no clock."""
        return None

    def snapshot_bytes(self) -> int:
        """Return the length of `to_bytes()` in bytes. O(1)."""
        waiting = _ENTRY.size * len(self._waiting) + self._waiting_bytes
        return self._head_bytes + waiting + self._held_bytes

    def counts(self) -> dict[str, int]:
        """Return no counts: the step that makes the records already counts them."""
        return {}

    def gauges(self) -> dict[str, int]:
        """Return how many records wait for records of other senders."""
        return {"reports_waiting": len(self._waiting)}

    def live_bytes(self) -> int:
        """Estimate the memory in bytes. O(1)."""
        return _FEW_HUNDRED_BYTES * (2 + len(self._waiting)) + self._waiting_bytes + self._held_bytes

    @property
    def _held_bytes(self) -> int:
        """Bytes that the machine holds and writes, besides the records that wait."""
        return 0
