"""What a table makes of events that come twice, of slices without end, of models that fall silent.

By an oracle that knows none of its parts: events in their order, without those that a list says came before,
each in its slices by a list of values; of every (model, slice) the stretches between silences, each by an
evaluator of its own that gives a row after each event. However the events are cut into packets, whatever the
order of these, and through restarts, the rows are the same.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.errors import CorruptBytesError
from rocsteady.core.evaluator.snapshot import Snapshot, describe
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.records import Clock, EndOfInput, EndOfPartition, Heartbeat
from rocsteady.core.events.rejected import Rejected
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.events.wire import PacketHead
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.settings.windows import parse_window
from rocsteady.core.shard.buffer import in_time_order
from rocsteady.core.table.table import EvaluatorTable

from tests.support.oracles.duplicates import DuplicateOracle
from tests.support.streams.times import moments
from tests.support.thorough import few, some

END = EndOfInput().pack()
SLICES = (("carrier",), ("carrier", "origin"))
ORDERS = ("arrival", "position", "time")


@dataclass(frozen=True)
class Event:
    model: str
    score: float
    label: int
    time: int
    id: str | None
    carrier: str | None
    origin: str | None


def some_events(n: int, seed: int, late: int = 0) -> list[Event]:
    """Return events whose times rise, with silences, but for some that are late; some come again."""
    rng = random.Random(seed)
    events, time = [], 0
    for number in range(n):
        time += rng.choice((0, 1, 1, 2, rng.choice((1, 30, 100))))
        event = Event(
            rng.choice(("a", "a", "b", "c")), rng.randrange(10) / 10, rng.randrange(2),
            time - rng.choice((0, 0, rng.randint(0, late))), rng.choice((f"{number}", f"{number}", None)),
            rng.choice(("UA", "DL", "AA", "other", None, f"rare {rng.randrange(9)}")),
            rng.choice(("JFK", "LGA", "other")),
        )  # fmt: skip
        events.append(event)
        if rng.random() < 0.4:
            twin = events[-rng.randint(1, min(len(events), 15))]
            events.append(replace(twin, time=twin.time + rng.choice((0, 0, rng.randint(0, 30)))))
    return events


def batch_of(events: Sequence[Event], **place: Any) -> EventBatch:
    return EventBatch(
        models=TextColumn.of([event.model for event in events]),
        scores=np.array([event.score for event in events], np.float64),
        labels=np.array([event.label for event in events], np.int8),
        times=np.array([event.time for event in events], np.int64),
        ids=IdColumn.of([event.id for event in events]),
        slices=(
            ("carrier", TextColumn.of([event.carrier for event in events])),
            ("origin", TextColumn.of([event.origin for event in events])),
        ),
        **place,
    )


def records_of(events: Sequence[Event], borders: Sequence[int], rng: random.Random) -> list[bytes]:
    """Cut partitions into packets, with heartbeats in between that say what is settled."""
    records = []
    for number, (a, b) in enumerate(pairwise(borders)):
        start, sequence, name, count = a, 0, f"file {number}", len(borders) - 1
        while start < b:
            stop = min(b, start + rng.choice((1, 3, 40)))
            part = batch_of(events[start:stop], source=name)
            records.append(part.pack(PacketHead(number, sequence)))
            start, sequence = stop, sequence + 1
            if start < b and rng.random() < 0.5:
                settled = min(event.time for event in events[start:b])
                records.append(Heartbeat(name, number, count, sequence, settled).pack())
        high_water = max((event.time for event in events[a:b]), default=NO_TIME)
        records.append(EndOfPartition(name, number, count, sequence, high_water).pack())
    return records


@dataclass
class Outcome:
    rows: list[Any]
    refused: list[tuple[Any, ...]]
    counts: dict[str, int]


def outcome_of(
    settings: TableSettings, records: Iterable[bytes], rng: random.Random | None = None
) -> Outcome:
    """Feed a table; with rng one that is reloaded at random points."""
    table, rows, refused = EvaluatorTable(settings), [], []
    counts: dict[str, int] = dict.fromkeys(table.counts(), 0)
    for record in records:
        for part in table.apply(record):
            if isinstance(part, Rejected):
                events = part.records
                assert isinstance(events, EventBatch)
                assert events.times is not None
                assert events.ids is not None
                columns = (events.models.to_list(), events.ids.to_list(), events.times.tolist())
                refused += [(part.kind, *event) for event in zip(*columns, strict=True)]
            else:
                rows += part
        if rng is not None and rng.random() < 0.4:
            counts = {name: count + counts[name] for name, count in table.counts().items()}
            said, data = table.snapshot_bytes(), table.to_bytes()
            assert 0.9 * len(data) - 300 < said < 1.1 * len(data) + 300
            table = EvaluatorTable.from_bytes(data, settings)
            assert table.to_bytes() == data
    rows.sort(key=lambda row: (row.model, row.slice, row.row))
    counts = {name: count + counts[name] for name, count in table.counts().items()}
    return Outcome(rows, sorted(refused, key=str), {name: count for name, count in counts.items() if count})


def settings_of(order: str, every: int = 3, k: int = 5, **more: Any) -> TableSettings:
    window, emission = rs.LastEvents(k), rs.EveryEvents(every)
    of_evidence = {name: more.pop(name, None) for name in ("evidence_below", "block_gap")}
    if of_evidence["evidence_below"] is not None:
        of_evidence["evidence_blocks"] = 1
    evaluator = rs.EvaluatorSettings(
        window=window, every=emission, order=order, measures=("all",), **of_evidence
    )
    return TableSettings(evaluator, **more)


def expected(settings: TableSettings, events: Sequence[Event]) -> Outcome:
    order, counts = settings.evaluator.order, dict.fromkeys(("events_in_other", "evaluators_retired"), 0)
    applied, refused = list(events), []
    if order == "time":
        whole, _ = in_time_order([batch_of(events, positions=np.arange(len(events)))])
        assert whole.positions is not None
        applied = [events[position] for position in whole.positions.tolist()]
    if settings.deduplicate is not None:
        oracle = DuplicateOracle(settings.deduplicate, forgets=order != "position")
        judged = [(event, oracle.take((event.model, event.id, event.time))) for event in applied]
        applied = [event for event, found in judged if found is None]
        refused = [
            ("duplicate", event.model, event.id, event.time) for event, found in judged if found is not None
        ]
    clock, stretches = NO_TIME, dict[tuple[str, str], list[list[Event]]]()
    active: dict[tuple[str, str], int] = {}
    own: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for event in applied:
        clock = max(clock, event.time)
        for names in ((), *settings.slices):
            values = tuple(getattr(event, name) or "" for name in names)
            known = own.setdefault((event.model, *names), [])
            if names and set(values) != {"other"} and values not in known:
                if len(known) < settings.slice_cap:
                    known.append(values)
                else:
                    values = ("other",) * len(names)
                    counts["events_in_other"] += 1
            key = event.model, ",".join(map("=".join, zip(names, values, strict=True)))
            now = event.time if order == "position" else clock
            parts = stretches.setdefault(key, [[]])
            if settings.idle_ttl is not None and parts[-1] and now > active[key] + settings.idle_ttl:
                parts.append([])
            parts[-1].append(event)
            active[key] = max(now, active.get(key, now))
    end = clock if order == "arrival" else max(event.time for event in events)
    if settings.idle_ttl is not None:
        silent = sum(end > last + settings.idle_ttl for last in active.values())
        counts["evaluators_retired"] = silent + sum(len(parts) - 1 for parts in stretches.values())
    rows = [row for key, parts in sorted(stretches.items()) for row in rows_of(settings, key, parts)]
    counts |= {"events_applied": len(applied), "duplicate": len(refused)}
    return Outcome(rows, sorted(refused, key=str), {name: count for name, count in counts.items() if count})


def rows_of(settings: TableSettings, key: tuple[str, str], parts: Sequence[Sequence[Event]]) -> list[Any]:
    """Return the rows of one (model, slice): each stretch evaluated by itself, its rows numbered on."""
    evaluator, rows, seq, greatest = settings.evaluator, list[Any](), 0, NO_TIME
    every = evaluator.every.n  # type: ignore[union-attr]
    dense = replace(evaluator, every=rs.EveryEvents(1))
    config = evaluator.config_hash()
    for part in parts:
        columns = [[getattr(event, name) for event in part] for name in ("label", "score", "time")]
        labels, scores, times = columns
        begin = seq
        for number, row in enumerate(
            rs.ModelEvaluator(dense, model=key[0], slice=key[1]).update(labels, scores, times=moments(times)),
            1,
        ):
            seq, greatest = seq + 1, max(greatest, times[number - 1])
            if row.evidence_since is not None:
                row = row._replace(evidence_since=begin + row.evidence_since)
            if seq % every == 0 or number == len(part):
                rows.append(row._replace(row=len(rows), seq=seq, time=greatest, config=config))
    return rows


FEATURES: dict[str, dict[str, Any]] = {
    "duplicates": {"deduplicate": 20},
    "a cap": {"slices": SLICES, "slice_cap": 2},
    "silence": {"slices": SLICES, "idle_ttl": 12},
    "evidence": {"slices": SLICES, "idle_ttl": 40, "evidence_below": 0.7},
    "evidence of a period": {
        "slices": SLICES,
        "evidence_below": f"1970-01-01..{moments([250])[0]} less 0.01",
        "block_gap": "3us",
    },
    "all of it": {"slices": SLICES, "slice_cap": 3, "idle_ttl": 25, "deduplicate": 10},
}


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("feature", FEATURES)
def test_rows_are_those_of_the_definition_however_events_are_cut(feature: str, order: str) -> None:
    for seed in few(3, (0, 2, 3, 1, 4, 5)):
        rng = random.Random(seed)
        late = 0 if seed < 2 else 40
        events = some_events(90, seed, late)
        n = len(events)
        settings = settings_of(order, every=rng.choice((1, 3, 50)), **FEATURES[feature])
        wanted = expected(settings, events)
        for turn in few(3, range(5)):
            borders = (0, n) if order == "arrival" else (0, n // 3, n // 3, n)
            records = records_of(events, borders, rng)
            if turn and order != "arrival":
                rng.shuffle(records)
            found = outcome_of(settings, [*records, END], rng if turn > 1 else None)
            assert found.refused == wanted.refused
            found.counts.pop("events_tied", None)
            assert found.counts == wanted.counts
            assert found.rows == wanted.rows


def test_the_definition_is_put_to_the_proof() -> None:
    """The events of the test above come again, have too many values, fall silent and return."""
    for seed in range(6):
        events = some_events(90, seed)
        found = expected(settings_of("time", **FEATURES["all of it"]), events)
        assert min(found.counts[name] for name in ("duplicate", "events_in_other", "evaluators_retired")) > 5
        again = {(row.model, row.slice) for row in found.rows if row.seq > row.window_events}
        assert len(again) > 3


# ---- silence


GRID_WINDOWS = ("last:5", "last:20s", "fading:4", "fading:9s", "adaptive:0.5:error", "all")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("weighted", "below", "window"), some(product([False, True], [None, 0.7], GRID_WINDOWS), 2)
)
def test_rows_on_a_grid_are_the_same_however_events_are_cut(
    window: str, weighted: bool, below: float | None
) -> None:
    evaluator = rs.EvaluatorSettings(
        window=parse_window(window), every=rs.EverySeconds(7), order="time",
        **({} if weighted or below is None else {"evidence_below": below, "evidence_blocks": 1}),
    )  # fmt: skip
    settings = TableSettings(evaluator, slices=("carrier",), idle_ttl=25_000_000)
    events = [replace(event, time=event.time * 1_000_000) for event in some_events(80, 5, 30)]
    outcomes = []
    for turn in range(4):
        rng = random.Random(turn)
        parts = [(0, len(events)), (0, 30, len(events))][turn > 0]
        records = records_of(events, parts, rng)
        if weighted:
            records = [weighing(record) for record in records]
        if turn:
            rng.shuffle(records)
        else:  # one packet, and no word of the clock before the end
            whole = batch_of(events, head=PacketHead(0, 0), source="file 0").pack()
            end = EndOfPartition("file 0", 0, 1, 1, max(event.time for event in events))
            records = [weighing(whole) if weighted else whole, end.pack()]
        outcomes.append(outcome_of(settings, [*records, END], rng if turn > 1 else None))
    assert outcomes[0].counts["evaluators_retired"] > 10
    for found in outcomes[1:]:
        assert found.counts == outcomes[0].counts
        assert found.rows == outcomes[0].rows


def weighing(record: bytes) -> bytes:
    """Give the events of a packet weights that their scores say."""
    if record[:4] != b"RSEB":
        return record
    batch = EventBatch.unpack(record)
    return replace(batch, weights=np.exp2(np.round(batch.scores * 4) - 2)).pack()


def of_one(model: str, *times: int, **place: Any) -> bytes:
    events = [
        Event(model, 0.1 * number, number % 2, time, None, None, None) for number, time in enumerate(times)
    ]
    return batch_of(events, **place).pack()


def rows_after(table: EvaluatorTable, record: bytes) -> list[tuple[Any, ...]]:
    return [
        (row.model, row.row, row.seq, row.window_events)
        for part in table.apply(record)
        if isinstance(part, rs.Rows)
        for row in part
    ]


def test_a_model_that_is_silent_leaves_when_the_clock_has_gone_by_and_returns_with_an_empty_window() -> None:
    table = EvaluatorTable(settings_of("time", every=100, idle_ttl=10))
    assert rows_after(table, of_one("a", 0, 1, 2, head=PacketHead(0, 0))) == []
    assert rows_after(table, Heartbeat("", 0, 1, 1, 12).pack()) == []
    assert len(table) == 1
    assert rows_after(table, Heartbeat("", 0, 1, 1, 13).pack()) == [("a", 0, 3, 3)]
    assert len(table) == 0
    assert rows_after(table, Heartbeat("", 0, 1, 1, 500).pack()) == []
    table = EvaluatorTable.from_bytes(table.to_bytes(), table.settings)
    assert rows_after(table, of_one("a", 600, 601, head=PacketHead(0, 1))) == []
    assert rows_after(table, EndOfPartition("", 0, 1, 2, 601).pack()) == [("a", 1, 5, 2)]
    assert rows_after(table, END) == []


def test_an_event_exactly_at_the_end_of_the_silence_finds_the_window_as_it_was() -> None:
    for gap, held in ((10, 2), (11, 1)):
        for order in ORDERS:
            table = EvaluatorTable(settings_of(order, every=100, idle_ttl=10))
            table.apply(of_one("a", 0, gap, head=PacketHead(0, 0)))
            rows = rows_after(table, EndOfPartition("", 0, 1, 1, gap).pack()) or rows_after(table, END)
            assert rows[-1] == ("a", 2 - held, 2, held), (order, gap)


def test_in_order_of_position_only_its_own_events_and_the_end_say_that_a_model_is_silent() -> None:
    """Those of others tell of another time, where their file is not its file."""
    table = EvaluatorTable(settings_of("position", every=100, idle_ttl=10))
    assert rows_after(table, of_one("a", 0, 1, head=PacketHead(0, 0))) == []
    assert rows_after(table, of_one("b", 900, head=PacketHead(0, 1))) == []
    assert rows_after(table, of_one("a", 2, head=PacketHead(0, 2))) == []
    assert rows_after(table, EndOfPartition("", 0, 1, 3, 900).pack()) == [("a", 0, 3, 3), ("b", 0, 1, 1)]
    assert table.counts()["evaluators_retired"] == 1


def test_in_order_of_arrival_an_event_from_the_far_future_empties_windows_once() -> None:
    table = EvaluatorTable(settings_of("arrival", every=100, idle_ttl=10))
    table.apply(of_one("a", 0, 1))
    assert rows_after(table, of_one("b", 10**9)) == [("a", 0, 2, 2)]
    table.apply(of_one("a", 2, 3, 4))
    assert rows_after(table, END) == [("a", 1, 5, 3), ("b", 0, 1, 1)]


def test_silent_models_leave_nothing_but_a_name_and_counters() -> None:
    settings = settings_of("arrival", every=1_000, k=1_000, idle_ttl=10_000)
    table, n = EvaluatorTable(settings), 3_000
    most = least = 0
    for number in range(30):
        models = TextColumn.of([f"model {number} {i % 100}" for i in range(n)])
        times = np.arange(number * n, (number + 1) * n)
        table.apply(EventBatch(models, np.arange(n) / n, (times % 2).astype(np.int8), times).pack())
        most, least = max(most, len(table)), len(table)
    assert least <= most <= 600
    left = 3_000 - len(table)
    assert table.counts()["evaluators_retired"] == left
    table.apply(of_one("last", 10**9))
    assert len(table) == 1
    assert len(table.to_bytes()) < 2_000 + 3_000 * (48 + len("model 29 99"))
    assert abs(table.snapshot_bytes() - len(table.to_bytes())) < 300
    assert table.live_bytes() < 3_000 * 700


def test_a_table_wants_to_be_woken_for_the_first_silence() -> None:
    table = EvaluatorTable(settings_of("time", every=100, idle_ttl=10))
    for sequence, times in enumerate(((3, 4), (5,))):
        models = "ab"[sequence]
        table.apply(of_one(models, *times))
    table.apply(Clock(6).pack())
    assert table.wakes_at() is not None
    assert table.wakes_at() <= 15  # type: ignore[operator]
    assert rows_after(table, Clock(15).pack()) == [("a", 0, 2, 2)]
    assert table.wakes_at() == 16
    assert rows_after(table, Clock(16).pack()) == [("b", 0, 1, 1)]
    assert table.wakes_at() is None
    table.apply(of_one("c", 20))
    table.apply(Clock(21).pack())
    assert 21 < table.wakes_at() <= 31  # type: ignore[operator]
    assert rows_after(table, END) == [("c", 0, 1, 1)]
    assert table.wakes_at() is None


def test_classes_begin_anew_when_a_model_returns() -> None:
    def of_classes(times: Sequence[int], labels: str, predicted: str, sequence: int) -> bytes:
        n = len(times)
        return EventBatch(
            TextColumn.of(["m"] * n), np.zeros(n), np.full(n, -1, np.int8), np.array(times),
            label_classes=TextColumn.of([*labels]), predicted=TextColumn.of([*predicted]),
        ).pack(PacketHead(sequence=sequence))  # fmt: skip

    evaluator = rs.EvaluatorSettings(every=rs.EveryEvents(100), order="position")
    settings = TableSettings(evaluator, idle_ttl=10)
    table = EvaluatorTable(settings)
    table.apply(of_classes([0, 1, 2, 50], "xyzy", "xyyz", 0))
    table = EvaluatorTable.from_bytes(table.to_bytes(), settings)
    table.apply(of_classes([51, 52], "yz", "yy", 1))
    (rows,) = table.apply(EndOfPartition("", 0, 1, 2, 52).pack())
    assert isinstance(rows, rs.Rows)
    alone = rs.ModelEvaluator(evaluator, model="m")
    alone.update([*"yyz"], [0, 0, 0], times=[50, 51, 52], time_unit="us", predicted=[*"zyy"])
    (last,) = alone.finish()
    assert [*rows][-1] == last._replace(row=1, seq=6)


def test_events_without_times_are_refused_where_models_leave() -> None:
    table = EvaluatorTable(settings_of("arrival", idle_ttl=10))
    batch = batch_of(some_events(3, 0))
    with pytest.raises(rs.InputError, match=r"has no time.*leave idle_ttl= \(--idle-ttl\) out"):
        table.apply(replace(batch, times=None).pack())


# ---- state


def test_a_state_with_these_settings_has_version_3_and_says_what_it_holds() -> None:
    settings = settings_of("arrival", idle_ttl=10, deduplicate=5, slice_cap=7)
    table = EvaluatorTable(settings)
    table.apply(of_one("gone", 0, 1))
    table.apply(batch_of([Event("here", 0.5, 1, 100, "x", None, None)]).pack())
    snapshot = Snapshot.unpack(table.to_bytes())
    text = describe(snapshot)
    assert "evaluators: 1, events held: 1" in text
    assert "left for their silence of 10us: 1" in text
    assert "ids remembered for 5us: 1" in text
    assert snapshot.settings == settings


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("deduplicate", "deduplicate was None and is now '5us'"),
        ("idle_ttl", "idle_ttl was None and is now '5us'"),
        ("slice_cap", f"slice_cap was {rs.TableSettings().slice_cap} and is now 5"),
    ],
)
def test_a_state_of_other_settings_is_refused(name: str, words: str) -> None:
    data = EvaluatorTable(settings_of("arrival")).to_bytes()
    with pytest.raises(rs.OtherConfigurationError, match=words):
        EvaluatorTable.from_bytes(data, settings_of("arrival", **{name: 5}))


def test_damaged_parts_of_a_state_are_refused() -> None:
    settings = settings_of("arrival", idle_ttl=10, deduplicate=5)
    table = EvaluatorTable(settings)
    table.apply(of_one("gone", 0, 1))
    table.apply(batch_of([Event("here", 0.5, 1, 100, "x", None, None)]).pack())
    whole = Snapshot.unpack(table.to_bytes())
    deduplicator, idle = whole.beside["deduplicator"], whole.beside["idle"]
    of_none = Snapshot.unpack(EvaluatorTable(settings).to_bytes()).beside["idle"]
    for beside in ({}, {"idle": idle}, {"idle": idle, "deduplicator": deduplicator, "more": b""}):
        with pytest.raises(CorruptBytesError, match="its settings say otherwise"):
            Snapshot.unpack(replace(whole, beside=beside).pack())
    for beside in (
        {"idle": idle[:-1], "deduplicator": deduplicator}, {"idle": b"", "deduplicator": deduplicator},
        {"idle": idle, "deduplicator": deduplicator[:-1]},
        {"idle": idle.replace(b"gone", b"here"), "deduplicator": deduplicator},
        {"idle": of_none, "deduplicator": deduplicator},
    ):  # fmt: skip
        with pytest.raises(CorruptBytesError):
            EvaluatorTable.from_bytes(replace(whole, beside=beside).pack(), settings)
    assert len(EvaluatorTable.from_bytes(whole.pack(), settings)) == 1
