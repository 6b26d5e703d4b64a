"""A machine that exports its state while the job runs, and imports the state of another job.

First, the export. Every reader sends a `StateMarker` behind its packets to every shard. A shard holds back
the records that follow a partition's marker until the markers of all partitions have come, or the other
partitions have ended. By then the shard has applied exactly the packets before the markers. Now the shard
gives its snapshot with the readers' positions, which came in the markers, and applies the records that it
held back. (This is Chandy and Lamport's cut, as Flink aligns its barriers.)

The cut needs the packets of a partition in their order, which no runner promises. So a packet that comes
before its turn waits here, and a marker never arrives after a later packet was applied.

A machine hands the marker on to the next step behind all its outputs (`CutMachine.pass_on`), so that the
states of both steps agree.

Second, the import. A shard may begin with the state of another job, which comes in a `StateImport`. Records
that come before the state wait, and are applied after it, in the order in which they came.

If two exports overlap, only the later export is completed: a shard drops the earlier export when a partition
sends the marker of the later export.

All outputs are a function of the records, so a shard that is rebuilt in between behaves exactly the same.
"""

from __future__ import annotations

import heapq
import json
import struct
from collections.abc import Callable
from operator import itemgetter
from typing import Generic, Protocol, TypeVar

from ..encoding.fields import framed, packed_bytes, packed_text
from ..events.records import (
    Batch,
    EndOfInput,
    EndOfPartition,
    Heartbeat,
    Record,
    StateImport,
    StateMarker,
    unpack_record,
)
from ..events.wire import UNORDERED
from ..shard.machine import StateMachine
from ..shard.order import Ledger
from ..shard.partitions import packets_lost
from .exported import VERSION, WAITING_MAGIC, ShardState, WaitingState, cut_of

Output = TypeVar("Output")


class CutMachine(StateMachine[Output], Protocol[Output]):
    """A machine whose input comes in partitions of numbered packets.

    kind  the name of the step in an export
    """

    kind: str

    def receive(self, content: Record, record: bytes) -> list[Output]:
        """Apply one record, already read as `content`, and return the outputs.

        In all other ways the method is `StateMachine.apply`.
        """

    @property
    def ledger(self) -> Ledger:
        """The record of what the partitions of the input have sent."""

    def waiting(self) -> dict[str, int]:
        """Return how many records wait for later ones, by their kind: "events" or "labels"."""

    def pass_on(self, marker: StateMarker) -> list[Output]:
        """Return the marker for all shards of the next step.

        There the marker counts as a packet, with a number of its own.
        """


