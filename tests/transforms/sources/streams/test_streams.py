"""EvaluateModels in order of time, its clock the runner's watermark: on streams that jump, stray and fail."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
import rocsteady as rs
from apache_beam.transforms.window import FixedWindows, SlidingWindows, TimestampedValue
from rocsteady.core.rows.records import MeasureRow
from rocsteady.core.rows.rows import Rows
from rocsteady.core.settings.table import TableSettings
from rocsteady.transforms.evaluate.shards import TableFactory
from rocsteady.transforms.events.dead_letters import DeadLetter
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.sources.pack_records import PackRecords

from tests.support.processes.beam_runs import RUNNERS, InOrder, Keep, kept, pipeline
from tests.support.processes.failing_dofn import FailingMachines, FailsBetween, Failures
from tests.support.streams.beam_streams import Stream, at, played
from tests.support.streams.partitions import (
    SECOND,
    Event,
    event_batch,
    identity,
    rows_in_time,
    shuffled_within,
    some_events,
)

WINDOWS: dict[str, Any] = {
    "last:7": (rs.LastEvents(7), rs.EveryEvents(3)),
    "last:30s": (rs.LastDuration("30s"), rs.EverySeconds("10s")),
}


def evaluation(order: str = "time", kind: str = "last:7", **more: Any) -> rs.EvaluateModels:
    window, every = WINDOWS[kind]
    columns: dict[str, Any] = {"time": "time", "time_unit": "us", "id": "id", "shards": 2}
    columns |= {"window": window, "every": every, **more}
    return rs.EvaluateModels(order=order, clock="runner", **columns)


def settings(order: str = "time", kind: str = "last:7") -> rs.EvaluatorSettings:
    window, every = WINDOWS[kind]
    return rs.EvaluatorSettings(window=window, every=every, order=order)


def run(stream: Any, transform: Any, folder: Path, windows: Any = None) -> list[MeasureRow]:
    """Return the rows of a stream; `late` says what was late."""
    with pipeline("retrying", "--streaming") as p:
        events = p | stream
        if windows is not None:
            events |= beam.WindowInto(windows, allowed_lateness=10_000)
        result = events | transform
        result.rows | Keep(folder, "rows")
        result.late | Keep(folder, "late")
        result.dead_letters | Keep(folder, "dead")
    assert not kept(folder, "dead")
    return sorted((MeasureRow(*row.value) for row in kept(folder, "rows")), key=by_pane)


def by_pane(row: MeasureRow) -> tuple[Any, ...]:
    return row.pane_start or 0, *identity(row)


def late(folder: Path) -> list[tuple[str, str]]:
    """Return id and detail of what was late."""
    letters = [DeadLetter(*letter.value) for letter in kept(folder, "late")]
    assert {(letter.kind, letter.reason) for letter in letters} <= {("late", "behind the clock")}
    return sorted((str(letter.id), str(letter.detail)) for letter in letters)


def as_element(event: Event) -> tuple[int, Any]:
    return event.time, event._asdict()


@pytest.mark.slow
@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize(("order", "lateness"), [("time", 0), ("time:10s", 10 * SECOND)])
def test_a_stream_shuffled_within_its_lateness_gives_the_rows_of_the_ordered_one(
    order: str, lateness: int, kind: str, tmp_path: Path
) -> None:
    rng = random.Random(f"{order} {kind}")
    events = shuffled_within(some_events(90, rng), 25 * SECOND, rng)
    rows = run(played([*map(as_element, events)], rng, ahead=lateness), evaluation(order, kind), tmp_path)
    assert late(tmp_path) == []
    assert rows == rows_in_time(settings(order, kind), events, one_clock=False)
    assert len(rows) > 25


def test_what_comes_behind_what_was_applied_is_late_by_how_much(tmp_path: Path) -> None:
    a, b, c = (Event(time * SECOND, name, "m", 0.5, 1) for time, name in ((30, "a"), (100, "b"), (200, "c")))
    strays = [
        Event(29 * SECOND, "s", "m", 0.1, 0),
        Event(5 * SECOND, "t", "m", 0.1, 0),
        Event(150 * SECOND, "u", "m", 0.1, 0),
    ]
    stream = Stream().then(as_element(a)).watermark(60 * SECOND).then(as_element(b), *map(as_element, strays))
    stream = stream.watermark(170 * SECOND).then(as_element(c)).end()
    rows = run(stream, evaluation("time:10s"), tmp_path)
    behind = "behind what was applied"
    assert late(tmp_path) == [("s", f"1s {behind}"), ("t", f"25s {behind}")]
    assert rows == rows_in_time(settings("time:10s"), [a, b, c, strays[2]], one_clock=False)


@pytest.mark.slow
@pytest.mark.parametrize("lateness", [0, 10])
def test_a_timer_lets_go_what_the_watermark_has_passed_and_nothing_at_it(
    lateness: int, tmp_path: Path
) -> None:
    """While the watermark is at a time, events of that time may come, and they apply by their ids."""
    first, second = (Event(30 * SECOND, name, "m", 0.5, 1) for name in ("b", "a"))
    for past, is_late in ((0, False), (1_000, True)):
        folder = tmp_path / str(past)
        folder.mkdir()
        stream = Stream().then(as_element(first)).watermark((30 + lateness) * SECOND + past)
        stream = stream.then(as_element(second)).end()
        rows = run(stream, evaluation(f"time:{lateness}s"), folder)
        assert late(folder) == [("a", "1us behind what was applied")] * is_late
        assert [row.seq for row in rows] == [1 if is_late else 2]


def test_a_pane_ends_in_order_of_time_and_what_comes_later_is_late(tmp_path: Path) -> None:
    """Also where the lateness is longer than what is left of the pane: it ends with its window."""
    one, two = ([Event(time * SECOND, f"{time}", "m", 0.5, 1) for time in times] for times in ((9, 3), (14,)))
    late_one = Event(8 * SECOND, "late", "m", 0.5, 1)
    stream = Stream().watermark(0).then(*map(as_element, (*one, *two))).watermark(10 * SECOND)
    stream = stream.then(as_element(late_one), as_element(Event(11 * SECOND, "in time", "m", 0.5, 0)))
    stream = stream.watermark(40 * SECOND).then(as_element(late_one._replace(id="very"))).end()
    rows = run(stream, evaluation("time:5s", every=rs.EveryEvents(1)), tmp_path, FixedWindows(10))
    assert [(row.pane_start, row.time, row.seq) for row in rows] == [
        (0, 3 * SECOND, 1), (0, 9 * SECOND, 2),
        (10 * SECOND, 11 * SECOND, 1), (10 * SECOND, 14 * SECOND, 2),
    ]  # fmt: skip
    assert late(tmp_path) == [("late", "its input had ended"), ("very", "its input had ended")]


@pytest.mark.slow
def test_every_sliding_pane_is_sorted_by_itself(tmp_path: Path) -> None:
    rng = random.Random(4)
    events = shuffled_within(some_events(60, rng, span=40 * SECOND), 8 * SECOND, rng)
    rows = run(played([*map(as_element, events)], rng), evaluation(), tmp_path, SlidingWindows(20, 10))
    assert late(tmp_path) == []
    expected = []
    for start in range(-10, 40, 10):
        pane = start * SECOND, (start + 20) * SECOND
        mine = [event for event in events if pane[0] <= event.time < pane[1]]
        expected += [
            row._replace(pane_start=pane[0], pane_end=pane[1])
            for row in rows_in_time(settings(), mine, one_clock=False)
        ]
    assert rows == expected


@pytest.mark.slow
@pytest.mark.parametrize("runner", [runner for runner in RUNNERS if runner != "processes"])
def test_a_bounded_input_is_sorted_on_every_runner(runner: str, tmp_path: Path) -> None:
    rng = random.Random(2)
    events = some_events(80, rng)
    with pipeline(runner) as p:
        elements = p | InOrder([event._asdict() for event in events])
        result = elements | evaluation(kind="last:30s")
        result.rows | Keep(tmp_path, "rows")
        result.late | Keep(tmp_path, "late")
    rows = sorted((MeasureRow(*row.value) for row in kept(tmp_path, "rows")), key=identity)
    assert rows == rows_in_time(settings(kind="last:30s"), events, one_clock=False)
    assert not kept(tmp_path, "late")


@pytest.mark.parametrize(("waited_for", "seconds"), [(True, 1), (False, 9)])
def test_a_packet_has_the_time_of_its_earliest_record_where_a_watermark_waits_for_it(
    waited_for: bool, seconds: int, tmp_path: Path
) -> None:
    """With that of the newest a watermark might pass a record on its way to its shard: it would be late."""
    events = [Event(time * SECOND, f"{time}", "m", 0.5, 1) for time in (5, 1, 9)]
    with pipeline() as p:
        elements = (
            p | InOrder(events) | beam.Map(lambda event: TimestampedValue(event._asdict(), at(event.time)))
        )
        pack = PackRecords(EventFields(time="time", time_unit="us"), 1, "", waited_for=waited_for)
        elements | beam.ParDo(pack) | Keep(tmp_path, "packets")
    assert [packet.time for packet in kept(tmp_path, "packets")] == [seconds * SECOND]


@pytest.mark.slow
def test_rows_are_right_where_bundles_fail_before_inside_and_behind_the_evaluators(tmp_path: Path) -> None:
    """In the midst of records, timers and ends of bundles; on the runner that tries them again."""
    rng = random.Random(6)
    events = shuffled_within(some_events(120, rng), 20 * SECOND, rng)
    table = TableSettings(settings())
    packets = [(event.time, ("s", event_batch([event]).pack())) for event in events]
    before = Failures.raised
    with pipeline("retrying", "--streaming") as p:
        records = p | played(packets, rng, jumps=0.9)
        typed = records | beam.ParDo(FailsBetween()) | beam.Map(tuple).with_output_types(tuple[str, bytes])
        machines = FailingMachines(TableFactory(table), "step", letters=None, lateness=0)
        rows = typed | beam.ParDo(machines).with_output_types(Rows)
        single = (
            rows | "behind" >> beam.ParDo(FailsBetween()) | beam.FlatMap(list).with_output_types(MeasureRow)
        )
        single | Keep(tmp_path, "rows")
    assert Failures.raised - before > 20
    got = sorted((MeasureRow(*row.value) for row in kept(tmp_path, "rows")), key=identity)
    assert got == rows_in_time(settings(), events, one_clock=False)
