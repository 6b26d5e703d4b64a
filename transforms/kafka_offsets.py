"""Where a topic begins and ends when a job starts: its partitions, and the offsets to read of each.

Everything here asks the brokers, and is found wrong within half a minute: an InputError in a sentence.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..core.errors import ConfigError, InputError
from .kafka_topic import KafkaTopic, confluent_kafka
from .kafka_trouble import Trouble

_PATIENCE = 15.0
"""Seconds until a broker that does not answer is given up."""

_ASK = 2.0
"""Seconds of one attempt; behind it the client's complaints are looked at."""

OURS = (
    "auto.offset.reset", "enable.auto.commit", "enable.auto.offset.store", "enable.partition.eof",
    "partition.assignment.strategy", "group.instance.id",
)  # fmt: skip
"""Settings that decide what is read: they are ours."""


@dataclass(frozen=True)
class Moment:
    """Where to begin or to end: "earliest", "latest", or a time, milliseconds since 1970."""

    word: str = ""
    millis: int = 0


@dataclass(frozen=True)
class Offsets:
    """What is read of a partition: from `start` on, up to `end` and without it; None: for ever."""

    partition: int
    start: int
    end: int | None = None


def consumer_of(topic: KafkaTopic, trouble: Trouble, **own: Any) -> Any:
    """Return a client that reads a topic. Raises ConfigError for an option that it refuses."""
    kafka = confluent_kafka()
    for name, value in topic.options:
        if name in OURS:
            raise ConfigError(
                f"--kafka-option {name}={value}: rocsteady keeps its offsets itself; leave it out"
            )
    settings = topic.settings(group_id="rocsteady", **own)
    settings |= {
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "error_cb": trouble,
        "log_level": 0,
    }
    try:
        return kafka.Consumer(settings)
    except kafka.KafkaException as error:
        raise ConfigError(f"{topic.url}: --kafka-option: {_words(error)}") from None


def offsets_of(topic: KafkaTopic, start: Moment, until: Moment | None) -> tuple[Offsets, ...]:
    """Return what to read of every partition, in their order, as the topic is now.

    Raises InputError where no broker answers or the topic does not exist, ConfigError for a wrong option.
    """
    with asking(topic) as (client, trouble):
        partitions = _asked(topic, trouble, client, lambda: partitions_of(topic, client, _ASK))
        numbers = range(len(partitions))
        ranges = [_watermarks(topic, trouble, client, number) for number in numbers]
        starts = _resolved(topic, trouble, client, start, ranges)
        ends = [None] * len(ranges) if until is None else _resolved(topic, trouble, client, until, ranges)
    return tuple(
        Offsets(number, first, None if end is None else max(first, end))
        for number, first, end in zip(numbers, starts, ends, strict=True)
    )


def partitions_of(topic: KafkaTopic, client: Any, wait: float) -> Sequence[int]:
    """Return the numbers of a topic's partitions. Raises InputError where there is no such topic."""
    found = client.list_topics(topic.name, timeout=wait).topics[topic.name]
    if found.error is not None:
        if found.error.name() in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"):
            raise InputError(f"{topic.url}: there is no topic {topic.name!r}; create it, or check the name")
        raise InputError(f"{topic.url}: the topic cannot be read: {found.error.str()}")
    return sorted(found.partitions)


@contextmanager
def asking(topic: KafkaTopic) -> Iterator[tuple[Any, Trouble]]:
    """Yield a client for questions, and its complaints."""
    trouble = Trouble(topic)
    client = consumer_of(topic, trouble)
    try:
        yield client, trouble
    finally:
        client.close()


def _asked(topic: KafkaTopic, trouble: Trouble, client: Any, ask: Any) -> Any:
    """Ask until there is an answer, it is certain that there will be none, or patience ends."""
    kafka = confluent_kafka()
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return ask()
        except kafka.KafkaException as error:
            if error.args[0].name() not in ("_TRANSPORT", "_TIMED_OUT", "LEADER_NOT_AVAILABLE"):
                raise InputError(f"{topic.url}: {_words(error)}") from None
        client.poll(0.1)  # serves the complaints
        if trouble.is_certain or time.monotonic() > until:
            raise InputError(trouble.sentence())


def _watermarks(topic: KafkaTopic, trouble: Trouble, client: Any, number: int) -> tuple[int, int]:
    """Return the first offset that there is, and the one behind the last."""
    place = confluent_kafka().TopicPartition(topic.name, number)

    def ask() -> tuple[int, int]:
        low, high = client.get_watermark_offsets(place, timeout=_ASK)
        return int(low), int(high)

    found: tuple[int, int] = _asked(topic, trouble, client, ask)
    return found


def _resolved(
    topic: KafkaTopic, trouble: Trouble, client: Any, moment: Moment, ranges: Sequence[tuple[int, int]]
) -> list[int]:
    """Return the offset of a moment in every partition: of the first message that is not before it."""
    if moment.word:
        return [low if moment.word == "earliest" else high for low, high in ranges]
    place = confluent_kafka().TopicPartition
    asked = [place(topic.name, number, moment.millis) for number in range(len(ranges))]
    found = _asked(topic, trouble, client, lambda: client.offsets_for_times(asked, timeout=_ASK))
    offsets = {each.partition: int(each.offset) for each in found}
    return [high if offsets[number] < 0 else offsets[number] for number, (_, high) in enumerate(ranges)]


def _words(error: Any) -> str:
    return str(error.args[0].str())
