"""A runner that goes wrong in every way that a runner may, for the state protocol of a shard.

Keys have items (events, and words of the clock). A bundle takes some keys on some worker, reads from each
key's committed position, cuts the items into records anew, applies them through that worker's protocol
and commits positions and cells together. On the way:

    a bundle fails      at any read, write, apply or cache put, in the middle of an apply, or when
                        everything is done but the commit; what it put out may have been seen all the same
    a retry             takes other keys, another worker, and cuts the items otherwise
    keys move           each worker has a cache of its own, and may be restarted with an empty one
    the job falls back  to an older checkpoint, positions and cells, while workers and caches live on
    a bag               is read in any order

What a run put out, without repeats, must be what an undisturbed machine puts out. Which machines are run, and
what they are fed, `Machines` says.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rocsteady.core.ids.sharding import shard_key
from rocsteady.core.shard.machine import MachineFactory
from rocsteady.core.shard.parts import PARTS
from rocsteady.core.shard.protocol import LiveMachine, MachineCache, Place, ShardCells, ShardProtocol

from tests.support.invariants.hash_chain import END, ChainFactory, ChainRow, clock, events

KEYS = tuple(shard_key(shard) for shard in range(3))

Item = tuple[str, Any]
"""Such as ("event", value), ("clock", time) or ("end", 0)."""


class Machines(Protocol):
    """What a simulation runs: one kind of machine, with settings of its own."""

    rooms: Sequence[int]
    """Bytes that a worker's cache may have."""

    batched: Sequence[str]
    """Kinds of items of which several may be one record."""

    def __init__(self, rng: random.Random) -> None:
        """Choose settings."""
        ...

    def factory(self, at: Callable[[str], None] | None) -> MachineFactory[Any]:
        """Return a factory of machines that call `at(place)` at the start and in the middle of an apply."""
        ...

    def items(self, rng: random.Random) -> list[Item]:
        """Return the input of a key, its end last."""
        ...

    def record(self, kind: str, values: Sequence[Any]) -> bytes:
        """Pack items of one kind into a record."""
        ...

    def told(self, output: Any) -> Iterable[tuple[Any, Any]]:
        """Return what an output says: identities, and what is said of each."""
        ...


class Chains:
    """Hash chains, whose rows tell every mistake."""

    rooms = (0, 700, 1 << 20)
    batched = ("event",)

    def __init__(self, rng: random.Random) -> None:
        self._window, self._every = rng.choice([None, 2, 9]), rng.choice([1, 2, 5])

    def factory(self, at: Callable[[str], None] | None) -> ChainFactory:
        return ChainFactory(self._window, self._every, at)

    def items(self, rng: random.Random) -> list[Item]:
        kinds = ["clock" if rng.random() < 0.2 else "event" for _ in range(rng.randint(1, 60))]
        return [*((kind, rng.getrandbits(40)) for kind in kinds), ("end", 0)]

    def record(self, kind: str, values: Sequence[Any]) -> bytes:
        return events(*values) if kind == "event" else clock(values[0]) if kind == "clock" else END

    def told(self, output: ChainRow) -> Iterable[tuple[Any, Any]]:
        yield output.row, output


class InjectedError(Exception):
    """A failure that the simulator planned."""


class WrongRowsError(AssertionError):
    """The rows differ from those of an undisturbed run."""


@dataclass
class Faults:
    """Raises at the n-th place that is passed; places are counted, whatever they are."""

    left: int = -1

    def at(self, place: str) -> None:
        if self.left == 0:
            self.left = -1
            raise InjectedError(place)
        self.left -= self.left > 0


@dataclass
class Stored:
    """Committed cells of one key."""

    snapshot: bytes | None = None
    log: tuple[bytes, ...] = ()
    token: bytes | None = None
    numbered: dict[int, tuple[bytes, ...]] = field(default_factory=dict)


