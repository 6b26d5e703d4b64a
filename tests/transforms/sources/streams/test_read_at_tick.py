"""What a bundle of a reader holds, on Flink and on Prism.

On Flink a bundle's messages are bounded, however many ticks have waited. On Prism a bundle ends where the
partition ends for now, since what was read waits for the end of the bundle.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.records import unpack_record
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.kafka.topic import KafkaTopic
from rocsteady.transforms.sources.streams import read as read_stream
from rocsteady.transforms.sources.streams.kafka_partition import KafkaPartition
from rocsteady.transforms.sources.streams.read import _ReadAtTick, _Source
from rocsteady.transforms.sources.streams.reader import FEW_RECORDS, StreamReader
from rocsteady.transforms.sources.streams.stream_input import StreamInput

from tests.support.streams.list_partition import ListPartition


class Cell:
    """A state cell that holds a value."""

    value: bytes | None = None

    def read(self) -> bytes | None:
        return self.value

    def write(self, value: bytes) -> None:
        self.value = value


def event(i: int) -> dict[str, Any]:
    return {"model": "m", "score": i % 7 / 7, "label": i % 2}


@pytest.mark.parametrize(("partitions", "share"), [(1, 4_000), (2, 2_000)])
def test_a_bundle_reads_its_share_whatever_the_ticks(
    monkeypatch: pytest.MonkeyPatch, partitions: int, share: int
) -> None:
    monkeypatch.setattr(read_stream, "_BUNDLE_MESSAGES", 4_000)
    inputs = [
        StreamInput(
            ListPartition(f"p{number}", tuple(json.dumps(event(i)).encode() for i in range(10_000))),
            number, partitions, "event", EventFields(model="model"), 0, 10_000,
        )
        for number in range(partitions)
    ]  # fmt: skip
    reader = _ReadAtTick(inputs, 1)
    reader.setup()
    cells = [Cell() for _ in inputs]
    seen: list[list[int]] = []
    while not all(cell.value and json.loads(cell.value)["ended"] for cell in cells):
        reader.start_bundle()
        read = [0] * partitions
        for _ in range(100):
            for number, source in enumerate(inputs):
                for _, packet in reader.process((read_stream._key(source), b""), cells[number]):
                    record = unpack_record(packet)
                    read[number] += len(record) if isinstance(record, EventBatch) else 0
        seen.append(read)
        assert len(seen) < 20
    reader.teardown()
    assert [sum(of) for of in zip(*seen, strict=True)] == [10_000] * partitions
    assert max(max(read) for read in seen[1:]) <= share


def test_a_source_rests_where_its_partition_ends_for_now_however_much_came() -> None:
    messages = tuple(json.dumps(event(i)).encode() for i in range(3 * FEW_RECORDS))
    partition = ListPartition("p0", messages, at_once=2 * FEW_RECORDS)
    source = StreamInput(partition, 0, 1, "event", EventFields(model="model"), 0)
    reader = _Source([source], 1).create_reader(None, None)
    assert reader.start()
    assert reader.advance(), "the partition has more, so the bundle goes on"
    assert not reader.advance()
    (sent,) = [unpack_record(packet) for _, packet in reader.get_current()[0]]
    assert len(sent) == FEW_RECORDS


def test_a_resumed_job_reads_no_partition_without_a_state_but_the_first_which_reads_all() -> None:
    """At a savepoint the topic had one partition. Its reader gets the others; without its state, all."""
    topic = KafkaTopic("broker:9092", "t")
    inputs = [
        StreamInput(KafkaPartition(topic, n, 3, "A", "B"), n, 3, "event", EventFields(model="model"), 0)
        for n in range(3)
    ]
    reader = _ReadAtTick(inputs, 1, resumes=True)
    reader.setup()
    reader.start_bundle()
    for source in inputs[1:]:
        cell = Cell()
        assert [*reader.process((read_stream._key(source), b""), cell)] == []
        assert cell.value is None
    (first, *others) = (reader._inputs[read_stream._key(source)] for source in inputs)
    assert (first.number, first.partitions, first.partition.known) == (0, 1, 1)
    assert [other.partition.known for other in others] == [3, 3]


def test_a_reader_goes_on_with_the_number_that_its_state_has() -> None:
    """The topic before it in the job has more partitions by now, and so has its own."""
    topic = KafkaTopic("broker:9092", "t")
    fields = EventFields(model="model")
    then = StreamInput(KafkaPartition(topic, 0, 2, "A", "B"), 1, 3, "event", fields, 0)
    now = StreamInput(KafkaPartition(topic, 0, 5, "A", "B"), 4, 9, "event", fields, 0)
    reader = StreamReader(now, 1, StreamReader(then, 1).state())
    assert (reader.source.number, reader.source.partitions, reader.source.partition.known) == (1, 3, 2)
