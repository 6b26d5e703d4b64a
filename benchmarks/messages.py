"""What reading a topic costs by the format of its messages: python -m benchmarks.messages [--events N].

The same events as JSON objects, as JSON arrays and as Arrow IPC streams, in topics of a broker of its own.
One process reads each topic in turns: from the client of Kafka to packets for 8 shards, and nothing behind
them. Figures are processor time of the process, those of the client's own threads included.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
from confluent_kafka import Producer
from rocsteady.runners.servers.kafka import KafkaBroker
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.events.lateness import Timing
from rocsteady.transforms.kafka.topic import KafkaTopic
from rocsteady.transforms.sources.streams.kafka_partition import KafkaPartition
from rocsteady.transforms.sources.streams.partition import MessageFormat
from rocsteady.transforms.sources.streams.reader import StreamReader
from rocsteady.transforms.sources.streams.stream_input import StreamInput

from .cluster_events import Events
from .processes import table

FIELDS = EventFields(time="time", time_unit="us", id="id", model="model")
SHARDS = 8
_WARM_UP = 3


def as_arrow(events: Sequence[dict[str, Any]], compression: str | None = None) -> bytes:
    """Return events as an Arrow IPC stream."""
    batch, sink = pa.RecordBatch.from_pylist([*events]), pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    message: bytes = sink.getvalue().to_pybytes()
    return message


def as_json(events: Sequence[dict[str, Any]]) -> bytes:
    """Return one event as an object, or several as an array."""
    return json.dumps(events if len(events) > 1 else events[0], separators=(",", ":")).encode()


CONTENDERS: dict[str, tuple[MessageFormat, int, Callable[[Sequence[dict[str, Any]]], bytes]]] = {
    "JSON, an object": ("json", 1, as_json),
    "JSON, an array of 100": ("json", 100, as_json),
    "Arrow, 100 events": ("arrow", 100, as_arrow),
    "Arrow, 1,000 events": ("arrow", 1_000, as_arrow),
    "Arrow, 10,000 events": ("arrow", 10_000, as_arrow),
    "Arrow, 10,000 events, zstd": ("arrow", 10_000, lambda events: as_arrow(events, "zstd")),
}
"""By name: the format, the events in a message, and how they are written."""


def messages(
    events: Events, together: int, write: Callable[[Sequence[dict[str, Any]]], bytes]
) -> Iterator[bytes]:
    """Yield the events as messages of one partition."""
    held: list[dict[str, Any]] = []
    for _, record in events.records():
        held.append(json.loads(record))
        if len(held) == together:
            yield write(held)
            held = []
    if held:
        yield write(held)


def fill(broker: KafkaBroker, topic: str, values: Iterator[bytes]) -> int:
    """Write messages to a new topic; return their bytes."""
    broker.create_topic(topic)
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0, "linger.ms": 20})
    size = 0
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=0)
        size += len(value)
        if number % 10_000 == 0:
            producer.flush()
    producer.flush()
    return size


def read(broker: KafkaBroker, topic: str, form: MessageFormat) -> float:
    """Read a topic; return seconds of processor time for a million events."""
    partition = KafkaPartition(KafkaTopic.parse(f"kafka://{broker.address}/{topic}"), 0, 1)
    source = StreamInput(partition, 0, 1, "event", FIELDS, 0, timing=Timing(lateness=0), format=form)
    reader = StreamReader(source, SHARDS)
    for _ in range(_WARM_UP):
        reader.step(wait=5.0)
    began, events = time.process_time(), 0
    while records := reader.step(wait=1.0).records:
        events += records
    spent = time.process_time() - began
    partition.close()
    return spent / events * 1e6


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=1_000_000, help="[%(default)s]")
    parser.add_argument("--turns", type=int, default=3, help="[%(default)s]")
    options = parser.parse_args(words)
    events = Events(options.events // 10_000 * 10_000, 10, 1, 1_000)
    with (
        tempfile.TemporaryDirectory(prefix="rocsteady-messages-") as folder,
        KafkaBroker(Path(folder)) as broker,
    ):
        sizes = {
            name: fill(broker, f"events-{place}", messages(events, together, write))
            for place, (name, (_, together, write)) in enumerate(CONTENDERS.items())
        }
        spent: dict[str, list[float]] = {name: [] for name in CONTENDERS}
        for _ in range(options.turns):
            for place, (name, (form, *_)) in enumerate(CONTENDERS.items()):
                spent[name].append(read(broker, f"events-{place}", form))
    rows = [
        [name, f"{sizes[name] / events.number:.0f}", f"{median(found):.2f}"] for name, found in spent.items()
    ]
    print(table(["a message", "bytes an event", "s per million events"], rows))


if __name__ == "__main__":
    main(sys.argv[1:])
