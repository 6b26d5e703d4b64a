"""Events of a million models: made from their numbers, written to a topic, drawn again for a few models.

Every event is a function of its number alone. So a topic that was filled in part is filled on, and the events
of some models are found without a reader of the topic.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from rocsteady.runners.servers.processes import polls

from .cluster_events import END

BLOCK = 500_000
"""Events that are made at once; 60 MB while they are text."""

_START = 1_767_225_600_000_000  # 2026-01-01
_SPAN = 2 * 86_400_000_000
_POSITIVE = 0.3
_NOISE = 1.5
_PATIENCE = 120
"""Seconds that a broker may take for an event."""

_QUEUE = 200_000
_AT_ONCE = 10_000

_U64 = npt.NDArray[np.uint64]
_I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Crowd:
    """Events of many models over two days, each at a microsecond of its own.

    number      of all events; a multiple of the partitions
    models      how many; they are uneven: a model in place x, from 0 to 1, has on average the mean of all
                models divided by 2 sqrt(x). So the last model has half the mean, and a hundredth of the
                models have five times the mean or more
    partitions  of the topic; event i is in partition i mod `partitions`
    seed        of all that is drawn
    """

    number: int
    models: int
    partitions: int = 4
    seed: int = 24

    def __post_init__(self) -> None:
        if self.number % self.partitions:
            raise ValueError(f"{self.number} events are no multiple of {self.partitions} partitions")
        if self.number > _SPAN:
            raise ValueError(f"{self.number} events do not fit into two days: at most {_SPAN} do")

    def models_of(self, numbers: _I64) -> _I64:
        """Return the model of each event, 0 to `models` - 1, by the numbers of the events."""
        share = self._uniform(numbers, 0)
        return np.minimum(share * share * self.models, self.models - 1).astype(np.int64)

    def columns(self, numbers: _I64) -> tuple[_I64, npt.NDArray[np.float64], _I64, _I64]:
        """Return models, scores, labels and times (microseconds) of the events of these numbers."""
        labels = (self._uniform(numbers, 1) < _POSITIVE).astype(np.int64)
        radius = np.sqrt(-2.0 * np.log(1.0 - self._uniform(numbers, 2)))
        scores = labels + _NOISE * radius * np.cos(2.0 * np.pi * self._uniform(numbers, 3))
        return self.models_of(numbers), scores, labels, _START + numbers * (_SPAN // self.number)

    def messages(self, numbers: _I64) -> list[bytes]:
        """Return the events of these numbers as JSON."""
        rows = zip(*(column.tolist() for column in self.columns(numbers)), strict=True)
        return [b'{"model":"m%07d","score":%.6f,"label":%d,"time":%d}' % row for row in rows]

    def end(self, partition: int) -> bytes:
        """Return the last message of a partition. The time of the message settles all events before it."""
        time_of_end = _START + 2 * _SPAN
        return b'{"model":"%s","score":0.5,"label":%d,"time":%d}' % (END.encode(), partition % 2, time_of_end)

    def blocks(self) -> Iterator[_I64]:
        """Yield the numbers of all events, some at a time."""
        for first in range(0, self.number, BLOCK):
            yield np.arange(first, min(first + BLOCK, self.number))

    def counts(self) -> _I64:
        """Return how many events each model has; O(number)."""
        found = np.zeros(self.models, np.int64)
        for numbers in self.blocks():
            found += np.bincount(self.models_of(numbers), minlength=self.models)
        return found

    def held(self, window: int) -> float:
        """Return how many events a window of so many holds in the end, on average over the models."""
        half = self.number / self.models / 2
        full = min((half / window) ** 2, 1.0)
        return window * full + 2 * half * (1 - full**0.5)

    def write_events_of(self, models: Collection[int], every: int, path: Path) -> None:
        """Write the events of some models to a file of JSON lines, in order of time; O(number).

        Of each model the last events that fill no `every` are left out: a stream without an end has no last
        rows, and a file has.
        """
        drawn = np.zeros(self.models, np.bool_)
        drawn[[*models]] = True
        of_drawn = [numbers[drawn[self.models_of(numbers)]] for numbers in self.blocks()]
        numbers = np.concatenate(of_drawn)
        found = self.models_of(numbers)
        order = np.argsort(found, kind="stable")
        _, first, count = np.unique(found[order], return_index=True, return_counts=True)
        place = np.empty(len(numbers), np.int64)
        place[order] = np.arange(len(numbers)) - np.repeat(first, count)
        whole = np.zeros(self.models, np.int64)
        whole[found[order][first]] = count // every * every
        with path.open("wb") as lines:
            lines.writelines(record + b"\n" for record in self.messages(numbers[place < whole[found]]))

    def _uniform(self, numbers: _I64, stream: int) -> npt.NDArray[np.float64]:
        """Return a number in [0, 1) for each event: SplitMix64 of the seed, the stream and the number."""
        mixed: _U64 = numbers.astype(np.uint64) + np.uint64((self.seed * 16 + stream) << 48)
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
        return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def written_to(broker: str, topic: str, partitions: int) -> list[int]:
    """Return how many messages each partition of a topic has. Raises RuntimeError where the broker is mute.

    A topic that was just made has no leader for a moment, so the broker is asked again.
    """
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "ends", "log_level": 0})
    places = [TopicPartition(topic, number) for number in range(partitions)]
    try:
        for _ in polls(30):
            with contextlib.suppress(KafkaException):
                return [consumer.get_watermark_offsets(place, timeout=5)[1] for place in places]
    finally:
        consumer.close()
    raise RuntimeError(f"the broker at {broker} does not say where {topic} ends: does it run?")


class Filling:
    """Fills a topic with a crowd's events, and an end in each partition, from where it was left.

    The producer is idempotent, so a partition holds the first events that belong to it, in order and each
    once, whenever the filling was interrupted.
    """

    def __init__(self, broker: str, topic: str, crowd: Crowd) -> None:
        self._crowd, self._topic = crowd, topic
        self._errors: list[Any] = []
        self._written = written_to(broker, topic, crowd.partitions)
        self._producer = Producer({
            "bootstrap.servers": broker, "enable.idempotence": True, "compression.type": "lz4",
            "delivery.timeout.ms": _PATIENCE * 1_000, "linger.ms": 20, "batch.size": 1 << 18,
            "queue.buffering.max.messages": 2 * _QUEUE, "log_level": 0,
        })  # fmt: skip

    def left(self) -> int:
        """Return how many events are to be written."""
        return self._crowd.number + self._crowd.partitions - sum(self._written)

    def run(self) -> None:
        """Write what is left. Raises RuntimeError where the broker does not take an event in time."""
        crowd = self._crowd
        least = min(self._written) * crowd.partitions
        for numbers in crowd.blocks():
            if numbers[-1] < least:
                continue
            for partition in range(crowd.partitions):
                own = numbers[numbers % crowd.partitions == partition]
                lacking = own[own // crowd.partitions >= self._written[partition]]
                self._send(partition, crowd.messages(lacking))
        for partition, written in enumerate(self._written):
            if written <= crowd.number // crowd.partitions:
                self._send(partition, [crowd.end(partition)])
        left = self._producer.flush(_PATIENCE)
        self._raise_errors()
        if left:
            raise RuntimeError(f"{left:,} events were not written within {_PATIENCE} s: does the broker run?")

    def _send(self, partition: int, messages: list[bytes]) -> None:
        for first in range(0, len(messages), _AT_ONCE):
            until = time.monotonic() + _PATIENCE
            while len(self._producer) > _QUEUE:
                self._producer.poll(0.05)
                self._raise_errors()
                if time.monotonic() > until:
                    raise RuntimeError(f"no event was written within {_PATIENCE} s: does the broker run?")
            for message in messages[first : first + _AT_ONCE]:
                self._producer.produce(self._topic, message, partition=partition, on_delivery=self._heard)

    def _heard(self, error: Any, _: Any) -> None:
        if error is not None:
            self._errors.append(error)

    def _raise_errors(self) -> None:
        if self._errors:
            raise RuntimeError(f"events were not written: {self._errors[0]}")
