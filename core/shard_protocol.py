"""The state protocol of a shard: how a live machine and the state that a runner commits stay one.

A runner keeps three cells for every (step, Beam window, key) and commits them with the bundle that
changed them, or throws the changes away and tries the bundle again, here or on another worker:

    snapshot    the machine's bytes as of some moment
    log         the records applied since, each behind its number 0, 1, 2, ..., 4 bytes little-endian
                (no runner promises the order of a bag)
    token       16 random bytes that name the committed state

Reading all of them for every bundle would cost as much as the state is large. So the live machine stays
in a cache of the process, and the token says whether it is the one that was committed: a warm shard
reads 16 bytes a bundle.

Invariant: snapshot + log rebuild the machine as it is after the last committed record, and a machine in
the cache equals that one whenever its token is the committed one. It rests on five rules; the
simulator in the tests finds wrong rows when any of the first four is broken.

1. A cached machine is used only if its token is the committed one. An absent token matches nothing.
   Tokens are random: one derived from counts names two different states when a retried bundle is cut
   otherwise than the bundle that failed.
2. A machine is taken OUT of the cache before it is touched and put back after the last write to a cell,
   under the new token. An error in between leaves nothing behind; the next bundle rebuilds.
3. Whatever changes the machine goes through here: the callbacks of timers too.
4. The log outgrows the snapshot: then a new snapshot replaces both (`_write`).
5. The cache is bounded in bytes (`MachineCache`); losing an entry costs a rebuild and nothing else.
"""

from __future__ import annotations

import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Any, Generic, Protocol

from .errors import CorruptBytesError
from .state_machine import MachineFactory, Output, Pane, StateMachine

_logger = logging.getLogger(__name__)

DEFAULT_CACHE_BYTES = 1 << 30
"""Live machines that a process keeps between bundles: 1 GiB, or 1,600 models of 10,000 events each."""

LARGE_SNAPSHOT_BYTES = 64 << 20
"""A shard whose snapshot is larger than this asks for more shards: it is read and written whole."""

TOKEN_BYTES = 16

Place = tuple[str, Pane | None, str]
"""What names a machine in a process: (step, Beam window, key)."""


class ValueCell(Protocol):
    """A cell that holds one value, or None."""

    def read(self) -> bytes | None:
        """Return the value; None if it was never written."""
        ...

    def write(self, value: bytes, /) -> None:
        """Replace the value."""
        ...


class LogCell(Protocol):
    """A cell that holds a bag of values, in no promised order."""

    def read(self) -> Iterable[bytes]:
        """Return every value."""
        ...

    def add(self, value: bytes, /) -> None:
        """Add a value; what is there is neither read nor rewritten."""
        ...

    def clear(self) -> None:
        """Drop every value."""
        ...


@dataclass(frozen=True)
class ShardCells:
    """The three cells of one (step, Beam window, key)."""

    snapshot: ValueCell
    log: LogCell
    token: ValueCell


@dataclass
class LiveMachine(Generic[Output]):
    """A machine between bundles.

    token        the committed state that it equals, if the bundle that left it was committed
    log_records  how many records that state's log holds, and
    log_bytes    how many bytes of records they are
    """

    machine: StateMachine[Output]
    token: bytes | None = None
    log_records: int = 0
    log_bytes: int = 0