@dataclass
class Traffic:
    """What went between worker and state, in bytes."""

    read: int = 0
    written: int = 0


class ValueView:
    """A value cell inside a bundle: reads once from the store, writes when the bundle commits."""

    def __init__(self, value: bytes | None, faults: Faults, traffic: Traffic) -> None:
        self._value, self._faults, self._traffic = value, faults, traffic
        self._local = False
        self.dirty = False

    def read(self) -> bytes | None:
        self._faults.at("read")
        if not self._local:
            self._traffic.read += len(self._value or b"")
            self._local = True
        return self._value

    def write(self, value: bytes) -> None:
        self._faults.at("before write")
        self._value, self._local, self.dirty = value, True, True
        self._faults.at("after write")

    def committed(self) -> bytes | None:
        self._traffic.written += len(self._value or b"") if self.dirty else 0
        return self._value


class LogView:
    """A bag inside a bundle; its order is nobody's promise."""

    def __init__(
        self, values: tuple[bytes, ...], faults: Faults, traffic: Traffic, rng: random.Random
    ) -> None:
        self._old, self._new = values, list[bytes]()
        self._faults, self._traffic, self._rng = faults, traffic, rng

    def read(self) -> Iterable[bytes]:
        self._faults.at("read")
        self._traffic.read += sum(map(len, self._old))
        values = [*self._old, *self._new]
        self._rng.shuffle(values)
        return values

    def add(self, value: bytes) -> None:
        self._faults.at("before write")
        self._new.append(value)
        self._faults.at("after write")

    def clear(self) -> None:
        self._faults.at("before write")
        self._old, self._new = (), []
        self._faults.at("after write")

    def committed(self) -> tuple[bytes, ...]:
        self._traffic.written += sum(map(len, self._new))
        return (*self._old, *self._new)


class NumberedView:
    """The numbered cells inside a bundle."""

    largest: int | None = None

    def __init__(
        self, stored: Stored, faults: Faults, traffic: Traffic, rng: random.Random, log_type: type[LogView]
    ) -> None:
        self._stored, self._rest, self._log_type = stored, (faults, traffic, rng), log_type
        self.opened: dict[int, LogView] = {}

    def cell(self, number: int) -> LogView:
        assert 0 <= number < PARTS
        if number not in self.opened:
            self.opened[number] = self._log_type(self._stored.numbered.get(number, ()), *self._rest)
        return self.opened[number]

    def committed(self) -> dict[int, tuple[bytes, ...]]:
        return self._stored.numbered | {number: cell.committed() for number, cell in self.opened.items()}


class FaultyCache(MachineCache):
    """A worker's cache that may fail around a put."""

    def __init__(self, max_bytes: int, faults: Faults) -> None:
        super().__init__(max_bytes)
        self._faults = faults

    def put(self, place: Place, live: LiveMachine[ChainRow]) -> None:
        self._faults.at("before put")
        super().put(place, live)
        self._faults.at("after put")


@dataclass
class Checkpoint:
    """What the runner committed: where each key's input is, and its cells."""

    positions: dict[str, int] = field(default_factory=dict)
    cells: dict[str, Stored] = field(default_factory=dict)


