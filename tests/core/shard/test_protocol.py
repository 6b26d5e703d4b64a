"""The state protocol of a shard gives the rows of an undisturbed run, whatever a runner does.

Each rule of `core/shard/protocol.py` is broken, in `broken_protocols`, to see that the simulator would know.
"""

from __future__ import annotations

import logging
import pickle
import random
import struct
import threading

import numpy as np
import pytest
from rocsteady.core.errors import CorruptBytesError
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import TextColumn
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.settings.windows import AllEvents, EveryEvents, LastEvents
from rocsteady.core.shard import protocol as shard_protocol
from rocsteady.core.shard.protocol import LiveMachine, MachineCache, ShardCells, ShardProtocol
from rocsteady.transforms.evaluate.shards import TableFactory

from tests.support.invariants.broken_protocols import BROKEN
from tests.support.invariants.hash_chain import (
    END,
    ChainFactory,
    ChainMachine,
    ChainRow,
    clock,
    events,
    undisturbed,
)
from tests.support.invariants.simulator import (
    Faults,
    LogView,
    Simulation,
    Stored,
    Traffic,
    ValueView,
    WrongRowsError,
)
from tests.support.thorough import examples

Protocol = ShardProtocol[ChainRow]


class OldYardstick(Protocol):
    """Rule 4: the log may grow to the size of the snapshot that is there."""

    def _write(self, key: str, live: LiveMachine[ChainRow], cells: ShardCells, record: bytes) -> None:
        del key
        old = len(cells.snapshot.read() or b"")
        if live.log_bytes + len(record) < old:
            cells.log.add(struct.pack("<I", live.log_records) + record)
            live.log_records, live.log_bytes = (
                live.log_records + 1,
                live.log_bytes + len(record),
            )
        else:
            cells.snapshot.write(live.machine.to_bytes())
            cells.log.clear()
            live.log_records = live.log_bytes = 0


@pytest.mark.parametrize("block", range(4))
def test_rows_are_those_of_an_undisturbed_run_whatever_the_runner_does(block: int) -> None:
    for seed in range(1000 * block, 1000 * block + examples(1000)):
        Simulation(seed).run()


@pytest.mark.slow
@pytest.mark.parametrize("rule", BROKEN)
def test_the_simulator_finds_a_protocol_with_one_rule_broken(rule: str) -> None:
    wrong = 0
    for seed in range(1000):
        try:
            Simulation(seed, *BROKEN[rule]).run()
        except (WrongRowsError, CorruptBytesError):
            wrong += 1
        if wrong == 4:
            return
    pytest.fail(f"{rule}: {wrong} of 1000 runs went wrong")


def cells_of(stored: Stored, traffic: Traffic) -> tuple[ValueView, LogView, ValueView]:
    faults = Faults()
    return (
        ValueView(stored.snapshot, faults, traffic),
        LogView(stored.log, faults, traffic, random.Random(1)),
        ValueView(stored.token, faults, traffic),
    )


def apply_bundle(
    protocol: Protocol, stored: Stored, traffic: Traffic, records: list[bytes], key: str = "k"
) -> tuple[Stored, list[ChainRow]]:
    """Apply records in one bundle that is committed."""
    views = cells_of(stored, traffic)
    rows = [row for r in records for row in protocol.apply(key, None, ShardCells(*views), r)]
    return Stored(views[0].committed(), views[1].committed(), views[2].committed()), rows


@pytest.mark.slow
@pytest.mark.parametrize("batch", [20, 100, 3000])
@pytest.mark.parametrize("window", [1000, None], ids=["sliding", "growing"])
def test_state_written_is_at_most_twice_the_records_and_a_token_each(window: int | None, batch: int) -> None:
    protocol = Protocol(ChainFactory(window, 10), MachineCache(), "step")
    traffic, stored, sent = Traffic(), Stored(), 0
    count = 40_000 // batch
    for bundle in range(count):
        record = events(*range(bundle, bundle + batch))
        sent += len(record)
        stored, _ = apply_bundle(protocol, stored, traffic, [record])
    assert traffic.written <= 2 * sent + 20 * count
    assert traffic.written <= 2.2 * sent
    assert traffic.read == 16 * (count - 1), "a warm shard reads its token and nothing else"
    logged = sum(len(entry) - 4 for entry in stored.log)
    assert logged < 9 * 40_000 if window is None else logged < 8 * 1000 + 200