class ExportingMachine(Generic[Output]):
    """A machine around a `CutMachine`: it exports its state at a cut, and may begin with an imported state.

    machine  the wrapped machine, new or loaded from a snapshot.
    load     a function that makes a machine from a snapshot.
    shard    a function that returns the shard's number and the number of shards, for the exported state.
    awaits   whether the state of another job comes in a `StateImport`; then all records wait until the state
             has come. Any other `StateImport` is ignored

    If no record waits and no state is awaited, the bytes of this machine are the bytes of `machine`.
    """

    def __init__(
        self,
        machine: CutMachine[Output],
        load: Callable[[bytes], CutMachine[Output]],
        shard: Callable[[], tuple[int, int]],
        *,
        awaits: bool = False,
    ) -> None:
        self._machine = machine
        self._load = load
        self._shard = shard
        self._awaits = awaits
        self._stopped = False
        self._export = ""
        self._markers: dict[int, StateMarker] = {}
        # by partition: (number of packets before a record, the record's place in the order of arrival, the
        # record)
        self._waiting: dict[int, list[tuple[int, int, bytes]]] = {}
        self._came = 0
        self._waiting_bytes = 0
        self._counts = {f"{what}_{fate}": 0 for what in machine.waiting() for fate in ("taken_up", "kept")}

    def apply(self, record: bytes) -> list[Output | ShardState]:
        """Apply one record, or let it wait. Return the machine's outputs, and the shard's state at a cut.

        Raises what the machine raises, and the errors of reading an imported state.
        """
        content = unpack_record(record)
        if self._stopped:
            return []
        if isinstance(content, StateImport):
            return self._begin_with(content) if self._awaits else []
        if self._awaits:
            self._wait(0, 0, record)
            return []
        return self._in_turn(content, record)

    def _begin_with(self, brought: StateImport) -> list[Output | ShardState]:
        self._machine = self._load(brought.snapshot)
        self._awaits = False
        self._note("taken_up")
        records = [record for held in self._waiting.values() for *_, record in sorted(held)]
        self._waiting, self._waiting_bytes = {}, 0
        return [output for record in records for output in self.apply(record)]

    def _note(self, fate: str) -> None:
        for what, number in self._machine.waiting().items():
            self._counts[f"{what}_{fate}"] += number

    # ---- the order of a partition

    def _in_turn(self, content: Record, record: bytes) -> list[Output | ShardState]:
        """Apply a record if its turn has come, and the records that waited for it.

        Otherwise keep it until its turn.
        """
        place = _place_of(content)
        if place is None:
            outputs: list[Output | ShardState] = [*self._machine.receive(content, record)]
            if isinstance(content, EndOfInput) and self._waiting:
                raise packets_lost(f"number {min(self._waiting)}")
            return outputs
        partition, before = place
        if before > self._limit(partition):
            self._wait(partition, before, record)
            return []
        outputs = self._pass(content, record)
        return outputs + self._follow(partition)

    def _limit(self, partition: int) -> int:
        """Return how many packets may come before a record of this partition that may apply now."""
        marker = self._markers.get(partition)
        if marker is not None:
            return marker.sequence
        ledger = self._machine.ledger
        return _ALL if ledger.has_ended(partition) else ledger.received(partition)

    def _wait(self, partition: int, before: int, record: bytes) -> None:
        """Keep a record until its turn.

        A record that waits for an imported state has partition 0, and no packets before it.
        """
        self._came += 1
        heapq.heappush(self._waiting.setdefault(partition, []), (before, self._came, record))
        self._waiting_bytes += len(record)

    def _follow(self, partition: int) -> list[Output | ShardState]:
        """Apply the waiting records whose turn has come.

        These are records of this partition, or records that the export no longer holds back.
        """
        outputs: list[Output | ShardState] = []
        open_ = [partition] if self._waiting else []
        while open_ and not self._stopped:
            number = open_.pop()
            waiting = self._waiting.get(number, [])
            while waiting and waiting[0][0] <= self._limit(number):
                record = heapq.heappop(waiting)[2]
                self._waiting_bytes -= len(record)
                outputs += self._pass(unpack_record(record), record)
            if not waiting:
                self._waiting.pop(number, None)
            open_ = [each for each, held in self._waiting.items() if held[0][0] <= self._limit(each)]
        return outputs

    def _pass(self, content: Record, record: bytes) -> list[Output | ShardState]:
        """Let the machine apply a record; a marker also begins to hold back the records of its partition."""
        if isinstance(content, StateMarker):
            is_new = self._machine.ledger.received(content.partition) == content.sequence
            if is_new and content.id >= self._export:
                if content.id > self._export:
                    self._markers.clear()  # a later export replaces the earlier export
                self._export = content.id
                self._markers[content.partition] = content
        outputs: list[Output | ShardState] = [*self._machine.receive(content, record)]
        if self._markers and self._is_aligned():
            outputs += self._give_state()
        return outputs

    # ---- the cut

    def _is_aligned(self) -> bool:
        return all(
            number in self._markers or self._machine.ledger.has_ended(number)
            for number in range(self._machine.ledger.count or 0)
        )

    def _give_state(self) -> list[Output | ShardState]:
        markers = self._markers
        first = next(iter(markers.values()))
        self._stopped = any(marker.stops for marker in markers.values())
        positions = {number: (marker.source, marker.position) for number, marker in markers.items()}
        passed = StateMarker("", 0, 1, 0, first.id, first.folder, cut_of(positions), stops=self._stopped)
        outputs: list[Output | ShardState] = [*self._machine.pass_on(passed)]
        step, snapshot = self._machine.kind, self._machine.to_bytes()
        outputs.append(ShardState(first.id, first.folder, step, *self._shard(), positions, snapshot))
        self._markers, self._export = {}, ""
        if self._stopped:
            self._waiting, self._waiting_bytes = {}, 0
            self._note("kept")
        return outputs

    # ---- as a machine

    def wakes_at(self) -> int | None:
        """Return the moment at which the machine needs a `Clock`; None if it waits for no moment."""
        return None if self._awaits or self._stopped else self._machine.wakes_at()

    def gauges(self) -> dict[str, int]:
        """Return the gauges of the wrapped machine."""
        return self._machine.gauges()

    def counts(self) -> dict[str, int]:
        """Return the machine's counts since it was made or loaded, with two more of each kind of record.

        `..._taken_up` counts the records that waited in the imported state, and `..._kept` those that waited
        when the export stopped the job. Neither kind of record was applied yet.
        """
        return {**self._machine.counts(), **self._counts}

    def snapshot_bytes(self) -> int:
        """Return about how many bytes `to_bytes` would give, in O(1)."""
        return self._waiting_bytes + self._machine.snapshot_bytes()

    def live_bytes(self) -> int:
        """Return about how many bytes of memory the machine takes, in O(1)."""
        return self._waiting_bytes + self._machine.live_bytes()

    def to_bytes(self) -> bytes:
        """Return a snapshot of everything that later outputs depend on.

        If no record waits, it is the snapshot of the wrapped machine. Else the wire form is a frame
        (encoding/fields.py) with magic "RSXW". The payload says whether the machine awaits its state, whether
        it has stopped, which markers have come, and of which export they are (text, JSON). Then come the
        snapshot of the machine (u64 length, bytes) and the records that wait (u32 count; partition i32,
        packets before it i64, u64 length, bytes each).
        """
        waiting = [
            (partition, before, record)
            for partition, held in sorted(self._waiting.items())
            for before, _, record in sorted(held, key=itemgetter(1))
        ]
        if not (self._awaits or self._stopped or waiting or self._markers):
            return self._machine.to_bytes()
        head = {
            "awaits": self._awaits,
            "stopped": self._stopped,
            "export": self._export,
            "markers": [marker.pack().hex() for marker in self._markers.values()],
        }
        snapshot = b"" if self._awaits or self._stopped else self._machine.to_bytes()
        parts = [packed_text(json.dumps(head)), packed_bytes(snapshot), struct.pack("<I", len(waiting))]
        for partition, before, record in waiting:
            parts += [struct.pack("<iq", partition, before), packed_bytes(record)]
        return framed(WAITING_MAGIC, VERSION, b"".join(parts))

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        new: Callable[[], CutMachine[Output]],
        load: Callable[[bytes], CutMachine[Output]],
        shard: Callable[[], tuple[int, int]],
    ) -> ExportingMachine[Output]:
        """Rebuild a machine that behaves exactly as the machine that gave the bytes.

        new  a function that makes a machine which has seen no record

        Raises what `load` raises, or a `WireError` for other bytes.
        """
        if data[:4] != WAITING_MAGIC:
            return cls(load(data), load, shard)
        waiting = WaitingState.unpack(data)
        self = cls(load(waiting.snapshot) if waiting.snapshot else new(), load, shard, awaits=waiting.awaits)
        self._stopped, self._export = waiting.stopped, waiting.export
        self._markers = {marker.partition: marker for marker in waiting.markers}
        for partition, before, record in waiting.records:
            self._wait(partition, before, record)
        return self


_ALL = 2**63 - 1


def _place_of(content: Record) -> tuple[int, int] | None:
    """Return a record's partition and how many packets come before the record.

    None if the record has no such place.
    """
    if isinstance(content, Heartbeat | EndOfPartition):
        return content.partition, content.packets
    if isinstance(content, StateMarker):
        return content.partition, content.sequence
    if isinstance(content, Batch):
        head = content.head
        return None if head.sequence == UNORDERED else (head.partition, head.sequence)
    return None
