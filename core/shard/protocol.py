"""The state protocol of a shard: it keeps a live machine equal to the state that a runner commits.

A runner keeps these cells for every (step, Beam window, key). The runner commits the cells with the bundle
that changed them. Or it throws the changes away and tries the bundle again, here or on another worker:

    snapshot    the machine's bytes as of some moment; if they are many, an index of their parts
    log         the records applied since the snapshot, each behind its number 0, 1, 2, ..., 4 bytes
                little-endian (no runner promises the order of a bag)
    token       16 random bytes that name the committed state

A runner may also have numbered cells, for a large shard (`parts`). Each holds a part of the snapshot, and the
records of the log that `log` has no room for.

Reading all cells for every bundle would take time in proportion to the size of the state. So the live machine
stays in a cache of the process, and the token says whether the machine equals the committed state. A shard
whose machine is in the cache reads 16 bytes a bundle.

Invariant: snapshot + log rebuild the machine as it is after the last committed record. A machine in the cache
equals the rebuilt machine whenever its token is the committed token. The invariant rests on five rules; the
simulator in the tests finds wrong rows when any of the first four is broken.

1. A cached machine is used only if its token is the committed one. An absent token matches nothing.
   Tokens are random: a token derived from counts would name two different states when a retried bundle is
   cut otherwise than the bundle that failed.
2. A machine is taken OUT of the cache before it is touched. It is put back after the last write to a cell,
   under the new token. An error before that leaves no machine in the cache; the next bundle rebuilds it.
3. Every change of the machine goes through this module, also the callbacks of timers.
4. When the log outgrows the snapshot, a new snapshot replaces both (`_write`).
5. The cache is bounded in bytes (`MachineCache`); losing an entry costs a rebuild and nothing else.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Generic, Protocol

from ..errors import ConfigError, CorruptBytesError
from ..events.records import brings_state
from ..process.console import logger
from .machine import MachineFactory, Output, Pane, StateMachine
from .parts import PART_BYTES, PARTS, Index, bytes_in_cell, is_index, is_part, is_small, joined, split

_logger = logger(__name__)

DEFAULT_CACHE_BYTES = 1 << 30
"""The most bytes of live machines that a process keeps between bundles.

1 GiB is 1,600 models of 10,000 events.
"""

_MOST_LOG_BYTES = 1 << 30
"""The most bytes of records in a log: each numbered cell gets 32 MB of them."""

LARGE_SNAPSHOT_BYTES = 64 << 20
"""A shard with a longer snapshot advises the user to take more shards: a worker reads the whole snapshot
before it continues.
"""

LOG_BYTES = PART_BYTES
"""How many bytes of records the cell `log` holds; later records go into the numbered cells in turn.

