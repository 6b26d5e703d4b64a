"""A large shard keeps its snapshot in parts and its log in several cells, by the rules of a small one."""

from __future__ import annotations

import random

import pytest
from rocsteady.core.errors import ConfigError, CorruptBytesError, FutureVersionError
from rocsteady.core.shard import parts as snapshot_parts
from rocsteady.core.shard import protocol as shard_protocol
from rocsteady.core.shard.parts import Index, bytes_in_cell, cells_for, is_index, is_part, joined, split
from rocsteady.core.shard.protocol import MachineCache, ShardCells, ShardProtocol

from tests.support.invariants.hash_chain import ChainFactory, ChainRow, events, undisturbed
from tests.support.invariants.simulator import (
    Faults,
    FaultyCache,
    LogView,
    NumberedView,
    Simulation,
    Stored,
    Traffic,
    ValueView,
    WrongRowsError,
)
from tests.support.thorough import examples

Protocol = ShardProtocol[ChainRow]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot is large from 100 bytes on, and a log from 64."""
    monkeypatch.setattr(snapshot_parts, "PART_BYTES", 100)
    monkeypatch.setattr(shard_protocol, "LOG_BYTES", 64)
    monkeypatch.setattr(shard_protocol, "TURN_BYTES", 32)


class PartsKept(LogView):
    """A cell is not cleared before another part goes there."""

    def clear(self) -> None:
        pass


class PartsAtOnce(NumberedView):
    """What is written to a numbered cell stays, whatever becomes of the bundle."""

    def cell(self, number: int) -> LogView:
        for opened, view in self.opened.items():
            self._stored.numbered[opened] = view.committed()
        return super().cell(number)


class NoSpill(NumberedView):
    """What the cell `log` has no room for is lost."""

    def cell(self, number: int) -> LogView:
        self.opened.setdefault(number, _PartsOnly(self._stored.numbered.get(number, ()), *self._rest))
        return super().cell(number)


class _PartsOnly(LogView):
    def add(self, value: bytes) -> None:
        if is_part(value):
            super().add(value)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("block", range(2))
def test_rows_are_those_of_an_undisturbed_run_whatever_the_runner_does(block: int) -> None:
    for seed in range(1000 * block, 1000 * block + examples(500)):
        Simulation(seed, numbered_type=NumberedView).run()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("log_type", "numbered_type"),
    [(PartsKept, NumberedView), (LogView, PartsAtOnce), (LogView, NoSpill)],
    ids=["parts kept", "parts outside of the bundle", "log lost"],
)
def test_the_simulator_finds_parts_that_are_of_two_states(
    log_type: type[LogView], numbered_type: type[NumberedView]
) -> None:
    wrong = 0
    for seed in range(1000):
        try:
            Simulation(seed, Protocol, FaultyCache, log_type, numbered_type=numbered_type).run()
        except (WrongRowsError, CorruptBytesError):
            wrong += 1
        if wrong == 4:
            return
    pytest.fail(f"{wrong} of 1000 runs went wrong")


def apply(
    protocol: Protocol,
    stored: Stored,
    records: list[bytes],
    traffic: Traffic | None = None,
    *,
    has: bool = True,
) -> tuple[Stored, list[ChainRow]]:
    """Apply records in one bundle that is committed; the runner has numbered cells or not."""
    traffic = traffic or Traffic()
    faults, rng = Faults(), random.Random(1)
    snapshot, token = ValueView(stored.snapshot, faults, traffic), ValueView(stored.token, faults, traffic)
    log = LogView(stored.log, faults, traffic, rng)
    numbered = NumberedView(stored, faults, traffic, rng, LogView)
    cells = ShardCells(snapshot, log, token, numbered if has else None)
    rows = [row for record in records for row in protocol.apply("k", None, cells, record)]
    after = Stored(snapshot.committed(), log.committed(), token.committed(), numbered.committed())
    return after, rows


def records(count: int, size: int = 5) -> list[bytes]:
    return [events(*range(size * i, size * i + size)) for i in range(count)]


@pytest.mark.usefixtures("small")
def test_a_state_written_whole_goes_on_in_parts_and_back_when_it_is_small(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    factory, sent = ChainFactory(40, 3), records(60)
    stored, rows = apply(Protocol(factory, MachineCache(), "before"), Stored(), sent[:30], has=False)
    assert len(stored.snapshot or b"") > 100
    assert not stored.numbered
    after, more = apply(Protocol(factory, MachineCache(), "after"), stored, sent[30:])
    assert is_index(after.snapshot)
    assert after.numbered
    assert rows + more == undisturbed(factory, sent)
    with pytest.raises(ConfigError, match=r"shard 'k' is in \d+ parts.*no access"):
        apply(Protocol(factory, MachineCache(), "without"), after, sent[:1], has=False)
    monkeypatch.setattr(snapshot_parts, "PART_BYTES", 1_000)
    shrunk, _ = apply(Protocol(factory, MachineCache(), "smaller"), after, records(20))
    assert not is_index(shrunk.snapshot)
    assert not any(shrunk.numbered.values())


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("harm", ["a part lost", "a part of another", "a part twice", "a byte changed"])
def test_a_torn_set_of_parts_is_named(harm: str) -> None:
    factory = ChainFactory(None, 3)
    earlier, _ = apply(Protocol(factory, MachineCache(), "step"), Stored(), records(60))
    other, _ = apply(Protocol(factory, MachineCache(), "step"), Stored(), records(60, 4))
    (first, *_) = earlier.numbered[1]
    others = {
        "a part lost": (),
        "a part of another": other.numbered[1],
        "a part twice": (first, first),
        "a byte changed": (first[:-1] + b"?",),
    }
    torn = Stored(earlier.snapshot, earlier.log, earlier.token, earlier.numbered | {1: others[harm]})
    with pytest.raises(CorruptBytesError, match="snapshot of shard 'k' is torn"):
        apply(Protocol(factory, MachineCache(), "step"), torn, records(1))


def test_small_shards_reach_no_numbered_cell() -> None:
    traffic, stored = Traffic(), Stored()
    protocol = Protocol(ChainFactory(20, 3), MachineCache(0), "step")
    for record in records(200):
        stored, _ = apply(protocol, stored, [record], traffic)
    assert not stored.numbered


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("window", [None, 100])
def test_state_written_in_parts_is_within_the_bound(window: int | None) -> None:
    traffic, stored, sent = Traffic(), Stored(), 0
    protocol = Protocol(ChainFactory(window, 10), MachineCache(), "step")
    for record in records(1_000, 40):
        stored, _ = apply(protocol, stored, [record], traffic)
        sent += len(record)
    # A part of 100 bytes has a head of 22; one of 4 MB as well.
    assert traffic.written <= 2.2 * 1.22 * sent


def test_a_shard_that_cannot_be_carried_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_parts, "PART_BYTES", 100)
    monkeypatch.setattr(NumberedView, "largest", 150)
    protocol = Protocol(ChainFactory(1_000, 3), MachineCache(), "step")
    with pytest.raises(ConfigError, match=r"shard 'k' takes \d,\d+ bytes.*carries 4,800.*more shards"):
        apply(protocol, Stored(), records(500))


def test_parts_have_the_length_that_there_are_cells_for() -> None:
    whole = bytes(range(256)) * 40
    index, parts = split(whole)
    assert (index.cells, index.parts) == (1, 1)
    assert joined(index, (part for _, part in parts), "k") == whole
    large = bytes(3 * snapshot_parts.PART_BYTES + 1)
    index, parts = split(large)
    found = [*parts]
    assert {cell for cell, _ in found} == set(range(index.cells)) == set(range(4))
    assert max(len(part) for _, part in found) <= snapshot_parts.PIECE_BYTES + 22
    assert joined(index, (part for _, part in reversed(found)), "k") == large
    assert cells_for(1 << 30) == 32
    assert bytes_in_cell(1 << 30) == 32 << 20
    assert Index.unpack(index.pack()) == index
    with pytest.raises(FutureVersionError, match="version 9"):
        Index.unpack(b"RSXI\x09" + index.pack()[5:])
    with pytest.raises(CorruptBytesError, match="7 bytes"):
        Index.unpack(index.pack()[:7])
