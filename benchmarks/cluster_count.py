"""The pipeline that only reads and counts: the pace of Flink, of Beam's Python and of the client of Kafka.

    python -m benchmarks.cluster_count EVENTS_URL COUNTS_URL BEAM_OPTION ...

Each partition's count, so far, goes to a topic once a bundle. Its offset is state, as in our reader.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
from apache_beam.coders import VarIntCoder
from apache_beam.io.flink.flink_streaming_impulse_source import FlinkStreamingImpulseSource
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms.userstate import ReadModifyWriteStateSpec
from confluent_kafka import Producer
from rocsteady.transforms.kafka.topic import KafkaTopic
from rocsteady.transforms.sources.streams.kafka_partition import KafkaPartition
from rocsteady.transforms.sources.streams.kafka_range import Moment, offsets_of

_AT_ONCE, _TIMES = 20_000, 5
"""As many as our reader reads at a tick."""


class ReadAndCount(beam.DoFn):
    """(partition, tick) -> its count so far."""

    COUNT = beam.DoFn.StateParam(ReadModifyWriteStateSpec("count", VarIntCoder()))

    def __init__(self, topic: KafkaTopic, partitions: int) -> None:
        self._topic, self._partitions = topic, partitions

    def process(self, element: tuple[int, bytes], count: Any = COUNT) -> Iterator[tuple[int, int]]:
        number, _ = element
        partition = KafkaPartition(self._topic, number, self._partitions)
        before = total = count.read() or 0
        for _ in range(_TIMES):
            fetched = partition.fetch(total, _AT_ONCE, 0.0)
            total += len(fetched.values)
            if fetched.at_end or not fetched.values:
                break
        if total > before:
            count.write(total)
            yield number, total


class Tell(beam.DoFn):
    """Sends the counts of a bundle to a topic."""

    def __init__(self, topic: KafkaTopic) -> None:
        self._topic = topic

    def setup(self) -> None:
        self._producer = Producer(self._topic.settings())

    def process(self, count: tuple[int, int]) -> None:
        self._producer.produce(self._topic.name, json.dumps(count).encode())

    def finish_bundle(self) -> None:
        self._producer.flush()


def main(words: list[str]) -> None:
    events, counts = (KafkaTopic.parse(url) for url in words[:2])
    partitions = len(offsets_of(events, Moment("earliest"), None))
    with beam.Pipeline(options=PipelineOptions([*words[2:], "--streaming"])) as pipeline:
        ticks = pipeline | FlinkStreamingImpulseSource().set_interval_ms(100)
        keyed = ticks | beam.FlatMap(_each, partitions).with_output_types(tuple[int, bytes])
        found = keyed | beam.ParDo(ReadAndCount(events, partitions)).with_output_types(tuple[int, int])
        _ = found | beam.ParDo(Tell(counts))


def _each(_: bytes, partitions: int) -> list[tuple[int, bytes]]:
    return [(number, b"") for number in range(partitions)]


if __name__ == "__main__":
    from benchmarks import cluster_count  # workers import it by this name

    cluster_count.main(sys.argv[1:])
