"""An event is dropped where, and only where, one of its model and id was kept within the horizon."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import CorruptBytesError
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.ids import deduplicator
from rocsteady.core.ids import remembered as remembered_ids
from rocsteady.core.ids.deduplicator import Deduplicator
from rocsteady.core.ids.hash128 import hash128
from rocsteady.core.ids.remembered import CLOCK, COUNT, ENTRIES, HEAD, NUMBER, PANES

from tests.support.invariants.kernel_modes import claims_hold
from tests.support.oracles.duplicates import DuplicateOracle, Event, Verdict
from tests.support.thorough import examples


def take(machine: Deduplicator, events: Sequence[Event]) -> list[Verdict]:
    keep, kept_times = machine.judge(
        TextColumn.of([model for model, _, _ in events]),
        IdColumn.of([name for _, name, _ in events]),
        np.array([time for _, _, time in events], np.int64),
    )
    assert (kept_times[keep] == NO_TIME).all()
    return [None if kept else time for kept, time in zip(keep.tolist(), kept_times.tolist(), strict=True)]


def check_invariants(machine: Deduplicator) -> None:
    memory = machine._memory
    head, count, panes = (int(memory.counters[field]) for field in (HEAD, COUNT, PANES))
    room, size = len(memory.times), len(memory.slots)
    held = {(head + place) % room for place in range(count)}
    assert count <= room < size
    used = [int(value) for value in memory.slots if value]
    assert {(value & 2**32 - 1) - 1 for value in used} == held
    assert len(used) == count
    for slot, value in enumerate(memory.slots.tolist()):
        if value:
            place = (value & 2**32 - 1) - 1
            assert value >> 32 == int(memory.hashes[place, 0]) >> 32
            home = (value >> 32) * size >> 32
            way = range(home, slot) if home <= slot else [*range(home, size), *range(slot)]
            assert all(memory.slots[passed] for passed in way)
    numbers = memory.panes[:panes, NUMBER].tolist()
    assert all(a < b for a, b in pairwise(numbers))
    assert int(memory.panes[:panes, ENTRIES].sum()) == count
    if panes and machine.forgets:
        assert numbers[-1] == int(memory.counters[CLOCK]) // machine._pane
        assert (numbers[0] + 1) * machine._pane - 1 >= int(memory.counters[CLOCK]) - machine.horizon
    assert machine.snapshot_bytes() == len(machine.to_bytes())


names = st.sampled_from([None, "", "x", "X", "xx", "y", "ü", "0123456789abcdef", "x" * 40])
events_in_any_order = st.lists(
    st.tuples(st.sampled_from(["a", "A", "ax", ""]), names, st.integers(-60, 60)), max_size=60
)
horizons = st.sampled_from([1, 2, 7, 8, 9, 16, 30, 200])


@given(events_in_any_order, horizons, st.booleans(), st.lists(st.integers(0, 60), max_size=6), st.booleans())
@settings(max_examples=examples(300))
def test_events_in_any_order_and_any_pieces_are_judged_as_defined(
    events: list[Event], horizon: int, forgets: bool, cuts: list[int], restarts: bool
) -> None:
    definition = DuplicateOracle(horizon, forgets=forgets)
    expected = [definition.take(event) for event in events]
    machine, found = Deduplicator(horizon, forgets=forgets), []
    for a, b in pairwise([0, *sorted(cuts), 60]):
        found += take(machine, events[a:b])
        check_invariants(machine)
        if restarts:
            machine = Deduplicator.from_bytes(machine.to_bytes())
            check_invariants(machine)
    assert found == expected
    assert len(machine) == len(definition.kept)
    assert machine.clock == definition.clock


@pytest.mark.parametrize("seed", range(6))
def test_a_memory_that_grows_wraps_and_shrinks_forgets_nothing_else(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered_ids, "FIRST_CAPACITY", 2)
    rng = random.Random(seed)
    horizon = rng.choice((5, 40, 400))
    machine, definition, time = Deduplicator(horizon), DuplicateOracle(horizon), 0
    for _ in range(60):
        events = []
        for _ in range(rng.choice((1, 3, 40))):
            time += rng.choice((0, 0, 1, rng.choice((2, 30, 1_000))))
            late = rng.choice((0, 0, 0, rng.randrange(2 * horizon)))
            events.append((rng.choice("ab"), rng.choice((None, str(rng.randrange(50)))), time - late))
        assert take(machine, events) == [definition.take(event) for event in events]
        check_invariants(machine)
        if rng.random() < 0.2:
            machine = Deduplicator.from_bytes(machine.to_bytes())


@given(events_in_any_order, horizons)
@settings(max_examples=examples(100))
def test_in_order_of_time_no_kept_event_within_the_horizon_is_missed(
    events: list[Event], horizon: int
) -> None:
    """By a dictionary of lists that forgets nothing."""
    kept: dict[tuple[str, str], list[int]] = {}
    events = sorted(events, key=lambda event: event[2])
    for (model, name, time), verdict in zip(events, take(Deduplicator(horizon), events), strict=True):
        if name is None:
            assert verdict is None
            continue
        near = [other for other in kept.setdefault((model, name), []) if abs(other - time) <= horizon]
        assert (verdict is not None) == bool(near)
        if not near:
            kept[model, name].append(time)


@given(events_in_any_order, horizons, st.randoms(use_true_random=False))
@settings(max_examples=examples(100))
def test_what_comes_again_while_the_clock_goes_on_by_a_horizon_is_dropped(
    events: list[Event], horizon: int, rng: random.Random
) -> None:
    """However late both are: each event comes again, in any order, before the clock has gone on."""
    machine, events = Deduplicator(horizon), [event for event in events if event[1] is not None]
    for event in events:
        first = take(machine, [event])[0]
        clock = machine.clock
        kept = event[2] if first is None else first
        assert take(machine, [("other", None, clock + rng.randint(0, horizon))]) == [None]
        again = take(machine, [event])[0]
        if first is None:
            assert again == kept


def test_what_is_alike_but_for_case_or_the_border_of_model_and_id_is_not_the_same() -> None:
    machine = Deduplicator(10)
    events: list[Event] = [("ab", "c", 0), ("a", "bc", 0), ("abc", "", 0), ("", "abc", 0), ("ab", "C", 0)]
    assert take(machine, events) == [None] * 5
    assert take(machine, events) == [0] * 5


def test_ids_of_ten_kilobytes_differ_by_their_last_byte() -> None:
    long = "x" * 10_240
    machine = Deduplicator(10)
    assert take(machine, [("m", long + end, 1) for end in ("", "a", "b", "a")]) == [None, None, None, 1]
    assert machine.nbytes < 20_000


def test_an_empty_id_is_one_and_a_missing_one_is_none() -> None:
    machine = Deduplicator(10)
    assert take(machine, [("m", "", 0), ("m", "", 1), ("m", None, 0), ("m", None, 0)]) == [
        None,
        0,
        None,
        None,
    ]
    assert len(machine) == 1


def test_a_dropped_event_does_not_renew_the_memory_of_the_kept_one() -> None:
    assert take(Deduplicator(10), [("m", "x", time) for time in (0, 9, 11, 20, 22)]) == [
        None,
        0,
        None,
        11,
        None,
    ]


def test_a_million_ids_that_never_come_again_are_forgotten_in_time() -> None:
    machine, n = Deduplicator(100_000), 50_000
    most = 0
    for start in range(0, 1_000_000, n):
        numbers = np.arange(start, start + n)
        ids = IdColumn(np.full(n, 8, np.int32), numbers.astype("<i8").tobytes())
        keep, _ = machine.judge(TextColumn(np.zeros(n, np.int32), ("m",)), ids, numbers)
        assert keep.all()
        most = max(most, machine.nbytes)
        assert len(machine) <= 112_501
        assert machine.snapshot_bytes() <= 24 * len(machine) + 300
    assert most <= 41 * 125_001
    assert machine.nbytes <= 41 * len(machine)
    assert take(machine, [("m", None, 10**9)]) == [None]
    assert len(machine) == 0
    assert machine.nbytes < 20_000


def test_events_with_equal_first_halves_of_the_hash_are_told_apart_by_the_second() -> None:
    """Nothing else would notice if half of a hash were never compared."""
    machine = Deduplicator(10)
    take(machine, [("m", "x", 0)])
    changed = machine._memory.hashes[0, 1] ^ np.uint64(1)
    machine._memory.hashes[0, 1] = changed
    assert take(machine, [("m", "x", 0)]) == [None]
    assert len(machine) == 2
    check_invariants(machine)
    expected = hash128(IdColumn.of(["x"]), np.zeros(1, np.int32), hash128(IdColumn.of(["m"])))[0]
    assert machine._memory.hashes[1].tolist() == expected.tolist()


@pytest.mark.parametrize("time", [NO_TIME, 2**61, -(2**61)])
def test_a_time_that_is_none_is_refused_before_anything_is_taken_in(time: int) -> None:
    machine = Deduplicator(10)
    with pytest.raises(rs.InputError, match="has no time, or one that lies more than 70,000 years from 1970"):
        take(machine, [("m", "x", 0), ("m", "y", time)])
    assert take(machine, [("m", "x", 0)]) == [None]


def test_the_largest_times_and_horizons_do_not_overflow() -> None:
    machine = Deduplicator(2**61 - 1)
    far = 2**61 - 1
    assert take(machine, [("m", "x", -far), ("m", "x", far), ("m", "x", -1), ("m", "x", 0)]) == [
        None, None, None, -1,
    ]  # fmt: skip


def test_where_nothing_is_forgotten_the_farthest_times_are_remembered() -> None:
    machine, far = Deduplicator(1, forgets=False), 2**61 - 1
    times = (-far, far, 0, -1, 2, 1, -far, far)
    assert take(machine, [("m", "x", time) for time in times]) == [None, None, None, 0, None, 0, -far, far]
    check_invariants(machine)
    assert take(Deduplicator.from_bytes(machine.to_bytes()), [("m", "x", -far)]) == [-far]


def some_events(
    models: list[str | None], ids: list[str | None] | None, times: list[int] | None
) -> EventBatch:
    return EventBatch(
        TextColumn.of(models), np.arange(len(models), dtype=np.float64), np.ones(len(models), np.int8),
        None if times is None else np.array(times), None if ids is None else IdColumn.of(ids),
    )  # fmt: skip


def test_duplicates_leave_with_the_reason_in_words() -> None:
    day = 86_400_000_000
    events = some_events(["m"] * 5, ["x", "x", "y", "x", "x"], [day, day, 0, day // 2, 2 * day])
    kept, again = Deduplicator(day).sift(events)
    assert kept.scores.tolist() == [0, 2]
    assert (again.kind, again.records.scores.tolist()) == ("duplicate", [1, 3, 4])  # type: ignore[union-attr]
    assert again.details.to_list() == [
        "its model and id came before, with the same time",
        "its model and id came before, with a time 12h later",
        "its model and id came before, with a time 1d earlier",
    ]


def test_events_that_are_all_new_are_handed_on_as_they_are() -> None:
    events = some_events(["m", "n"], ["x", "x"], [0, 0])
    kept, again = Deduplicator(5).sift(events)
    assert kept is events
    assert len(again) == 0


@pytest.mark.parametrize(("missing", "option"), [("times", "--time"), ("ids", "--id")])
def test_events_without_times_or_ids_are_refused(missing: str, option: str) -> None:
    columns: dict[str, Any] = {"ids": ["x"], "times": [0]} | {missing: None}
    with pytest.raises(rs.InputError, match=f"events without {missing} cannot be deduplicated.*{option}"):
        Deduplicator(5).sift(some_events(["m"], **columns))


def test_no_events_change_nothing() -> None:
    machine = Deduplicator(10)
    assert take(machine, []) == []
    assert machine.clock == NO_TIME


def test_damaged_snapshots_are_refused() -> None:
    machine = Deduplicator(10)
    take(machine, [("m", str(time % 7), time) for time in range(30)])
    data = machine.to_bytes()
    for damaged in (
        b"",
        data[:-1],
        data + b"\0",
        *(data[:at] + b"\xff" + data[at + 1 :] for at in (0, 9, 40, 90)),
    ):
        with pytest.raises(CorruptBytesError, match="a snapshot of a deduplicator contradicts itself"):
            Deduplicator.from_bytes(damaged)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"horizon": 0}, "a horizon of 0"),
        ({"panes": 13}, "13 panes"),
        ({"count": 2}, "bytes"),
        ({"clock": NO_TIME}, "entries where there are"),
        ({"clock": 500}, "up to a clock of 500"),
    ],
)
def test_snapshots_that_contradict_themselves_are_refused(change: dict[str, Any], reason: str) -> None:
    machine = Deduplicator(10)
    take(machine, [("m", str(time), time) for time in range(3)])
    payload = machine.to_bytes()[4:]
    fields = dict(
        zip(
            ("horizon", "forgets", "clock", "count", "panes"),
            deduplicator._HEAD.unpack_from(payload),
            strict=True,
        )
    )
    changed = deduplicator._HEAD.pack(*(fields | change).values()) + payload[deduplicator._HEAD.size :]
    with pytest.raises(CorruptBytesError, match=reason):
        Deduplicator.from_bytes(deduplicator.zlib.crc32(changed).to_bytes(4, "little") + changed)


@pytest.mark.slow
@pytest.mark.parametrize("switch", ["NUMBA_BOUNDSCHECK", "NUMBA_DISABLE_JIT"])
def test_all_claims_hold_with(switch: str) -> None:
    here = Path(__file__).parent
    claims = [str(here / name) for name in ("test_deduplicator.py", "test_hash128.py")]
    claims_hold(claims, {switch: "1"}, "not million and not all_claims and not bits_are_even")