class MachineCache:
    """The live machines of a process: least recently used first out, bounded in bytes, thread-safe.

    A machine larger than the bound is not kept at all, so that a bound of 0 rebuilds every time.
    """

    def __init__(self, max_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        self.max_bytes = max_bytes
        self._entries: OrderedDict[Place, tuple[LiveMachine[Any], int]] = OrderedDict()
        self._bytes = 0
        self._users: dict[str, int] = {}
        self._lock = Lock()

    def take(self, place: Place) -> LiveMachine[Any] | None:
        """Remove a machine and return it; None if it is not here. O(1)."""
        with self._lock:
            return self._remove(place)

    def put(self, place: Place, live: LiveMachine[Any]) -> None:
        """Keep a machine until it is taken or its room is needed. O(1), amortised."""
        size = live.machine.live_bytes()
        with self._lock:
            self._remove(place)
            if size > self.max_bytes:
                return
            self._entries[place] = (live, size)
            self._bytes += size
            while self._bytes > self.max_bytes:
                self._bytes -= self._entries.popitem(last=False)[1][1]

    def open(self, step: str) -> None:
        """Count one more user of a step."""
        with self._lock:
            self._users[step] = self._users.get(step, 0) + 1

    def close(self, step: str) -> None:
        """Count one user less; the last of a step takes its machines along. O(entries)."""
        with self._lock:
            self._users[step] = self._users.get(step, 1) - 1
            if self._users[step] <= 0:
                del self._users[step]
                for place in [place for place in self._entries if place[0] == step]:
                    self._remove(place)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def held_bytes(self) -> int:
        """How much the machines here take, as they said when they were put."""
        return self._bytes

    def _remove(self, place: Place) -> LiveMachine[Any] | None:
        live, size = self._entries.pop(place, (None, 0))
        self._bytes -= size
        return live


def _count_nothing(name: str, amount: int) -> None:
    pass


class ShardProtocol(Generic[Output]):
    """Applies records to the machine of a shard, through its cells and the cache of the process.

    `count(name, amount)` is told of snapshots_written, snapshot_bytes, log_bytes and rebuilds, and of
    what the machine counts. `held` is what the last machine that was fed holds, by name of the metric, and
    state_bytes, how long its snapshot would be.
    """

    def __init__(
        self,
        factory: MachineFactory[Output],
        cache: MachineCache,
        step: str,
        count: Callable[[str, int], None] = _count_nothing,
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
        """Feed one record to the machine of a key and return its outputs, all cells written.

        With keep=False the machine is not cached: its pane has ended, and little if anything will come.
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
        """Return what the last machine that was fed says; it looks at all that waits, so not every time."""
        return None if self._fed is None else self._fed.wakes_at()

    def _take(self, place: Place, cells: ShardCells) -> LiveMachine[Output]:
        """Return the machine of the committed state, out of the cache (rules 1 and 2)."""
        live = self._cache.take(place)
        committed = cells.token.read()
        if live is not None and committed is not None and live.token == committed:
            return live
        return self._rebuild(cells, place, committed)

    def _rebuild(self, cells: ShardCells, place: Place, committed: bytes | None) -> LiveMachine[Output]:
        """Return the machine that snapshot and log describe; what it puts out again is dropped."""
        snapshot = cells.snapshot.read()
        log = sorted((int.from_bytes(entry[:4], "little"), entry[4:]) for entry in cells.log.read())
        if [number for number, _ in log] != list(range(len(log))):
            raise CorruptBytesError(
                f"the log of a shard holds the records {[number for number, _ in log][:20]} where it "
                f"should hold 0 to {len(log) - 1}, each once: its state was damaged or put together "
                "from two jobs; restore a checkpoint or start afresh"
            )
        _, pane, key = place
        if snapshot is None:
            machine = self._factory.new(pane, key)
        else:
            machine = self._factory.load(snapshot, pane, key)
        for _, record in log:
            machine.apply(record)
        if snapshot is not None or log:
            self._count("rebuilds", 1)
        return LiveMachine(machine, committed, len(log), sum(len(record) for _, record in log))

    def _write(self, key: str, live: LiveMachine[Output], cells: ShardCells, record: bytes) -> None:
        """Log the record, or replace snapshot and log by a new snapshot (rule 4).

        Let b be the bytes of all records. A snapshot is written only when it is no longer than the
        records since the one before, this record among them; every record is since exactly one
        snapshot, so the snapshots add up to b at most. The log takes every record once or not at all:
        b at most, and 4 bytes a record. Together 2b + 20 bytes a record with its token, whatever the
        window does: 2.07b for batches of 20 events, which have some 280 bytes. A rebuild reads the
        snapshot and a log that is shorter than a snapshot of now.

        Measuring by the snapshot that is there (a log may grow to its size) writes 2.7b under a growing
        window, whose every snapshot is twice the last.
        """
        entry = live.log_records.to_bytes(4, "little") + record
        size = live.machine.snapshot_bytes()
        if size > LARGE_SNAPSHOT_BYTES and key not in self._warned:
            self._warned.add(key)
            _logger.warning(
                "the state of shard %r takes %d MB, and is read and written whole: give the job more "
                "shards (it then starts from an empty state)",
                key,
                size >> 20,
            )
        self.held = {**live.machine.gauges(), "state_bytes": size}
        if live.log_bytes + len(record) < size:
            cells.log.add(entry)
            live.log_records += 1
            live.log_bytes += len(record)
            self._count("log_bytes", len(entry))
            return
        snapshot = live.machine.to_bytes()
        cells.snapshot.write(snapshot)
        if live.log_records:
            cells.log.clear()
        live.log_records = live.log_bytes = 0
        self._count("snapshots_written", 1)
        self._count("snapshot_bytes", len(snapshot))

    def _new_token(self) -> bytes:
        """Return a name for the state as it is now that no other state has ever had."""
        return os.urandom(TOKEN_BYTES)
