"""The reader of a partition: cut, repeated or resumed anywhere, its events come to the same rows."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import CorruptBytesError, FutureVersionError, OtherConfigurationError
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.records import EndOfPartition, Heartbeat, StateImport, unpack_record
from rocsteady.core.events.rejected import Rejected
from rocsteady.core.events.times import IDLE, NO_TIME
from rocsteady.core.ids.sharding import Cut, shard_key
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.settings.table import Shards, TableSettings
from rocsteady.core.settings.windows import EveryEvents, LastEvents
from rocsteady.core.state.exported import ShardState
from rocsteady.core.state.take_up import taken_up
from rocsteady.core.table.table import EvaluatorTable
from rocsteady.transforms.evaluate.shards import TableFactory
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.events.lateness import Timing
from rocsteady.transforms.sources.streams import cursor as sizes
from rocsteady.transforms.sources.streams.offsets import ReaderState
from rocsteady.transforms.sources.streams.reader import StreamReader
from rocsteady.transforms.sources.streams.stream_input import StreamInput
from rocsteady.transforms.state.control import ExportRequest, ask, let_go
from rocsteady.transforms.state.folder import write_state

from tests.support.streams.list_partition import ListPartition
from tests.support.thorough import at_length

FIELDS = EventFields(time="time", model="model", id="id")
TABLE = TableSettings(
    EvaluatorSettings(window=LastEvents(20), every=EveryEvents(5), order="time:0s"), shards=1
)


def event(i, seconds, model="m"):
    return {"model": model, "score": i % 7 / 7, "label": int(i % 3 == 0), "time": seconds, "id": f"e{i}"}


def message(found):
    return json.dumps(found).encode()


def reader_of(
    partition, *, number=0, partitions=1, shards=1, start=0, end=None, state=None, fields=FIELDS, **more
):
    timing = Timing(lateness=0)
    source = StreamInput(
        partition, number, partitions, "event", fields, start, end, timing, located=True, **more
    )
    return StreamReader(source, shards, state)


def read_all(partition, limit=1_000_000, **options):
    reader = reader_of(partition, end=partition.end(), **options)
    steps = []
    while not reader.ended:
        steps.append(reader.step(limit))
    return steps


def rows_of(packets):
    """Feed packets to a table, and return its rows and how many events were late there."""
    table = EvaluatorTable(TABLE)
    rows = []
    for packet in packets:
        rows += [row for given in table.apply(packet) if not isinstance(given, Rejected) for row in given]
    return sorted(rows, key=identity), table.counts()["late"]


def stream(n, seed, partitions):
    """Values of partitions, with some that are late, no JSON, or several events."""
    rng = random.Random(seed)
    values = [[] for _ in range(partitions)]
    seconds = 0
    for i in range(n):
        seconds += rng.choice([0, 0, 1, 30])
        own = values[rng.randrange(partitions)]
        kind = rng.random()
        if kind < 0.05:
            own.append(rng.choice([None, b"", b"no JSON", b"[1, 2", b'"text"', b"\xff\xfe", b"{}"]))
        elif kind < 0.1:
            own.append(message([event(i, seconds), event(i + 10_000, seconds), 7]))
        else:
            late = rng.choice([0, 0, 0, 50])
            own.append(message(event(i, seconds - late, rng.choice("ab"))))
    return [ListPartition(f"events[{number}]", tuple(each)) for number, each in enumerate(values)]


def reference(parts):
    """The rows of the partitions read whole, one after another."""
    packets = [
        packet
        for number, part in enumerate(parts)
        for step in read_all(part, number=number, partitions=len(parts))
        for _, packet in step.packets
    ]
    return rows_of(packets)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(0, 10_000), st.sampled_from([1, 2, 4]))
def test_rows_do_not_depend_on_steps_failures_and_resumption(seed, partitions):
    rng = random.Random(seed)
    parts = stream(120, seed, partitions)
    committed = [None] * partitions
    packets, ended = [], set()
    while len(ended) < partitions:
        number = rng.randrange(partitions)
        reader = reader_of(
            parts[number],
            number=number,
            partitions=partitions,
            end=parts[number].end(),
            state=committed[number],
        )
        given_now = []
        for _ in range(rng.randrange(4)):
            given_now += reader.step(rng.randrange(1, 40)).packets
        if rng.random() < 0.3:
            continue  # the bundle failed: nothing of it is there, and the next one is cut otherwise
        packets += [packet for _, packet in given_now]
        committed[number] = reader.state()
        if reader.ended:
            ended.add(number)
    rng.shuffle(packets)  # no runner promises an order
    assert rows_of(packets) == reference(parts)


def applied(machine, records):
    """Feed records to a machine; return its rows, and the states that it was asked for."""
    rows, states = [], []
    for record in records:
        for output in machine.apply(record):
            if isinstance(output, ShardState):
                states.append((output, len(rows)))
            elif not isinstance(output, Rejected):
                rows += output
    return rows, states


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10_000), st.sampled_from([1, 2, 3]), st.booleans())
def test_a_job_goes_on_from_the_state_and_the_offsets_of_another_that_ran_on(
    tmp_path, seed, partitions, at_the_end
):
    """Its state is asked for while it runs, or left where its input is cut off."""
    rng = random.Random(seed)
    parts = stream(120, seed, partitions)
    control = tmp_path / "control"
    control.unlink(missing_ok=True)
    cut = Cut("export-1", "folder") if at_the_end else None
    ends = [rng.randrange(part.end() + 1) if at_the_end else part.end() for part in parts]
    committed, ended, packets = [None] * partitions, set(), []
    asked = rng.randrange(30)
    while len(ended) < partitions:
        if not at_the_end and asked == 0:
            ask(str(control), ExportRequest("export-1", "folder"))
        asked -= 1
        number = rng.randrange(partitions)
        reader = reader_of(
            parts[number], number=number, partitions=partitions, end=ends[number], state=committed[number],
            control=None if at_the_end else str(control), cut=cut,
        )  # fmt: skip
        packets += [packet for _, packet in reader.step(rng.randrange(1, 20)).packets]
        committed[number] = reader.state()
        if reader.ended:
            ended.add(number)
    factory = TableFactory(TABLE)
    rows, states = applied(factory.new(None, shard_key(0)), packets)
    if not states:  # all partitions had ended before they were asked
        assert sorted(rows, key=identity) == reference(parts)[0]
        return
    ((state, before),) = states
    positions = {source: json.loads(position) for source, position in state.positions.values()}
    rest = []
    for number, part in enumerate(parts):
        if part.name not in positions:  # it had ended
            positions[part.name] = {"offset": part.end(), "high_water": NO_TIME}
        place = positions[part.name]
        steps = read_all(
            part, number=number, partitions=partitions, start=place["offset"], high_water=place["high_water"]
        )
        rest += [packet for step in steps for _, packet in step.packets]
    rng.shuffle(rest)
    rest.insert(rng.randrange(len(rest)), StateImport("export-1", taken_up(state.snapshot, TABLE)).pack())
    more, _ = applied(TableFactory(TABLE, awaits=True).new(None, shard_key(0)), rest)
    assert sorted(rows[:before] + more, key=identity) == reference(parts)[0]


def test_an_export_that_is_given_up_holds_nothing_up(tmp_path):
    """One reader saw the request; the other looks when somebody has given it up."""
    parts = [
        ListPartition(f"p{n}", tuple(message(event(i, i)) for i in range(60)), at_once=20) for n in range(2)
    ]
    control, folder = str(tmp_path / "control"), str(tmp_path / "state")

    def step(number, state):
        reader = reader_of(parts[number], number=number, partitions=2, control=control, state=state, end=60)
        return [packet for _, packet in reader.step().packets], reader.state()

    request = ExportRequest("1", folder)
    ask(control, request)
    packets, first = step(0, None)
    assert let_go(control, request, "2")
    states = [first, None]
    for _ in range(3):
        for number in range(2):
            more, states[number] = step(number, states[number])
            packets += more
    machine = TableFactory(TABLE).new(None, shard_key(0))
    rows, given_states = applied(machine, packets)
    assert sorted(rows, key=identity) == reference(parts)[0]
    for state, _ in given_states:
        write_state(state.pack(), state.folder, ())
    assert not Path(folder).exists()
    assert machine.snapshot_bytes() < 2_000


def identity(row):
    return row.model, row.row


@pytest.mark.slow
@settings(max_examples=40)
@given(st.integers(0, 10_000), st.lists(st.integers(1, 30), min_size=1), st.integers(0, 50))
def test_a_resumed_reader_gives_what_the_one_before_would_have(seed, limits, cut):
    (part,) = stream(100, seed, 1)

    def run(resumed):
        sizes._records_in_message.clear()
        reader, packets, at = reader_of(part, shards=3, end=part.end()), [], 0
        while not reader.ended:
            if resumed and at == cut:
                reader = reader_of(part, shards=3, end=part.end(), state=reader.state())
            packets += reader.step(limits[at % len(limits)]).packets
            at += 1
        return packets

    assert run(True) == run(False)


@pytest.mark.at_length
@given(st.integers(0, 10_000), st.integers(1, 200))
@settings(max_examples=at_length(30, 10))
def test_every_event_is_in_a_packet_or_a_dead_letter_at_its_offset(seed, limit):
    (part,) = stream(80, seed, 1)
    steps = read_all(part, limit)
    batches = [unpack_record(packet) for step in steps for _, packet in step.packets]
    offsets = [int(at) for batch in batches if isinstance(batch, EventBatch) for at in batch.positions]
    letters = [letter for step in steps for letter in step.letters]
    items = []
    for offset, value in enumerate(part.values):
        try:
            found = json.loads(value or b"")
        except ValueError:
            found = None
        items += [offset] * (len(found) if isinstance(found, list) else 1)
    assert sorted(offsets + [letter.position for letter in letters]) == items
    assert {letter.source for letter in letters} <= {"events[0]"}
    assert sum(step.records for step in steps) == len(items)


def test_what_is_no_event_is_said_with_its_offset_and_harms_no_other():
    values = (
        message(event(1, 1)),
        b"no JSON",
        None,
        b"  ",
        b'{"model": "m",\n "score": 0.5, "label": 1, "time": 2, "id": "x"}',
        message([event(2, 3), [1], event(3, 3)]),
        b"[]",
        b'{"model": "m", "score": "much", "label": 1, "time": 4}',
    )
    (step,) = read_all(ListPartition("events[7]", values))
    assert [
        (letter.position, letter.detail) for letter in sorted(step.letters, key=lambda one: one.position)
    ] == [
        (1, "not a JSON object: Expecting value: line 1 column 1 (char 0)"),
        (2, "an empty message"),
        (3, "an empty message"),
        (5, "not a JSON object"),
        (7, "score: 'much' is not a number"),
    ]
    packets = [unpack_record(packet) for _, packet in step.packets]
    assert [at for batch in packets if isinstance(batch, EventBatch) for at in batch.positions] == [
        0,
        4,
        5,
        5,
    ]


def test_a_dead_letter_of_a_large_message_is_cut():
    (step,) = read_all(ListPartition("events[0]", (b"x" * 10_000_000, message(event(1, 1)))))
    (letter,) = step.letters
    assert len(letter.raw) < 11_000
    assert json.loads(letter.raw).endswith("x... (10,000,000 characters)")


@pytest.mark.slow
def test_a_large_message_of_many_events_is_read():
    many = [event(i, i) for i in range(100_000)]
    (step,) = read_all(ListPartition("events[0]", (message(many),)))
    assert len(message(many)) > 6_000_000
    assert (step.records, len(step.letters)) == (100_000, 0)


@pytest.mark.parametrize(("end", "lost", "applied"), [(8, 3, 3), (5, 3, 0), (4, 2, 0), (None, 3, 5)])
def test_messages_that_were_deleted_before_they_were_read_are_one_dead_letter(end, lost, applied):
    part = ListPartition("events[0]", tuple(message(event(i, i)) for i in range(10)), low=5)
    reader = reader_of(part, start=2, end=end)
    steps = [reader.step(), reader.step()]
    (letter,) = [letter for step in steps for letter in step.letters]
    assert (letter.source, letter.position) == ("events[0]", 2)
    assert letter.reason == "messages deleted before they were read"
    assert letter.detail == f"{lost} messages from here on were deleted by retention before they were read"
    assert sum(step.records for step in steps) == 1 + applied
    assert reader.offset == (end or 10)
    assert reader.ended == (end is not None)


def test_offsets_need_not_be_consecutive_and_the_end_may_have_no_message():
    values = tuple(message(event(i, i)) for i in range(4))
    part = ListPartition("events[0]", values, offsets=(3, 9, 10, 40))
    reader = reader_of(part, start=3, end=30)
    step = reader.step()
    batch = unpack_record(step.packets[0][1])
    assert (batch.positions.tolist(), reader.ended, reader.offset, reader.lag()) == ([3, 9, 10], True, 30, 0)
    assert isinstance(unpack_record(step.packets[-1][1]), EndOfPartition)


def test_an_end_is_said_once_even_where_nothing_is_to_be_read():
    reader = reader_of(ListPartition("events[0]", ()), shards=2, end=0)
    assert [unpack_record(packet).packets for _, packet in reader.step().packets] == [0, 0]
    assert (reader.ended, reader.step().packets, [*reader.finish()]) == (True, [], [])
    resumed = reader_of(ListPartition("events[0]", ()), shards=2, end=0, state=reader.state())
    assert resumed.step().packets == []


def words(steps):
    found = [unpack_record(packet) for step in steps for _, packet in step.packets]
    return [word for word in found if isinstance(word, Heartbeat)]


def ends_of(reader):
    return [packet for step in reader.finish() for _, packet in step.packets]


def test_a_silent_partition_says_so_once_and_takes_it_back():
    part = ListPartition("events[0]", (message(event(1, 5)), message(event(2, 5))), at_once=1)
    reader = reader_of(part, idle=0.0)
    first, second, silent, again = (reader.step() for _ in range(4))
    assert [word.settled for word in words([first, second])] == [5_000_000]
    assert [word.settled for word in words([silent])] == [IDLE]
    assert again.packets == []
    later = reader_of(
        ListPartition("events[0]", (*part.values, message(event(3, 5)))), idle=0.0, state=reader.state()
    )
    assert [word.settled for word in words([later.step()])] == [5_000_000]


@pytest.mark.parametrize("values", [(), (message(event(1, 5)),)], ids=["never a record", "one"])
def test_silence_is_counted_over_many_looks(values, monkeypatch):
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    reader, idle_at = reader_of(ListPartition("events[0]", values), idle=10.0), []
    for _ in range(40):
        now += 1.0
        idle_at += [now for word in words([reader.step()]) if word.settled == IDLE]
    assert idle_at == [111.0 if values else 110.0]


def test_the_clock_does_not_wait_for_a_silent_partition_but_the_end_does():
    full = ListPartition("events[0]", tuple(message(event(i, i)) for i in range(30)))
    empty = ListPartition("events[1]", ())
    first = reader_of(full, partitions=2)
    packets = [packet for _, packet in first.step().packets]
    assert rows_of(packets) == ([], 0)
    silent = reader_of(empty, number=1, partitions=2, idle=0.0)
    packets += [packet for _, packet in silent.step().packets]
    rows, _ = rows_of(packets)
    assert [row.seq for row in rows] == [5, 10, 15, 20, 25]
    packets += ends_of(first)
    assert [row.seq for row in rows_of(packets)[0]] == [5, 10, 15, 20, 25]
    packets += ends_of(silent)
    assert [row.seq for row in rows_of(packets)[0]] == [5, 10, 15, 20, 25, 30]


def test_where_all_are_silent_none_waits_for_another():
    parts = [tuple(message(event(i, i)) for i in range(n)) for n in (30, 10)]
    readers = [
        reader_of(ListPartition(f"events[{place}]", part), number=place, partitions=2, idle=0.0)
        for place, part in enumerate(parts)
    ]
    packets = [packet for reader in readers for _, packet in reader.step().packets]
    assert [row.seq for row in rows_of(packets)[0]] == [5, 10, 15]  # up to the time that both have reached
    packets += [packet for reader in readers for _, packet in reader.step().packets]
    assert [row.seq for row in rows_of(packets)[0]] == [5, 10, 15, 20, 25, 30, 35]
    packets += [packet for reader in readers for packet in ends_of(reader)]
    assert [row.seq for row in rows_of(packets)[0]][-1] == 40


def test_a_table_remembers_who_is_silent():
    full = ListPartition("events[0]", tuple(message(event(i, i)) for i in range(30)))
    first = reader_of(full, partitions=2)
    silent = reader_of(ListPartition("events[1]", ()), number=1, partitions=2, idle=0.0)
    table = EvaluatorTable(TABLE)
    for _, packet in silent.step().packets:
        table.apply(packet)
    again = EvaluatorTable.from_bytes(table.to_bytes(), TABLE)
    rows = [row for _, packet in first.step().packets for given in again.apply(packet) for row in given]
    assert [row.seq for row in rows] == [5, 10, 15, 20, 25]


def test_a_state_of_other_shards_or_damaged_is_refused():
    part = ListPartition("events[0]", ())
    state = reader_of(part, shards=2).state()
    with pytest.raises(
        OtherConfigurationError, match=r"of a job of 2 shards, and this one has 3; start it with"
    ):
        reader_of(part, shards=3, state=state)
    own = Shards(1, own=["hot"])
    assert reader_of(part, shards=own, state=reader_of(part, shards=own).state()).state() == state
    for damaged in (
        state[:-5],
        b"{}",
        b'{"next": -1, "sent": [0]}',
        state.replace(b'"version":1', b'"version":"x"'),
    ):
        with pytest.raises(CorruptBytesError, match="contradicts itself"):
            ReaderState.from_bytes(damaged)
    newer = state.replace(b'"version":1', b'"version":9')
    with pytest.raises(
        FutureVersionError, match="is of version 9, and this rocsteady reads versions up to 1"
    ):
        ReaderState.from_bytes(newer)