A later version may lower this number, but not raise it: a `log` with fewer records counts as the whole log.
"""

TURN_BYTES = 1 << 20
"""How many bytes of records go into one numbered cell before the next cell has its turn."""

TOKEN_BYTES = 16

Place = tuple[str, Pane | None, str]
"""The key of a machine in a process: (step, Beam window, key)."""


class ValueCell(Protocol):
    """A cell for one value; None before the first write."""

    def read(self) -> bytes | None:
        """Return the value; None if no value was ever written."""

    def write(self, value: bytes, /) -> None:
        """Replace the value."""


class LogCell(Protocol):
    """A cell that holds a bag of values. A runner promises no order of the values."""

    def read(self) -> Iterable[bytes]:
        """Return every value of the bag."""

    def add(self, value: bytes, /) -> None:
        """Add a value; the values in the bag are neither read nor rewritten."""

    def clear(self) -> None:
        """Drop every value."""


class NumberedCells(Protocol):
    """The numbered cells of a key: bags, each reached only when it is asked for.

    largest  the most bytes of a message that the runner is sure to carry; None = no message carries a value
    """

    largest: int | None

    def cell(self, number: int) -> LogCell:
        """Return the bag of a number from 0 to `PARTS` - 1. A write to the bag counts at once."""


@dataclass(frozen=True)
class ShardCells:
    """The cells of one (step, Beam window, key). numbered = None: the runner has no numbered cells."""

    snapshot: ValueCell
    log: LogCell
    token: ValueCell
    numbered: NumberedCells | None = None


@dataclass
class LiveMachine(Generic[Output]):
    """A machine between bundles.

    token        names the committed state that the machine equals, if the bundle before was committed.
    log_records  number of records in the log of the committed state.
    log_bytes    number of bytes of these records.
    filled       the numbers of the cells that are not empty
    """

    machine: StateMachine[Output]
    token: bytes | None = None
    log_records: int = 0
    log_bytes: int = 0
    filled: set[int] = field(default_factory=set)


class MachineCache:
    """The live machines of a process. Bounded in bytes.

    The machines that were used least recently leave first. Thread-safe.

    A machine larger than the bound is not kept, so that with a bound of 0 every bundle rebuilds its machine.

    held_bytes  bytes of all machines in the cache; each machine counts with the `live_bytes` that it had when
                it was put
    """

    def __init__(self, max_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        self.max_bytes = max_bytes
        self._entries: OrderedDict[Place, tuple[LiveMachine[Any], int]] = OrderedDict()
        self.held_bytes = 0
        self._users: dict[str, int] = {}
        self._lock = Lock()

    def pop(self, place: Place) -> LiveMachine[Any] | None:
        """Remove a machine and return it; None if the machine is not in the cache. O(1)."""
        with self._lock:
            return self._remove(place)

    def put(self, place: Place, live: LiveMachine[Any]) -> None:
        """Keep a machine until `pop` takes it, or other machines need its room. O(1), amortised."""
        size = live.machine.live_bytes()
        with self._lock:
            self._remove(place)
            if size > self.max_bytes:
                return
            self._entries[place] = (live, size)
            self.held_bytes += size
            while self.held_bytes > self.max_bytes:
                self.held_bytes -= self._entries.popitem(last=False)[1][1]

    def open(self, step: str) -> None:
        """Count one more object that uses a step."""
        with self._lock:
            self._users[step] = self._users.get(step, 0) + 1

    def close(self, step: str) -> None:
        """Count one object less that uses a step.

        When the last object of a step closes, the machines of the step leave the cache. O(entries).
        """
        with self._lock:
            self._users[step] = self._users.get(step, 1) - 1
            if self._users[step] <= 0:
                del self._users[step]
                for place in [place for place in self._entries if place[0] == step]:
                    self._remove(place)

    def __len__(self) -> int:
        return len(self._entries)

    def _remove(self, place: Place) -> LiveMachine[Any] | None:
        live, size = self._entries.pop(place, (None, 0))
        self.held_bytes -= size
        return live


class ShardProtocol(Generic[Output]):
    """Applies records to the machine of a shard, through its cells and the cache of the process.

    `count(name, amount)` is called for snapshots_written, snapshot_bytes, log_bytes and rebuilds, and for the
    machine's own counts. `held` has the gauges of the machine that was fed last, by name of the metric, and
    state_bytes, the length of its snapshot.
    """

    def __init__(
        self,
        factory: MachineFactory[Output],
        cache: MachineCache,
        step: str,
        count: Callable[[str, int], None] = lambda _name, _amount: None,
    ) -> None:
        self._factory = factory
        self._cache = cache
        self._step = step
        self._count = count
        self._warned: set[str] = set()
        self._fed: StateMachine[Output] | None = None
        self.held: dict[str, int] = {}

    def apply(
        self, key: str, pane: Pane | None, cells: ShardCells, record: bytes, keep: bool = True
    ) -> list[Output]:
        """Feed one record to the machine of a key, write all cells, and return the machine's outputs.

        With keep=False the machine does not go into the cache: its pane has ended, and few further records
        will come.
        """
        place = (self._step, pane, key)
        live = self._take(place, cells)
        before = live.machine.counts()
        outputs = live.machine.apply(record)
        self._fed = live.machine
        for name, amount in live.machine.counts().items():
            self._count(name, amount - before[name])
        self._write(key, live, cells, record)
        live.token = self._new_token()
        cells.token.write(live.token)
        if keep:
            self._cache.put(place, live)
        return outputs

    def wakes_at(self) -> int | None:
        """Return `wakes_at` of the machine that was fed last.

        The call looks at all waiting events, so callers make it rarely.
        """
        return None if self._fed is None else self._fed.wakes_at()

    def _take(self, place: Place, cells: ShardCells) -> LiveMachine[Output]:
        """Return the machine of the committed state, from the cache if its token fits (rules 1 and 2)."""
        live = self._cache.pop(place)
        committed = cells.token.read()
        if live is not None and committed is not None and live.token == committed:
            return live
        return self._rebuild(cells, place, committed)

    def _rebuild(self, cells: ShardCells, place: Place, committed: bytes | None) -> LiveMachine[Output]:
        """Rebuild the machine from snapshot and log. The outputs of the log's records are dropped."""
        _, pane, key = place
        snapshot, entries, filled = self._read(cells, key)
        log = sorted((int.from_bytes(entry[:4], "little"), entry[4:]) for entry in entries)
        if [number for number, _ in log] != list(range(len(log))):
            raise CorruptBytesError(
                f"the log of a shard holds the records {[number for number, _ in log][:20]} where it "
                f"should hold 0 to {len(log) - 1}, each once: its state was damaged or put together "
                "from two jobs; restore a checkpoint or start afresh"
            )
        if snapshot is None:
            machine = self._factory.new(pane, key)
        else:
            machine = self._factory.load(snapshot, pane, key)
        for _, record in log:
            machine.apply(record)
        if snapshot is not None or log:
            self._count("rebuilds", 1)
        return LiveMachine(machine, committed, len(log), sum(len(record) for _, record in log), filled)

    def _read(self, cells: ShardCells, key: str) -> tuple[bytes | None, list[bytes], set[int]]:
        """Return the snapshot, the entries of the log, and the numbers of the cells that are not empty."""
        snapshot, entries = cells.snapshot.read(), [*cells.log.read()]
        index = Index.unpack(snapshot) if snapshot is not None and is_index(snapshot) else None
        is_full = sum(len(entry) - 4 for entry in entries) >= LOG_BYTES
        wanted = PARTS if is_full else 0 if index is None else index.cells
        if cells.numbered is None:
            if index is not None:
                raise ConfigError(
                    f"the snapshot of shard {key!r} is in {index.parts} parts, and this runner gives no "
                    "access to their cells; go on with the runner and the version of Beam that wrote them"
                )
            return snapshot, entries, set()
        filled, parts = set[int](), list[bytes]()
        for number in range(wanted):
            for entry in cells.numbered.cell(number).read():
                filled.add(number)
                (parts if is_part(entry) else entries).append(entry)
        return (snapshot if index is None else joined(index, parts, key)), entries, filled

    def _write(self, key: str, live: LiveMachine[Output], cells: ShardCells, record: bytes) -> None:
        """Add the record to the log, or replace snapshot and log by a new snapshot (rule 4).

        Let b be the bytes of all records. A snapshot is written only when it is no longer than the records
        since the last snapshot, this record among them. Every record lies behind exactly one snapshot, so the
        snapshots add up to b at most. The log takes every record once or not at all: b bytes at most, and 4
        bytes for each record. Together this is 2b + 20 bytes for each record with its token, whatever the
        window does: 2.07b for batches of 20 events, which have some 280 bytes. A rebuild reads the snapshot
        and a log that is shorter than a new snapshot would be.

        If instead the log might grow to the size of the stored snapshot, a growing window would write 2.7b:
        each of its snapshots is twice as long as the last.
        """
        size = live.machine.snapshot_bytes()
        if size > LARGE_SNAPSHOT_BYTES and key not in self._warned:
            self._warned.add(key)
            _logger.warning(
                "the state of shard %r takes %d MB, and a worker reads all of it to go on: more shards are "
                "quicker (rocsteady state export, then state import --shards N, keeps the state)",
                key,
                size >> 20,
            )
        self.held = {**live.machine.gauges(), "state_bytes": size}
        if not brings_state(record) and live.log_bytes + len(record) < min(size, _MOST_LOG_BYTES):
            self._add_to_log(live, cells, record)
        else:
            self._write_snapshot(key, live, cells)

    def _add_to_log(self, live: LiveMachine[Output], cells: ShardCells, record: bytes) -> None:
        entry = live.log_records.to_bytes(4, "little") + record
        beyond = live.log_bytes - LOG_BYTES
        if beyond < 0 or cells.numbered is None:
            cells.log.add(entry)
        else:
            number = beyond // TURN_BYTES % PARTS
            cells.numbered.cell(number).add(entry)
            live.filled.add(number)
        live.log_records += 1
        live.log_bytes += len(record)
        self._count("log_bytes", len(entry))

    def _write_snapshot(self, key: str, live: LiveMachine[Output], cells: ShardCells) -> None:
        snapshot, numbered = live.machine.to_bytes(), cells.numbered
        if numbered is not None:
            for number in live.filled:
                numbered.cell(number).clear()
        live.filled = set()
        if numbered is None or is_small(snapshot):
            cells.snapshot.write(snapshot)
        else:
            if numbered.largest is not None and bytes_in_cell(len(snapshot)) > numbered.largest:
                raise ConfigError(
                    f"the state of shard {key!r} takes {len(snapshot):,} bytes, and this runner carries "
                    f"{PARTS * numbered.largest:,} of a shard: give the job more shards (of an export: "
                    "rocsteady state import --shards N), or a shorter window"
                )
            index, parts = split(snapshot)
            for number, part in parts:
                numbered.cell(number).add(part)
                live.filled.add(number)
            cells.snapshot.write(index.pack())
        if live.log_records:
            cells.log.clear()
        live.log_records = live.log_bytes = 0
        self._count("snapshots_written", 1)
        self._count("snapshot_bytes", len(snapshot))

    def _new_token(self) -> bytes:
        """Return a new token, which no other state has ever had."""
        return os.urandom(TOKEN_BYTES)
