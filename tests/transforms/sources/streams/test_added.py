"""Partitions that a stream gets while a reader reads it: the same reader reads them, in its packets."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import InputError, OtherConfigurationError
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.records import Heartbeat, StateMarker, unpack_record
from rocsteady.core.events.rejected import Reason, Rejected
from rocsteady.core.events.times import ADDED, NO_TIME
from rocsteady.core.ids.sharding import Cut
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.settings.windows import EveryEvents, LastEvents
from rocsteady.core.table.table import EvaluatorTable
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.events.lateness import Timing
from rocsteady.transforms.sources.streams.reader import StreamReader
from rocsteady.transforms.sources.streams.stream_input import StreamInput

from tests.support.streams.list_partition import ListPartition

FIELDS = EventFields(time="time", model_name="m", id="id")
TABLE = TableSettings(
    EvaluatorSettings(window=LastEvents(20), every=EveryEvents(5), order="time:0s"), shards=1
)


def values(seconds, name):
    events = (
        {"score": i % 7 / 7, "label": int(i % 3 == 0), "time": second, "id": f"{name}{i}"}
        for i, second in enumerate(seconds)
    )
    return tuple(json.dumps(event).encode() for event in events)


def partition(seconds, name="t[0]", **more):
    return ListPartition(name, values(seconds, name), **more)


def reader_of(of, state=None, **more):
    source = StreamInput(of, 0, 1, "event", FIELDS, 0, None, Timing(lateness=0), located=True, **more)
    return StreamReader(source, 1, state)


def packets_of(steps):
    return [packet for step in steps for _, packet in step.packets]


def fed(packets, table=None):
    """Feed packets to a table; return its rows, and the reasons of what it refused."""
    table = EvaluatorTable(TABLE) if table is None else table
    given_ = [given for packet in packets for given in table.apply(packet)]
    rows = [row for given in given_ if not isinstance(given, Rejected) for row in given]
    reasons = {given.reason: len(given) for given in given_ if isinstance(given, Rejected)}
    return rows, reasons


def whole(seconds):
    """Rows of one partition with events of these times."""
    first = reader_of(partition(seconds))
    steps = [first.step(), *first.finish()]
    return fed(packets_of(steps))[0]


def times_and_seq(rows):
    return [(row.time, row.seq) for row in rows]


def test_an_added_partition_is_read_from_its_first_message_and_shares_the_packets():
    first = partition(range(0, 20, 2))
    reader = reader_of(first)
    steps = [reader.step()]
    first.siblings.append(partition(range(21, 40, 2), "t[1]"))
    steps += [reader.step(), *reader.finish()]
    assert reader.added == 1
    batches = [each for each in map(unpack_record, packets_of(steps)) if isinstance(each, EventBatch)]
    assert [(batch.source, batch.head.partition, batch.head.sequence) for batch in batches] == [
        ("t[0]", 0, 0), ("t[1]", 0, 1),
    ]  # fmt: skip
    rows, reasons = fed(packets_of(steps))
    assert (len(rows) > 3, reasons) == (True, {})
    assert times_and_seq(rows) == times_and_seq(whole([*range(0, 20, 2), *range(21, 40, 2)]))


def test_the_clock_waits_for_an_added_partition_from_its_first_event_on():
    first = partition(range(10))
    reader = reader_of(first)
    reader.step()
    first.siblings.extend([partition((), "t[1]"), partition((20,), "t[2]")])
    words = [each for each in map(unpack_record, packets_of([reader.step()])) if isinstance(each, Heartbeat)]
    assert [(word.source, word.settled) for word in words] == [("t[1]", ADDED), ("t[2]", ADDED)]
    object.__setattr__(first, "values", values(range(30), "t[0]"))
    reader.step()
    assert reader.settled == 20_000_000, "t[1] has no event, and t[2] none behind its first"


def test_events_of_an_added_partition_behind_the_clock_have_a_reason_of_their_own():
    first = partition(range(10, 30))
    reader = reader_of(first)
    table = EvaluatorTable(TABLE)
    fed(packets_of([reader.step()]), table)
    table = EvaluatorTable.from_bytes(table.to_bytes(), TABLE)
    first.siblings.append(partition([*range(12), *range(40, 45)], "t[1]"))
    _, reasons = fed(packets_of([reader.step()]), table)
    table = EvaluatorTable.from_bytes(table.to_bytes(), TABLE)
    _, more = fed(packets_of(reader.finish()), table)
    assert (reasons, more) == ({Reason.NEW_PARTITION: 12}, {})
    assert table.counts()["events_applied"] == 5 + 1  # and the last one of before, for which the clock waited


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_a_reader_of_any_state_goes_on_as_the_one_before(seed):
    rng = random.Random(seed)

    def stream():
        return partition(sorted(rng.choices(range(100), k=30)), at_once=7)

    first = stream()
    others = [partition(sorted(rng.choices(range(50, 150), k=20)), f"t[{i}]", at_once=5) for i in (1, 2)]
    come = rng.sample(range(1, 8), 2)

    def run(*, resumes):
        first.siblings.clear()
        first.stopped.clear()
        reader, packets = reader_of(first), []
        for step in range(12):
            first.siblings.extend(other for other, at in zip(others, sorted(come), strict=True) if at == step)
            if resumes:
                reader = reader_of(first, reader.state())
            packets += packets_of([reader.step(6)])
        return packets, reader.state()

    assert run(resumes=False) == run(resumes=True)


def test_a_marker_has_the_offsets_of_added_partitions():
    first = partition(range(3), origin="Kafka cluster A, topic id B")
    first.siblings.append(partition(range(5), "t[1]", origin="Kafka cluster A, topic id B"))
    reader = reader_of(first, cut=Cut("id", "folder"))
    steps = [reader.step(), *reader.finish()]
    (marker,) = [each for each in map(unpack_record, packets_of(steps)) if isinstance(each, StateMarker)]
    position = json.loads(marker.position)
    assert (position["offset"], position["added"]["t[1]"]["offset"]) == (3, 5)
    assert position["added"]["t[1]"]["origin"] == "Kafka cluster A, topic id B"


def test_a_partition_that_is_new_since_an_export_says_so_once():
    reader = reader_of(partition(()), is_new=True)
    (word,) = map(unpack_record, packets_of([reader.step()]))
    assert (word.source, word.settled, word.high_water) == ("t[0]", ADDED, NO_TIME)
    assert packets_of([reader.step()]) == []
    assert packets_of([reader_of(partition(()), reader.state(), is_new=True).step()]) == []


def test_a_job_in_order_of_position_ends_where_a_partition_is_added():
    first = partition(range(3))
    first.siblings.append(partition(range(3), "t[1]"))
    with pytest.raises(InputError, match=r"t\[1\] was added while the job ran, and nothing says in which"):
        reader_of(first, grows=False).step()


def test_a_bounded_job_reads_the_partitions_of_its_start():
    first = partition(range(3))
    first.siblings.append(partition(range(3), "t[1]"))
    reader = StreamReader(StreamInput(first, 0, 1, "event", FIELDS, 0, 3, grows=False), 1)
    assert reader.step().records == 3
    assert (reader.ended, reader.added) == (True, 0)


def test_a_state_is_not_taken_to_another_partition_or_topic():
    state = reader_of(partition(range(3), origin="Kafka cluster A, topic id B")).state()
    with pytest.raises(OtherConfigurationError, match=r"the position of t\[0\] .* where u\[0\] would go on"):
        reader_of(partition(range(3), "u[0]"), state)
    with pytest.raises(InputError, match="its topic was deleted and made anew since: its id was B and is C"):
        reader_of(partition(range(3), origin="Kafka cluster A, topic id C"), state)