@pytest.mark.slow
@pytest.mark.parametrize("window", [LastEvents(1000), AllEvents()], ids=str)
def test_the_state_of_real_tables_is_within_the_same_bounds(window: LastEvents | AllEvents) -> None:
    settings = TableSettings(EvaluatorSettings(window=window, every=EveryEvents(1000)), shards=64)
    cache = MachineCache()
    protocol = ShardProtocol(TableFactory(settings), cache, "step")
    chance = np.random.default_rng(3)
    traffic, stored, sent, most, bundles = Traffic(), Stored(), 0, 0.0, 1500
    for bundle in range(bundles):
        scores = chance.random(20)
        labels = (chance.random(20) < scores).astype(np.int8)
        record = EventBatch(TextColumn.of(["churn"] * 20), scores, labels).pack()
        views = cells_of(stored, traffic)
        protocol.apply("k", None, ShardCells(*views), record)
        stored = Stored(views[0].committed(), views[1].committed(), views[2].committed())
        sent += len(record)
        most = max(most, traffic.written / sent) if bundle > 20 else 0.0
    assert most <= 2.2
    assert traffic.read == 16 * (bundles - 1)
    live = cache.pop(("step", None, "k"))
    assert live is not None
    true_size = len(live.machine.to_bytes())
    assert abs(live.machine.snapshot_bytes() - true_size) < 0.03 * true_size, "rule 4 rests on it"


@pytest.mark.slow
def test_a_yardstick_of_the_old_snapshot_would_write_more() -> None:
    """Why rule 4 measures by the snapshot of now."""

    protocol = OldYardstick(ChainFactory(None, 10), MachineCache(), "step")
    traffic, stored, sent, most = Traffic(), Stored(), 0, 0.0
    for bundle in range(2000):
        record = events(*range(bundle, bundle + 20))
        sent += len(record)
        stored, _ = apply_bundle(protocol, stored, traffic, [record])
        most = max(most, traffic.written / sent) if bundle > 100 else 0.0
    assert most > 2.5


def test_an_error_leaves_nothing_in_the_cache_and_the_next_bundle_rebuilds() -> None:
    faults = Faults()
    cache = MachineCache()
    protocol = Protocol(ChainFactory(5, 1, faults.at), cache, "step")
    stored, before = apply_bundle(protocol, Stored(), Traffic(), [events(1, 2, 3), clock(7)])
    assert len(cache) == 1
    faults.left = 1
    with pytest.raises(Exception, match="in apply"):
        apply_bundle(protocol, stored, Traffic(), [events(4, 5)])
    assert len(cache) == 0
    _, after = apply_bundle(protocol, stored, Traffic(), [events(4, 5), END])
    records = [events(1, 2, 3), clock(7), events(4, 5), END]
    assert before + after == undisturbed(ChainFactory(5, 1), records)


def test_the_cache_drops_the_least_recently_used_and_stays_within_its_bytes() -> None:
    size = ChainMachine().live_bytes()
    cache = MachineCache(3 * size)
    for key in "abc":
        cache.put(("s", None, key), LiveMachine(ChainMachine()))
    oldest = cache.pop(("s", None, "a"))
    assert oldest is not None
    cache.put(("s", None, "a"), oldest)
    cache.put(("s", None, "d"), LiveMachine(ChainMachine()))
    assert cache.held_bytes == 3 * size
    assert cache.pop(("s", None, "b")) is None
    assert cache.pop(("s", None, "a")) is oldest
    assert cache.pop(("s", None, "a")) is None, "taken means gone"
    cache.put(("s", None, "huge"), LiveMachine(ChainMachine(held=[0] * 1000)))
    assert cache.held_bytes == 2 * size
    assert MachineCache(0).pop(("s", None, "c")) is None


