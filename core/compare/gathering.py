"""Gathering: collects records of several senders at numbered checkpoints until all have sent theirs.

`GatheringMachine` is the base of the state machines that compare such records.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from ..encoding.fields import Reader
from ..events.records import MAGIC as WORD_MAGIC
from ..events.records import unpack_record

Output = TypeVar("Output")

_COUNTS = struct.Struct("<QQ")
_ENTRY = struct.Struct("<QIQ")
_FEW_HUNDRED_BYTES = 500


class Gathering:
    """Waits for a record of each of n senders at every checkpoint, and yields complete checkpoints in order.

    Records may come in any order. A second record of the same sender and checkpoint is dropped.

    >>> gathering = Gathering(2)
    >>> for sender, checkpoint in ((0, 0), (0, 1), (1, 1), (1, 0)):
    ...     gathering.add(sender, checkpoint, b"%d of %d" % (checkpoint, sender))
    >>> list(gathering.complete())
    [[b'0 of 0', b'0 of 1'], [b'1 of 0', b'1 of 1']]
    """

    def __init__(self, senders: int) -> None:
        self._senders = senders
        self._next = 0
        self._waiting: dict[tuple[int, int], bytes] = {}  # by (checkpoint, sender)
        self.nbytes = 0
        """Bytes of all records that wait."""

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, sender: int, checkpoint: int, record: bytes) -> None:
        """Take in a record. O(1)."""
        if checkpoint >= self._next and (checkpoint, sender) not in self._waiting:
            self._waiting[checkpoint, sender] = record
            self.nbytes += len(record)

    def complete(self) -> Iterator[list[bytes]]:
        """Yield the records, in order of senders, of each checkpoint that is complete, with all before it."""
        senders = range(self._senders)
        while all((self._next, sender) in self._waiting for sender in senders):
            found = [self._waiting.pop((self._next, sender)) for sender in senders]
            self._next += 1
            self.nbytes -= sum(map(len, found))
            yield found

    def write(self) -> bytes:
        """Return the wire form, from which `read` makes an equal gathering."""
        parts = [_COUNTS.pack(self._next, len(self))]
        for (checkpoint, sender), record in sorted(self._waiting.items()):
            parts += [_ENTRY.pack(checkpoint, sender, len(record)), record]
        return b"".join(parts)

    @property
    def written_bytes(self) -> int:
        """Length of `write()` in bytes. O(1)."""
        return _COUNTS.size + _ENTRY.size * len(self) + self.nbytes

    def read(self, reader: Reader, place_of: Callable[[bytes], tuple[int, int]]) -> None:
        """Load the wire form, as written by `write`. Raises ValueError for other bytes.

        place_of  returns the sender and the checkpoint of a record; raises for a record that no sender sends
        """
        self._next, records = reader.numbers(_COUNTS.format)
        for _ in range(records):
            checkpoint, sender, size = reader.numbers(_ENTRY.format)
            if checkpoint < self._next or sender >= self._senders:
                raise ValueError(f"sender {sender} waits at checkpoint {checkpoint} of {self._next}")
            record = bytes(reader.read(size))
            if place_of(record) != (sender, checkpoint):
                raise ValueError(f"a record of another place waits for sender {sender}")
            self.add(sender, checkpoint, record)
        if len(self) != records:
            raise ValueError("a record waits twice")


class GatheringMachine(Generic[Output]):
    """A state machine that compares the records of some senders when all have reached a checkpoint.

    It ignores the end of the input and other control records: a checkpoint is complete when all senders have
    sent their records of it.
    """

    def __init__(self, senders: int) -> None:
        self._waiting = Gathering(senders)
        self._head_bytes = len(self.to_bytes()) - self._waiting.written_bytes - self._held_bytes

    def apply(self, record: bytes) -> list[Output]:
        """Take a packed record; return the results of the checkpoints that are now complete.

        Raises a `WireError` for bytes that are no record. Raises InputError for a record that belongs
        elsewhere or contradicts records of the other senders.
        """
        if record[:4] == WORD_MAGIC:
            unpack_record(record)
            return []
        self._waiting.add(*self._place_of(record), record)
        return [output for records in self._waiting.complete() for output in self._compared(records)]

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

    def wakes_at(self) -> int | None:
        """Return None: this state machine needs no clock."""
        return None

    def snapshot_bytes(self) -> int:
        """Return the length of `to_bytes()` in bytes. O(1)."""
        return self._head_bytes + self._waiting.written_bytes + self._held_bytes

    def counts(self) -> dict[str, int]:
        """Return no counts: the step that makes the records counts them."""
        return {}

    def gauges(self) -> dict[str, int]:
        """Return how many records wait for records of other senders."""
        return {"reports_waiting": len(self._waiting)}

    def live_bytes(self) -> int:
        """Estimate the memory in bytes. O(1)."""
        return _FEW_HUNDRED_BYTES * (2 + len(self._waiting)) + self._waiting.nbytes + self._held_bytes

    @property
    def _held_bytes(self) -> int:
        """Bytes that the machine holds and writes beside the records that wait."""
        return 0
