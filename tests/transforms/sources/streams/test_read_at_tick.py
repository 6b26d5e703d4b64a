"""The reader that Flink's clock drives: what one bundle reads is bounded, however many ticks have waited."""

from __future__ import annotations

import json
from typing import Any

import pytest
from list_partition import ListPartition
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.records import unpack_record
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.sources.streams import read as read_stream
from rocsteady.transforms.sources.streams.read import _ReadAtTick
from rocsteady.transforms.sources.streams.reader import StreamInput


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
