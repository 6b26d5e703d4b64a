"""`GatheringMachine`: the base of the state machines that compare the records of several senders.

It collects the records of numbered checkpoints until all senders have sent theirs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Generic, TypeVar

from ..encoding.fields import Reader
from ..events.records import MAGIC as WORD_MAGIC
from ..events.records import unpack_record

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

    def __init__(self, senders: int) -> None:
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
        """Return a snapshot."""
        raise NotImplementedError

    def _packed_waiting(self) -> bytes:
        """Return the wire form of the records that wait, for `_read_waiting`."""
        parts = [_COUNTS.pack(self._next, len(self._waiting))]
        for (checkpoint, sender), record in sorted(self._waiting.items()):
            parts += [_ENTRY.pack(checkpoint, sender, len(record)), record]
        return b"".join(parts)

    def _read_waiting(self, reader: Reader) -> None:
        """Load what `_packed_waiting` returned. Raises ValueError for other bytes."""
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