class Simulation:
    """One run with one seed. `protocol_type` and `cache_type` are what is tested."""

    def __init__(
        self,
        seed: int,
        protocol_type: type[ShardProtocol[Any]] = ShardProtocol,
        cache_type: type[FaultyCache] = FaultyCache,
        log_type: type[LogView] = LogView,
        machines: type[Machines] = Chains,
        numbered_type: type[NumberedView] | None = None,
    ) -> None:
        rng = self.rng = random.Random(seed)
        self.faults = Faults()
        self.traffic = Traffic()
        self.machines = machines(rng)
        self.factory = self.machines.factory(self.faults.at)
        self.items = {key: self.machines.items(rng) for key in KEYS[: rng.randint(1, 3)]}
        self._protocol_type, self._cache_type = protocol_type, cache_type
        self._log_type = log_type
        self._numbered_type = numbered_type
        self.workers = [self._worker() for _ in range(rng.randint(1, 3))]
        self.now = Checkpoint(dict.fromkeys(self.items, 0), {key: Stored() for key in self.items})
        self.checkpoints = [self.now]
        self.seen: dict[str, dict[Any, Any]] = {key: {} for key in self.items}

    def _worker(self) -> ShardProtocol[Any]:
        room = self.rng.choice(self.machines.rooms)
        return self._protocol_type(self.factory, self._cache_type(room, self.faults), "step")

    def run(self) -> None:
        """Run to the end of the input. Raises `WrongRowsError` if a row is not as it should be."""
        rng = self.rng
        trouble = rng.choice([0.3, 0.6])
        while any(self.now.positions[key] < len(items) for key, items in self.items.items()):
            if rng.random() < 0.05:
                self.workers[rng.randrange(len(self.workers))] = self._worker()
            if rng.random() < 0.06 and len(self.checkpoints) < 40:
                self.now = rng.choice(self.checkpoints[-4:])
            self.faults.left = rng.randrange(40) if rng.random() < trouble else -1
            self._bundle()
        self._compare()

    def _bundle(self) -> None:
        """Run one bundle; commit what it did, or nothing."""
        rng = self.rng
        protocol = rng.choice(self.workers)
        keys = rng.sample(list(self.items), rng.randint(1, len(self.items)))
        positions, cells = dict(self.now.positions), dict(self.now.cells)
        out: list[tuple[str, Any]] = []
        try:
            for key in keys:
                start = positions[key]
                taken = self.items[key][start : start + rng.randint(1, 12)]
                stored = cells[key]
                views = (
                    ValueView(stored.snapshot, self.faults, self.traffic),
                    self._log_type(stored.log, self.faults, self.traffic, rng),
                    ValueView(stored.token, self.faults, self.traffic),
                )
                parts = None
                if self._numbered_type is not None:
                    parts = self._numbered_type(stored, self.faults, self.traffic, rng, self._log_type)
                for record in self._cut(taken):
                    rows = protocol.apply(key, None, ShardCells(*views, parts), record)
                    out += [(key, row) for row in rows]
                positions[key] = start + len(taken)
                cells[key] = Stored(
                    views[0].committed(),
                    views[1].committed(),
                    views[2].committed(),
                    {} if parts is None else parts.committed(),
                )
            self.faults.at("before commit")
        except InjectedError:
            if rng.random() < 0.5:
                self._deliver(out)
            return
        self._deliver(out)
        self.now = Checkpoint(positions, cells)
        self.checkpoints.append(self.now)

    def _cut(self, items: list[Item]) -> list[bytes]:
        """Cut items into records, otherwise each time."""
        records: list[bytes] = []
        batch: list[Any] = []
        of = ""
        for kind, value in items:
            if batch and (kind != of or of not in self.machines.batched or self.rng.random() < 0.3):
                records.append(self.machines.record(of, batch))
                batch = []
            of = kind
            batch.append(value)
        return [*records, self.machines.record(of, batch)] if batch else records

    def _deliver(self, out: list[tuple[str, Any]]) -> None:
        """Take outputs as a sink does that drops repeats by identity; a repeat must say the same."""
        for key, output in out:
            for identity, said in self.machines.told(output):
                if self.seen[key].setdefault(identity, said) != said:
                    raise WrongRowsError(f"row {identity} of {key} comes in two forms")

    def _compare(self) -> None:
        for key, items in self.items.items():
            machine = self.machines.factory(None).new(None, key)
            outputs = [output for record in self._cut(items) for output in machine.apply(record)]
            expected = dict(told for output in outputs for told in self.machines.told(output))
            got = self.seen[key]
            if got != expected:
                raise WrongRowsError(f"{len(got)} rows of {key}, and {len(expected)} are right")
