"""The table of a shard gives each (model, slice) the rows of its own events, in whatever pieces they come."""

from __future__ import annotations

import hashlib
import random
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.records import EndOfInput, EndOfPartition
from rocsteady.core.events.wire import PacketHead
from rocsteady.core.settings.table import TableSettings, escape_slice
from rocsteady.core.table.table import EvaluatorTable

from tests.support.streams.times import moments
from tests.support.thorough import THOROUGH, few, some

END = EndOfInput().pack()


@dataclass(frozen=True)
class Event:
    model: str
    score: float
    label: int
    time: int
    id: str | None
    carrier: str | None
    origin: str | None


def some_events(n: int, seed: int = 0, models: Sequence[str] = ("a", "b", "ü")) -> list[Event]:
    rng = random.Random(seed)
    return [
        Event(
            rng.choice(models),
            rng.randrange(10) / 10,
            rng.randrange(2),
            rng.randrange(n // 3 + 1),
            rng.choice((None, "", "x", f"{i}")),
            rng.choice(("UA", "DL", "a=b,c\\d", None)),
            rng.choice(("JFK", "", None)),
        )
        for i in range(n)
    ]


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


def table_settings(
    order: str, k: int = 6, every: int = 3, curves: rs.EveryEvents | None = None, **more: Any
) -> TableSettings:
    evaluator = rs.EvaluatorSettings(
        window=rs.LastEvents(k), every=rs.EveryEvents(every), order=order, measures="all", curves=curves
    )
    return TableSettings(evaluator, **more)


SLICES: tuple[tuple[str, ...], ...] = (("carrier",), ("origin",), ("carrier", "origin"))


def run(settings: TableSettings, records: Iterable[bytes], rng: random.Random | None = None) -> list[Any]:
    """Return all rows by identity, and behind them all curves, which no rows need stand beside.

    With rng, from a table that is reloaded at random points.
    """
    table = EvaluatorTable(settings)
    rows: list[rs.MeasureRow] = []
    curves: list[rs.WindowCurve] = []
    for record in records:
        for part in table.apply(record):
            assert len(part) or part.curves
            rows += part
            curves += part.curves
        if rng is not None and rng.random() < 0.4:
            table = EvaluatorTable.from_bytes(table.to_bytes(), settings)
    identities = [(row.model, row.slice, row.row) for row in rows]
    assert len(set(identities)) == len(identities)
    return [
        *sorted(rows, key=lambda row: (row.model, row.slice, row.row)),
        *sorted(curves, key=lambda curve: (curve.model, curve.slice, curve.seq)),
    ]


def label_of(event: Event, names: Sequence[str]) -> str:
    return ",".join(f"{name}={escape_slice(getattr(event, name) or '')}" for name in names)


def expected_rows(settings: TableSettings, events: Sequence[Event]) -> list[Any]:
    """Return the rows, then the curves, of every (model, slice), each evaluated by itself."""
    groups: dict[tuple[str, str], list[Event]] = {}
    for names in ((), *settings.slices):
        for event in events:
            groups.setdefault((event.model, label_of(event, names)), []).append(event)
    rows: list[rs.MeasureRow] = []
    curves: list[rs.WindowCurve] = []
    for (model, label), own in sorted(groups.items()):
        ev = rs.ModelEvaluator(settings.evaluator, model=model, slice=label)
        due = ev.update(
            [event.label for event in own],
            [event.score for event in own],
            times=moments([event.time for event in own]),
        )
        for part in (due, ev.finish()):
            rows += part
            curves += part.curves
    assert bool(curves) == (settings.evaluator.curves is not None)
    return [*rows, *curves]


def packets(
    events: Sequence[Event], rng: random.Random, partition: int = 0, source: str = ""
) -> list[EventBatch]:
    """Cut a partition into numbered packets, empty ones among them."""
    cut: list[EventBatch] = []
    start = 0
    while start < len(events):
        end = min(len(events), start + rng.randint(0, 7))
        cut.append(batch_of(events[start:end], head=PacketHead(partition, len(cut)), source=source))
        start = end
    return cut


def partitions_of(
    events: Sequence[Event], borders: Sequence[int], rng: random.Random
) -> tuple[list[bytes], list[bytes]]:
    """Return the packets of several partitions, and their ends."""
    bodies, ends = [], []
    for number, (a, b) in enumerate(pairwise(borders)):
        cut = packets(events[a:b], rng, partition=number, source=f"file {number}")
        bodies += [packet.pack() for packet in cut]
        ends.append(EndOfPartition(f"file {number}", number, len(borders) - 1, len(cut)).pack())
    return bodies, ends


CURVES = rs.EveryEvents(4)
BORDERS = (0, 40, 40, 75, 120)  # the second of four partitions is empty


# ---- slices


@pytest.mark.parametrize("order", ["arrival", "position"])
def test_slices_and_crosses_are_evaluated_as_if_filtered(order: str) -> None:
    events, rng = some_events(120), random.Random(4)
    settings = table_settings(order, curves=CURVES, slices=SLICES)
    bodies, ends = partitions_of(events, BORDERS, rng)
    assert run(settings, [*bodies, *ends, END]) == expected_rows(settings, events)


def test_slices_are_named_with_escapes() -> None:
    settings = table_settings("arrival", slices=SLICES)
    event = Event("m", 0.5, 1, 0, None, "a=b,c\\d", None)
    rows = run(settings, [batch_of([event]).pack(), END])
    assert [row.slice for row in rows] == [
        "", r"carrier=a\=b\,c\\d", r"carrier=a\=b\,c\\d,origin=", "origin=",
    ]  # fmt: skip
    odd = TableSettings(settings.evaluator, slices=("a,b=c\\",))
    batch = replace(batch_of([event]), slices=(("a,b=c\\", TextColumn.of(["v"])),))
    assert [row.slice for row in run(odd, [batch.pack(), END])] == ["", "a\\,b\\=c\\\\=v"]


def test_a_missing_value_and_an_empty_one_are_one_slice_in_order() -> None:
    settings = table_settings("arrival", k=2, every=1, slices=("carrier",))
    events = [replace(event, carrier=(None, "")[i % 2]) for i, event in enumerate(some_events(40))]
    at_once = run(settings, [batch_of(events).pack(), END])
    assert at_once == run(settings, [*(batch_of([event]).pack() for event in events), END])
    assert {row.slice for row in at_once} == {"", "carrier="}


def test_a_dictionary_that_repeats_an_entry_changes_nothing() -> None:
    settings = table_settings("arrival", k=2, every=1)
    batch = batch_of(some_events(30, models=("a", "b")))
    codes = batch.models.codes + 2 * (np.arange(30) % 2).astype(np.int32)
    twice = replace(batch, models=TextColumn(codes, (*batch.models.values, *batch.models.values)))
    assert run(settings, [twice.pack(), END]) == run(settings, [batch.pack(), END])


def test_a_missing_slice_column_is_named() -> None:
    table = EvaluatorTable(table_settings("arrival", slices=("dest",)))
    with pytest.raises(rs.InputError, match=r"'f\.csv' has no slice column 'dest'"):
        table.apply(batch_of(some_events(3), source="f.csv").pack())


def test_classes_travel_with_their_events() -> None:
    rng = random.Random(5)
    labels, predicted = (rng.choices(["up", "down", "flat"], k=50) for _ in range(2))
    events = some_events(50)
    batch = replace(
        batch_of(events), label_classes=TextColumn.of(list(labels)), predicted=TextColumn.of(list(predicted))
    )
    settings = table_settings("arrival")
    by_model: list[rs.MeasureRow] = []
    for model in ("a", "b", "ü"):
        own = [i for i, event in enumerate(events) if event.model == model]
        ev = rs.ModelEvaluator(settings.evaluator, model=model)
        columns: list[Any] = [[column[i] for i in own] for column in (labels, predicted)]
        scores, times = [events[i].score for i in own], [events[i].time for i in own]
        by_model += [*ev.update(columns[0], scores, times=moments(times), predicted=columns[1]), *ev.finish()]
    cut = [batch.take(np.arange(a, a + 10)) for a in range(0, 50, 10)]
    assert run(settings, [*(part.pack() for part in cut), END], rng) == by_model


# ---- order


@pytest.mark.slow
def test_events_apply_as_they_arrive() -> None:
    events, rng = some_events(120), random.Random(1)
    settings = table_settings("arrival", curves=CURVES, slices=("carrier",))
    expected = expected_rows(settings, events)
    for _ in range(5):
        cut = packets(events, rng)
        assert run(settings, [*(packet.pack() for packet in cut), END], rng) == expected


@pytest.mark.slow
@pytest.mark.parametrize("order", ["position", "time"])
def test_rows_depend_neither_on_packets_nor_on_the_order_in_which_they_come(order: str) -> None:
    events, rng = some_events(120), random.Random(2)
    settings = table_settings(order, curves=CURVES, slices=("carrier",))
    applied = events
    if order == "time":
        applied = in_time(events)
    expected = expected_rows(settings, applied)
    for turn in few(5, range(12)):
        bodies, ends = partitions_of(events, BORDERS, rng)
        records = [*bodies, *ends, *rng.sample(bodies, 3), *rng.sample(ends, 1)]  # some come twice
        if turn:
            rng.shuffle(records)
        assert run(settings, [*records, END], rng) == expected


def in_time(events: Sequence[Event]) -> list[Event]:
    """Sort by time, id, then a hash of the record and of its number among its equals."""

    def text(value: str | None) -> bytes:
        data = (value or "").encode()
        return struct.pack("<i", -1 if value is None else len(data)) + data

    seen: Counter[tuple[int, bytes, bytes]] = Counter()
    keyed = []
    for event in events:
        record = text(event.model) + struct.pack("<dbd", event.score, event.label, 1.0)
        record += text(event.carrier) + text(event.origin)
        place = event.time, (event.id or "").encode()
        number = seen[*place, record]
        seen[*place, record] += 1
        digest = hashlib.blake2b(number.to_bytes(8, "little") + record, digest_size=16).digest()
        keyed.append(((*place, digest), event))
    return [event for _, event in sorted(keyed, key=lambda pair: pair[0])]


def test_rows_by_time_do_not_depend_on_how_events_lie_in_partitions() -> None:
    events, rng = some_events(120), random.Random(6)
    settings = table_settings("time", curves=CURVES, slices=SLICES)
    expected = expected_rows(settings, in_time(events))
    for _ in few(4, range(8)):
        rng.shuffle(events)
        borders = [0, *sorted(rng.choices(range(121), k=rng.randint(0, 5))), 120]
        bodies, ends = partitions_of(events, borders, rng)
        records = bodies + ends
        rng.shuffle(records)
        assert run(settings, [*records, END], rng) == expected


def test_events_of_one_time_are_not_sorted_by_what_they_are() -> None:
    """By label and score, windows that end within a time would hold one class and rank as nothing does."""
    rng = np.random.default_rng(4)
    n = 6_000
    scores = rng.random(n).round(1)
    labels = (rng.random(n) < scores).astype(np.int8)
    settings = table_settings("time", k=500, every=250)
    batch = EventBatch(
        TextColumn.of(["m"] * n),
        scores,
        labels,
        times=np.sort(rng.integers(0, 3, n)),
        head=PacketHead(sequence=0),
    )
    table = EvaluatorTable(settings)
    table.apply(batch.pack())
    (rows,) = table.apply(EndOfPartition("f", 0, 1, 1).pack())
    full = [row for row in rows if row.window_events == 500]
    assert len(full) > 20
    assert all(row.auc is not None and abs(row.auc - 0.83) < 0.06 for row in full)
    assert all(row.prevalence is not None and abs(row.prevalence - 0.5) < 0.1 for row in full)
    assert table.counts()["events_tied"] == n


def test_only_events_whose_order_nothing_tells_are_counted_as_tied() -> None:
    events = [
        replace(event, time=i // 4, id=str(i % 2)) for i, event in enumerate(some_events(8, models=("a",)))
    ]
    events[7] = replace(events[7], model="b")  # alone with its time, id and model, and so is its twin
    table = EvaluatorTable(table_settings("time"))
    table.apply(batch_of(events, head=PacketHead(sequence=0)).pack())
    table.apply(EndOfPartition("f", 0, 1, 1).pack())
    assert {name: n for name, n in table.counts().items() if n} == {"events_applied": 8, "events_tied": 6}


def test_rows_come_as_soon_as_order_allows() -> None:
    events = some_events(12, models=("a",))
    table = EvaluatorTable(table_settings("position"))
    late, early = (
        batch_of(part, head=PacketHead(sequence=i)) for i, part in ((1, events[6:]), (0, events[:6]))
    )
    assert table.apply(late.pack()) == []
    (rows,) = table.apply(early.pack())
    assert [row.seq for row in rows] == [3, 6, 9, 12]
    assert table.apply(EndOfPartition("", 0, 1, 2).pack()) == []
    assert table.apply(END) == []


def test_packets_of_one_partition_wait_for_the_end_of_the_one_before() -> None:
    table = EvaluatorTable(table_settings("position", every=1))
    assert table.apply(batch_of(some_events(4), head=PacketHead(1, 0)).pack()) == []
    assert table.apply(EndOfPartition("b", 1, 2, 1).pack()) == []
    (rows,) = table.apply(EndOfPartition("a", 0, 2, 0).pack())
    assert sum(1 for _ in rows) == 4


@pytest.mark.parametrize("order", ["position", "time"])
@pytest.mark.parametrize("lost", [0, 3, -1])
def test_a_lost_packet_is_an_error_and_not_silence(order: str, lost: int) -> None:
    bodies, ends = partitions_of(some_events(60), (0, 30, 60), random.Random(3))
    bodies.pop(lost)
    table = EvaluatorTable(table_settings(order))
    for record in (*bodies, *ends):
        table.apply(record)
    with pytest.raises(rs.InputError, match=r"the input ended while events of partition .* were missing"):
        table.apply(END)


@pytest.mark.parametrize("order", ["position", "time"])
def test_a_lost_end_of_a_partition_is_an_error_and_not_silence(order: str) -> None:
    bodies, ends = partitions_of(some_events(60), (0, 30, 60), random.Random(3))
    for lost in range(2):
        table = EvaluatorTable(table_settings(order))
        for record in (*bodies, ends[1 - lost]):
            table.apply(record)
        with pytest.raises(rs.InputError, match="missing"):
            table.apply(END)


@pytest.mark.parametrize("order", ["position", "time"])
def test_records_that_contradict_what_came_before_are_refused(order: str) -> None:
    end = EndOfPartition("f", 0, 2, 1)
    for other in (replace(end, packets=2), replace(end, partitions=3), replace(end, source="g")):
        table = EvaluatorTable(table_settings(order))
        table.apply(end.pack())
        with pytest.raises(rs.InputError, match="contradicts what was said before"):
            table.apply(other.pack())
    table = EvaluatorTable(table_settings(order))
    table.apply(end.pack())
    with pytest.raises(rs.InputError, match="packet 1 of 'f' comes although the partition ended"):
        table.apply(batch_of(some_events(2), source="f", head=PacketHead(sequence=1)).pack())
    with pytest.raises(rs.InputError, match="has no number"):
        table.apply(batch_of(some_events(2)).pack())


def test_an_input_without_events_has_no_rows() -> None:
    for order in ("position", "time", "arrival"):
        settings = table_settings(order)
        assert run(settings, [END]) == []
        assert run(settings, [EndOfPartition("f", 0, 1, 0).pack(), END]) == []
        empty = batch_of([], head=PacketHead(sequence=0)).pack()
        assert run(settings, [empty, EndOfPartition("f", 0, 1, 1).pack(), END]) == []


def test_order_by_time_needs_times() -> None:
    table = EvaluatorTable(table_settings("time"))
    batch = replace(batch_of(some_events(3), head=PacketHead(sequence=0)), times=None)
    with pytest.raises(rs.InputError, match="needs events with times"):
        table.apply(batch.pack())


# ---- size


def many_models(n: int, **more: Any) -> EventBatch:
    return EventBatch(
        models=TextColumn.of([f"model {i}" for i in range(n)]),
        scores=np.linspace(0, 1, n),
        labels=(np.arange(n) % 2).astype(np.int8),
        **more,
    )


def classes_of(length: int) -> Callable[[int], EventBatch]:
    def make(n: int) -> EventBatch:
        names = TextColumn.of([f"{i % 7}".rjust(length, "ß") for i in range(n)])
        return many_models(n, label_classes=names, predicted=names)

    return make


TABLES: dict[str, tuple[TableSettings, list[EventBatch]]] = {
    "empty": (table_settings("arrival"), []),
    "one event": (table_settings("arrival"), [batch_of(some_events(1))]),
    "one model": (table_settings("arrival", k=500), [batch_of(some_events(400, models=("a",)))]),
    "many models": (table_settings("arrival"), [many_models(500)]),
    "many models of many events": (table_settings("arrival", k=50), [many_models(100)] * 30),
    "times and slices": (table_settings("arrival", slices=SLICES), [batch_of(some_events(300))]),
    "names beyond ASCII": (
        table_settings("arrival", slices=("carrier",)),
        [batch_of([replace(event, model="模型" * 30, carrier="航空" * 9) for event in some_events(30)])],
    ),
    "classes": (table_settings("arrival"), [classes_of(3)(300)] * 3),
    "classes of long names": (table_settings("arrival"), [classes_of(60)(300)]),
    "held packets": (
        table_settings("position"),
        [batch_of(some_events(20), head=PacketHead(sequence=i), source="ü" * 40) for i in range(1, 30)],
    ),
    "long settings": (
        replace(table_settings("arrival"), slices=tuple(f"{'column ' * 9}{i}" for i in range(30))), [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", TABLES)
def test_the_size_of_a_snapshot_is_known_beforehand(kind: str) -> None:
    settings, batches = TABLES[kind]
    table = EvaluatorTable(settings)
    for batch in batches:
        table.apply(batch.pack())
    size = len(table.to_bytes())
    assert table.snapshot_bytes() == pytest.approx(size, rel=0.03, abs=64)
    reloaded = EvaluatorTable.from_bytes(table.to_bytes(), settings)
    assert reloaded.snapshot_bytes() == table.snapshot_bytes()
    assert table.live_bytes() >= 0


def test_the_size_counts_the_ends_of_many_partitions() -> None:
    table = EvaluatorTable(table_settings("position"))
    for partition in range(1, 2000):
        table.apply(EndOfPartition(f"a/long/path/to/file-{partition:05}.csv.gz", partition, 2000, 3).pack())
    assert table.snapshot_bytes() == pytest.approx(len(table.to_bytes()), rel=0.03)


@pytest.mark.slow
def test_thousands_of_models_of_one_event_take_three_kilobytes_each() -> None:
    models = 10_000 if THOROUGH else 3_000
    batch = many_models(models).pack()
    table = EvaluatorTable(table_settings("arrival"))
    table.apply(batch)
    snapshot = table.to_bytes()
    table = EvaluatorTable.from_bytes(snapshot, table.settings)
    (rows,) = table.apply(END)
    assert len(rows) == len(table) == models
    assert rows[0].reason is not None
    assert table.live_bytes() < 3_000 * models


def test_a_packet_of_a_partition_that_the_input_does_not_have_is_refused() -> None:
    table = EvaluatorTable(TableSettings(rs.EvaluatorSettings(order="position")))
    table.apply(EndOfPartition("a", 0, 1, 1).pack())
    batch = EventBatch(TextColumn.of(["m"]), np.array([0.5]), np.array([1]), head=PacketHead(1, 0))
    with pytest.raises(rs.InputError, match="is of partition 1, and the input has 1"):
        table.apply(batch.pack())


def test_a_shard_with_waiting_packets_is_not_read_as_one_evaluator() -> None:
    table = EvaluatorTable(TableSettings(rs.EvaluatorSettings(order="position")))
    for sequence in (0, 2):
        batch = EventBatch(
            TextColumn.of(["m"]),
            np.array([0.5]),
            np.array([1]),
            head=PacketHead(sequence=sequence),
            source="a",
        )
        table.apply(batch.pack())
    with pytest.raises(rs.OtherConfigurationError, match="1 evaluators and 1 packets that wait"):
        rs.ModelEvaluator.from_bytes(table.to_bytes())


# ---- many small models: events wait until a row needs them


def small_models(n: int, models: int, seed: int = 3) -> list[Event]:
    return some_events(n, seed, [f"model {i}" for i in range(models)])


@pytest.mark.slow
@pytest.mark.parametrize(("packet", "slices"), some(product([1, 7, 150], [(), SLICES])))
def test_a_row_comes_out_with_the_record_that_holds_its_event(packet: int, slices: Any) -> None:
    settings = table_settings("arrival", k=4, every=3, slices=slices)
    events = small_models(300, 30)
    expected = {(row.model, row.slice, row.seq): row for row in expected_rows(settings, events)}
    table, seen, due = EvaluatorTable(settings), Counter[tuple[str, str]](), 0
    for start in range(0, len(events), packet):
        part = events[start : start + packet]
        got = {(row.model, row.slice, row.seq) for rows in table.apply(batch_of(part).pack()) for row in rows}
        wanted = set()
        for event in part:
            for names in ((), *settings.slices):
                key = event.model, label_of(event, names)
                seen[key] += 1
                if seen[key] % 3 == 0:
                    wanted.add((*key, seen[key]))
        assert got == wanted
        due += len(got)
    assert due > 60
    records = [batch_of(events[start : start + packet]).pack() for start in range(0, 300, packet)]
    assert run(settings, [*records, END]) == list(expected.values())


def test_what_waits_goes_into_a_snapshot_and_is_counted_in_its_size() -> None:
    settings = table_settings("arrival", k=5, every=50)
    events = small_models(600, 80)
    for reloads in (None, random.Random(5)):
        records = [batch_of(events[start : start + 60]).pack() for start in range(0, 600, 60)]
        assert run(settings, [*records, END], reloads) == expected_rows(settings, events)
    table = EvaluatorTable(settings)
    for record in records:
        table.apply(record)
        before = table.snapshot_bytes()
        assert before == pytest.approx(len(table.to_bytes()), rel=0.03, abs=64)
        assert table.snapshot_bytes() == before
    live = table.live_bytes()
    assert EvaluatorTable.from_bytes(table.to_bytes(), settings).live_bytes() < live + 64_000


def test_events_with_and_without_times_in_one_table() -> None:
    settings = table_settings("arrival", k=5, every=2)
    events = small_models(400, 60)
    mixed = [batch_of(events[start : start + 40]) for start in range(0, 400, 40)]
    for place in range(0, 10, 2):
        mixed[place] = replace(mixed[place], times=None)
    together = run(settings, [*(batch.pack() for batch in mixed), END])
    single = [batch.take(np.array([row])) for batch in mixed for row in range(len(batch))]
    assert together == run(settings, [*(batch.pack() for batch in single), END])


def test_an_event_with_classes_after_one_without_is_refused_with_its_own_record() -> None:
    table = EvaluatorTable(table_settings("arrival", every=100))
    table.apply(batch_of(small_models(50, 20)).pack())
    with pytest.raises(rs.InputError, match="events with predicted classes follow events without"):
        table.apply(
            replace(classes_of(3)(20), models=TextColumn.of([f"model {i}" for i in range(20)])).pack()
        )


@pytest.mark.slow
def test_a_curve_comes_out_with_the_record_that_holds_its_event() -> None:
    settings = table_settings("arrival", k=4, every=50)
    settings = replace(settings, evaluator=replace(settings.evaluator, curves=rs.EveryEvents(4)))
    table, seen = EvaluatorTable(settings), Counter[str]()
    events = small_models(300, 30)
    for event in events:
        seen[event.model] += 1
        curves = [curve for rows in table.apply(batch_of([event]).pack()) for curve in rows.curves]
        due = [(event.model, seen[event.model])] if seen[event.model] % 4 == 0 else []
        assert [(curve.model, curve.seq) for curve in curves] == due
        if len(curves) == 1:
            table = EvaluatorTable.from_bytes(table.to_bytes(), settings)
    assert sum(count // 4 for count in seen.values()) > 50
