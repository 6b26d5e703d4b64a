"""`GatheringMachine`: the base of the state machines that compare the records of several senders.

It collects the records of numbered checkpoints until all senders have sent theirs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import ClassVar, Generic, Self, TypeVar

from ..encoding.fields import Reader, framed, packed_text, unframed
from ..encoding.json import reading
from ..events.records import MAGIC as WORD_MAGIC
from ..events.records import unpack_record
from .settings import ComparisonSettings

VERSION = 1

Output = TypeVar("Output")

_COUNTS = struct.Struct("<QQ")
_ENTRY = struct.Struct("<QIQ")
_FEW_HUNDRED_BYTES = 500


class GatheringMachine(Generic[Output]):
    """A state machine that compares the records of some senders when all have reached a checkpoint.

    Records may come in any order; checkpoints are compared in theirs. A second record of the same sender and
    checkpoint is dropped. The machine ignores the end of the input and other control records: a checkpoint is
    complete when all senders have sent their records of it.
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
        """Return the sender and the checkpoint of a record. Raises as `apply` does."""
        raise NotImplementedError

    def _compared(self, records: list[bytes]) -> Iterable[Output]:
        """Return the results of a checkpoint from the records of all senders, in order of senders."""
        raise NotImplementedError

    # ---- state

    def to_bytes(self) -> bytes:
        """Return a snapshot: a frame around the settings (text) and what `_write` returns."""
        content = packed_text(self.settings.to_json()), *self._write()
        return framed(self._magic, VERSION, b"".join(content))

    def _loaded(self, data: bytes) -> Self:
        """Take over a snapshot.

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
        """Load what `_write` returned. Raises ValueError for other bytes."""
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
        """Return no counts: the step that makes the records counts them."""
        return {}

    def gauges(self) -> dict[str, int]:
        """Return how many records wait for records of other senders."""
        return {"reports_waiting": len(self._waiting)}

    def live_bytes(self) -> int:
        """Estimate the memory in bytes. O(1)."""
        return _FEW_HUNDRED_BYTES * (2 + len(self._waiting)) + self._waiting_bytes + self._held_bytes

    @property
    def _held_bytes(self) -> int:
        """Bytes that the machine holds and writes beside the records that wait."""
        return 0