def test_a_step_takes_its_machines_along_when_its_last_user_leaves() -> None:
    cache = MachineCache()
    for step in ("one", "one", "two"):
        cache.open(step)
        cache.put((step, None, "k"), LiveMachine(ChainMachine()))
    cache.close("one")
    assert len(cache) == 2
    cache.close("one")
    assert len(cache) == 1
    cache.close("two")
    assert cache.held_bytes == 0


def test_threads_share_a_cache() -> None:
    size = ChainMachine().live_bytes()
    cache = MachineCache(10 * size)
    handed_out: list[LiveMachine[ChainRow]] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(2000):
            place = ("s", None, str(rng.randrange(20)))
            live = cache.pop(place) or LiveMachine[ChainRow](ChainMachine())
            live.log_records += 1
            if live.log_records == 2:
                handed_out.append(live)
            live.log_records -= 1
            cache.put(place, live)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not handed_out, "two threads held one machine"
    assert cache.held_bytes == len(cache) * size <= 10 * size


@pytest.mark.parametrize("harm", ["lost", "twice"])
def test_a_log_with_a_hole_or_a_repeat_is_refused(harm: str) -> None:
    protocol = Protocol(ChainFactory(1000, 10), MachineCache(0), "step")
    stored = Stored()
    for start in range(3):
        stored, _ = apply_bundle(protocol, stored, Traffic(), [events(start)])
    assert len(stored.log) == 3
    stored.log = stored.log[1:] if harm == "lost" else (*stored.log, stored.log[1])
    with pytest.raises(CorruptBytesError, match="each once"):
        apply_bundle(protocol, stored, Traffic(), [events(9)])


def test_a_large_shard_warns_once_per_key(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shard_protocol, "LARGE_SNAPSHOT_BYTES", 100)
    protocol = Protocol(ChainFactory(), MachineCache(), "step")
    stored = Stored()
    with caplog.at_level(logging.WARNING):
        for start in range(5):
            stored, _ = apply_bundle(protocol, stored, Traffic(), [events(*range(start, start + 9))])
        apply_bundle(protocol, Stored(), Traffic(), [events(*range(20))], key="other")
    assert [record.args[0] for record in caplog.records if record.args] == ["k", "other"]  # type: ignore[index]
    assert "more shards" in caplog.text.replace("\n", " ")


def test_a_pane_that_ended_is_not_kept() -> None:
    cache = MachineCache()
    protocol = Protocol(ChainFactory(), cache, "step")
    cells = ShardCells(*cells_of(Stored(), Traffic()))
    protocol.apply("k", (0, 10), cells, events(1))
    assert protocol.apply("k", (0, 10), cells, END, keep=False)[0].pane == (0, 10)
    assert len(cache) == 0


def test_what_is_counted_is_what_was_written() -> None:
    counts: dict[str, int] = {}

    def count(name: str, amount: int) -> None:
        counts[name] = counts.get(name, 0) + amount

    protocol = ShardProtocol(ChainFactory(4, 10), MachineCache(0), "step", count)
    traffic, stored = Traffic(), Stored()
    for start in range(50):
        stored, _ = apply_bundle(protocol, stored, traffic, [events(start)])
    assert counts["snapshot_bytes"] + counts["log_bytes"] + 16 * 50 == traffic.written
    assert counts["rebuilds"] == 49
    assert counts["snapshots_written"] > 3


def test_a_factory_of_machines_travels_to_the_workers() -> None:
    assert pickle.loads(pickle.dumps(ChainFactory(3, 2))) == ChainFactory(3, 2)
