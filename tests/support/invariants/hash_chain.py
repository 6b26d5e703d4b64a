"""A small machine of a shard whose rows tell every mistake: a hash chain over what it was fed.

Its window is the last k events (or all), so its snapshot grows and stays as a real one does. A row comes
after every n-th event and at the end of the input; it carries a hash of the whole history, so that an
event lost, repeated, changed or out of order shows in all later rows.

A record is a kind byte and 8-byte words: E events, C the clock, X the end of the input.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rocsteady.core.errors import CorruptBytesError
from rocsteady.core.events.records import EndOfInput
from rocsteady.core.shard.machine import Pane

_HEAD = struct.Struct("<4sqqQqqq")
_MASK = (1 << 64) - 1
END = EndOfInput().pack()


def events(*values: int) -> bytes:
    """Return a record of events."""
    return b"E" + struct.pack(f"<{len(values)}q", *values)


def clock(time: int) -> bytes:
    """Return a record that says what time it is."""
    return b"C" + struct.pack("<q", time)


class ChainRow(NamedTuple):
    """Ordinal, events so far, the chain, the sum of the window, the pane."""

    row: int
    seq: int
    chain: int
    total: int
    pane: Pane | None


@dataclass
class ChainMachine:
    """See the head of this file. `at(place)` is called at the start and in the middle of an apply."""

    window: int | None = None
    every: int = 3
    pane: Pane | None = None
    at: Callable[[str], None] | None = None
    row: int = 0
    seq: int = 0
    chain: int = 1
    said: int = 0
    held: list[int] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        return {"events_applied": self.seq}

    def wakes_at(self) -> int | None:
        return None

    def apply(self, record: bytes) -> list[ChainRow]:
        if self.at:
            self.at("before apply")
        if record == END:
            rows = [self._emit()] if self.seq > self.said else []
        else:
            words = struct.unpack_from(f"<{len(record) // 8}q", record, 1)
            rows = []
            for index, word in enumerate(words):
                if self.at and index == len(words) // 2:
                    self.at("in apply")
                self.chain = (self.chain * 6364136223846793005 + word * 2 + 1) & _MASK
                if record[:1] == b"C":
                    self.chain ^= 0x5A5A
                    continue
                self.held.append(word)
                self.seq += 1
                if self.window and len(self.held) > self.window:
                    del self.held[0]
                if self.seq % self.every == 0:
                    rows.append(self._emit())
        if self.at:
            self.at("after apply")
        return rows

    def _emit(self) -> ChainRow:
        row = ChainRow(self.row, self.seq, self.chain, sum(self.held), self.pane)
        self.row += 1
        self.said = self.seq
        return row

    def to_bytes(self) -> bytes:
        start, end = self.pane or (0, 0)
        head = _HEAD.pack(b"CHAN", self.row, self.seq, self.chain, self.said, start, end)
        return head + struct.pack(f"<{len(self.held)}q", *self.held)

    def snapshot_bytes(self) -> int:
        return _HEAD.size + 8 * len(self.held)

    def gauges(self) -> dict[str, int]:
        return {}

    def live_bytes(self) -> int:
        return 200 + 40 * len(self.held)


@dataclass(frozen=True)
class ChainFactory:
    """Makes chain machines. Compares and pickles by its settings."""

    window: int | None = None
    every: int = 3
    at: Callable[[str], None] | None = None

    def warm_up(self) -> None:
        """Nothing is compiled."""

    def new(self, pane: Pane | None, key: str) -> ChainMachine:  # noqa: ARG002
        return ChainMachine(self.window, self.every, pane, self.at)

    def load(self, snapshot: bytes, pane: Pane | None, key: str) -> ChainMachine:  # noqa: ARG002
        magic, row, seq, chain, said, start, end = _HEAD.unpack_from(snapshot)
        if magic != b"CHAN" or (start, end) != (pane or (0, 0)):
            raise CorruptBytesError("not a snapshot of this chain")
        count = (len(snapshot) - _HEAD.size) // 8
        held = list(struct.unpack_from(f"<{count}q", snapshot, _HEAD.size))
        return ChainMachine(self.window, self.every, pane, self.at, row, seq, chain, said, held)


def undisturbed(factory: ChainFactory, records: list[bytes], pane: Any = None) -> list[ChainRow]:
    """Return the rows of one machine that lives through all records."""
    machine = factory.new(pane, "k")
    return [row for record in records for row in machine.apply(record)]
