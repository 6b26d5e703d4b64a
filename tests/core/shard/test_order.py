"""By event time, rows are those of the sorted stream, whatever packets, their order, repeats, restarts."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
import rocsteady as rs
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.records import Clock, EndOfInput, EndOfPartition, Heartbeat, unpack_record
from rocsteady.core.events.rejected import Rejected, in_words
from rocsteady.core.events.wire import UNORDERED, PacketHead
from rocsteady.core.rows.records import MeasureRow
from rocsteady.core.settings.table import TableSettings

from tests.support.streams.partitions import (
    SECOND,
    Event,
    anyhow,
    dealt,
    event_batch,
    identity,
    mixed,
    play,
    records_of,
    rows_in_time,
    shuffled_within,
    some_events,
)
from tests.support.thorough import THOROUGH, at_length, examples

END = EndOfInput().pack()
WINDOWS: dict[str, Any] = {
    "last:7": rs.LastEvents(7),
    "last:1m": rs.LastDuration("30s"),
    "all": rs.AllEvents(),
    "adaptive": rs.Adaptive(0.9),
    "fading:5": rs.Fading(5),
    "fading:10s": rs.Fading("10s"),
}
EMISSIONS: dict[str, Any] = {"3": rs.EveryEvents(3), "10s": rs.EverySeconds("10s")}


def evaluator(window: str = "last:7", every: str = "3", order: str = "time") -> rs.EvaluatorSettings:
    return rs.EvaluatorSettings(window=WINDOWS[window], every=EMISSIONS[every], order=order)


def same(got: list[MeasureRow], expected: list[MeasureRow], window: str) -> None:
    """Compare rows to the last bit, of fading windows to 1e-12 of a value."""
    if not window.startswith("fading"):
        assert got == expected
        return
    assert list(map(identity, got)) == list(map(identity, expected))
    for row, right in zip(got, expected, strict=True):
        for name, value in right._asdict().items():
            there = getattr(row, name)
            if isinstance(value, float):
                assert there == pytest.approx(value, rel=1e-12, abs=1e-12), (name, identity(row))
            else:
                assert there == value, (name, identity(row))


@pytest.mark.at_length
@pytest.mark.parametrize("every", EMISSIONS)
@pytest.mark.parametrize("window", WINDOWS)
def test_rows_are_those_of_the_sorted_stream(window: str, every: str) -> None:
    rng = random.Random(f"{window} {every}")
    table = TableSettings(evaluator(window, every))
    for turn in range(12 if THOROUGH else at_length(6, 3)):
        events = some_events(60, rng)
        expected = rows_in_time(table.evaluator, events)
        records = records_of(dealt(events, (1, 2, 4)[turn % 3], rng), rng)
        mix = anyhow if turn % 2 else mixed
        played = play(table, [*mix(records, rng), END], rng)
        same(played.rows, expected, window)
        assert not played.refused


@pytest.mark.slow
def test_in_order_of_arrival_the_end_of_all_partitions_gives_the_last_rows() -> None:
    rng = random.Random(4)
    table = TableSettings(evaluator(order="arrival"))
    for turn in range(12):
        records = records_of(dealt(some_events(60, rng), (1, 2, 4)[turn % 3], rng), rng)
        mix = anyhow if turn % 2 else mixed
        came = mix(records, rng)
        first = {record: place for place, record in reversed([*enumerate(came)])}
        contents = {record: unpack_record(record) for record in dict.fromkeys(came)}
        batches = [content for content in contents.values() if isinstance(content, EventBatch)]
        one_by_one = [replace(batch, head=PacketHead(sequence=UNORDERED)).pack() for batch in batches]
        expected = play(table, [*one_by_one, END]).rows
        played = play(table, came, rng)
        assert played.rows == expected
        needed = [first[record] for record, word in contents.items() if not isinstance(word, Heartbeat)]
        assert max(played.after.values()) == max(needed)
        assert play(table, [*came, END, END], rng).rows == expected


few = st.lists(st.tuples(st.integers(0, 5), st.sampled_from("ab"), st.integers(0, 1)), max_size=9)


@settings(max_examples=examples(60))
@given(few.flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(range(len(rows))))), st.integers(0))
def test_a_shuffle_of_a_stream_gives_equal_rows(
    drawn: tuple[list[tuple[int, str, int]], list[int]], seed: int
) -> None:
    rows, order = drawn
    events = [
        Event(time, f"{number}", model, time / 5, label) for number, (time, model, label) in enumerate(rows)
    ]
    rng = random.Random(seed)
    records = records_of(dealt([events[place] for place in order], 2, rng), rng, most=3)
    table = TableSettings(evaluator(every="3"))
    played = play(table, anyhow(records, rng), rng)
    assert played.rows == rows_in_time(table.evaluator, events)


def clock_of(records: list[bytes]) -> tuple[int, int]:
    """Say how far all partitions are settled by these records, and the greatest time that they speak of."""
    packets: dict[int, set[int]] = {}
    words: list[tuple[int, int, int]] = []
    count, greatest = 0, -(2**63)
    for content in map(unpack_record, records):
        if isinstance(content, EventBatch):
            packets.setdefault(content.head.partition, set()).add(content.head.sequence)
            greatest = max(greatest, content.head.high_water)
        elif isinstance(content, Heartbeat | EndOfPartition):
            ends = isinstance(content, EndOfPartition)
            count = content.partitions
            words.append((content.partition, content.packets, 2**63 - 1 if ends else content.settled))
            greatest = max(greatest, content.high_water if ends else greatest)
    settled = dict.fromkeys(range(count), -(2**63))
    for partition, sent, moment in words:
        if set(range(sent)) <= packets.get(partition, set()):
            settled[partition] = max(settled[partition], moment)
    return min(settled.values(), default=-(2**63)), greatest


@pytest.mark.slow
@pytest.mark.parametrize("every", EMISSIONS)
@pytest.mark.parametrize("window", ["last:7", "last:1m"])
def test_a_row_comes_as_soon_as_the_clock_has_passed_it(window: str, every: str) -> None:
    """On a grid those of models that are silent, too, up to the greatest time that is known."""
    rng, early = random.Random(f"{window} {every}"), 0
    table = TableSettings(evaluator(window, every))
    for turn in range(8):
        events = some_events(40, rng)
        records = mixed(records_of(dealt(events, 2, rng), rng, heartbeats=0.9), rng)
        if turn % 2:
            records = anyhow([records], rng)
        played = play(table, records)
        clocks = [clock_of(records[: number + 1]) for number in range(len(records))]
        for row in rows_in_time(table.evaluator, events):
            moment = row.time if row.due is None else row.due
            assert moment is not None
            last = row.due is None and (every == "10s" or row.seq % 3 != 0)
            number = next(
                place
                for place, (clock, greatest) in enumerate(clocks)
                if clock == 2**63 - 1 or (not last and moment < clock and (not row.due or moment <= greatest))
            )
            assert played.after[identity(row)] == number, (row, clocks[number])
            early += number < len(records) - 1
    assert early > 25


def test_a_clock_that_runs_ahead_of_all_events_makes_no_rows_beyond_them() -> None:
    """Heartbeats may speak of records that never count; how far they got must not show."""
    rng = random.Random(5)
    for idle_ttl in (None, 20 * SECOND):
        table = TableSettings(evaluator("last:1m", "10s"), idle_ttl=idle_ttl)
        events = some_events(40, rng)
        end = max(event.time for event in events)
        expected = rows_in_time(table.evaluator, events) if idle_ttl is None else None
        for ahead in (None, 1, 25 * SECOND, 3_600 * SECOND):
            *records, ended = records_of([events], rng)[0]
            sent = unpack_record(ended)
            assert isinstance(sent, EndOfPartition)
            if ahead is not None:
                records.append(Heartbeat(sent.source, 0, 1, sent.packets, end + ahead).pack())
            rows = play(table, [*records, ended, END], rng).rows
            assert rows == (expected or rows)
            expected = rows


# ---- the runner's clock


@pytest.mark.slow
@pytest.mark.parametrize("every", EMISSIONS)
@pytest.mark.parametrize("window", ["last:7", "last:1m"])
def test_events_behind_a_runners_clock_are_late_and_rows_are_those_of_the_others(
    window: str, every: str
) -> None:
    rng = random.Random(f"{window} {every}")
    table = TableSettings(evaluator(window, every))
    behind = 0
    for _ in range(12):
        events = shuffled_within(some_events(60, rng), 40 * SECOND, rng)
        records, clock, place = [], -(2**63), 0
        in_time: list[Event] = []
        late: list[tuple[str, str]] = []
        while place < len(events):
            part = events[place : place + rng.randint(1, 6)]
            place += len(part)
            records.append(event_batch(part).pack())
            in_time += [event for event in part if event.time >= clock]
            late += [(event.id, in_words(clock - event.time)) for event in part if event.time < clock]
            if rng.random() < 0.5:
                clock = max(clock, part[-1].time - 20 * SECOND + rng.randint(0, 1))
                records.append(Clock(clock).pack())
        played = play(table, [*records, END], rng)
        alone = rows_in_time(table.evaluator, in_time, one_clock=False)
        assert played.rows == alone, "each model's time is that of its own events"
        behind += len(late)
        told = [
            (id_, reason.removesuffix(" behind what was applied"))
            for each in played.refused
            for id_, reason in zip(ids_of(each), each.details.to_list(), strict=True)
        ]
        assert sorted(told) == sorted(late)
        assert {each.kind for each in played.refused} <= {"late"}
    assert behind > 20


def test_how_often_a_runners_clock_is_told_does_not_show() -> None:
    """Neither in rows on a grid nor in the last rows of models that fall silent and return."""
    rng = random.Random(9)
    for idle_ttl in (None, 15 * SECOND):
        table = TableSettings(evaluator("last:1m", "10s"), idle_ttl=idle_ttl)
        events = sorted(some_events(60, rng, models="abcdefgh"))
        expected = None
        for words in (0.0, 0.5, 1.0):
            records, place = [], 0
            while place < len(events):
                part = events[place : place + rng.randint(1, 6)]
                place += len(part)
                records.append(event_batch(part).pack())
                if place < len(events) and rng.random() < words:
                    records.append(Clock(events[place].time).pack())
            if words:
                records += [Clock(events[-1].time + ahead * SECOND).pack() for ahead in (1, 16, 1_000)]
            rows = play(table, [*records, END], rng).rows
            assert rows == (expected or rows)
            expected = rows


def ids_of(rejected: Rejected) -> list[str | None]:
    assert rejected.records.ids is not None
    return rejected.records.ids.to_list()


def test_what_comes_behind_the_end_of_its_input_says_so() -> None:
    played = play(
        TableSettings(evaluator()),
        [
            event_batch([Event(5, "a", "m", 0.5, 1)]).pack(),
            END,
            event_batch([Event(9, "b", "m", 0.5, 1)]).pack(),
            END,
        ],
    )
    (late,) = played.refused
    assert (ids_of(late), late.details.to_list()) == (["b"], ["its input had ended"])
    assert [row.seq for row in played.rows] == [1]
