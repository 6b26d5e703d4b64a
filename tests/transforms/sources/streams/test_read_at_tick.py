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
from rocsteady.transforms.sources.streams import read as read_stream
from rocsteady.transforms.sources.streams.read import _ReadAtTick, _Source
from rocsteady.transforms.sources.streams.reader import FEW_RECORDS, StreamInput

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
