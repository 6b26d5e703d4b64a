"""Finds a topic's partitions, and the offsets to read of each partition, when a job starts.

The functions ask the brokers. A fault is reported within half a minute, as an InputError.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ....core.errors import ConfigError, InputError
from ....core.process.console import RareLog, logger
from ...kafka.client import check_topic, make_client, no_answer, reason_of
from ...kafka.topic import KafkaTopic, confluent_kafka

_logger = logger("rocsteady.kafka.reading")
_logger.addFilter(RareLog())

_PATIENCE = 15.0
"""How many seconds to wait for a broker that has answered before but does not answer now."""

_ASK = 2.0

OURS = (
    "auto.offset.reset", "enable.auto.commit", "enable.auto.offset.store", "enable.partition.eof",
    "partition.assignment.strategy", "group.instance.id",
)  # fmt: skip
"""Settings that decide which messages are read. rocsteady sets them; users cannot."""

_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class Moment:
    """A start or an end of reading: "earliest", "latest", or a time in milliseconds since 1970."""

    word: str = ""
    millis: int = 0


@dataclass(frozen=True)
class Offsets:
    """The offsets to read of a partition: from `start` to before `end`; `end` None = no end.

    cluster   the id of the brokers' cluster, "" = no id
    topic_id  the id of the topic, "" = no id
    """

    partition: int
    start: int
    end: int | None = None
    cluster: str = ""
    topic_id: str = ""


def consumer_of(topic: KafkaTopic, notice: Callable[[Any], bool] = lambda _: False, **own: Any) -> Any:
    """Return a client that reads a topic; the client's errors are logged, one line a minute.

    notice  a function that sees every error first, and returns whether it has handled the error

    Raises ConfigError for an option that the client refuses.
    """

    def complain(error: Any) -> None:
        if not notice(error) and error.name() != "_ALL_BROKERS_DOWN":
            said = no_answer(topic, error, reason_of(error))
            _logger.warning("%s: %s; it is tried again until one answers", topic.url, said)

    settings = {
        **topic.settings(group_id="rocsteady", **own),
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "error_cb": complain,
        "log_level": 0,
    }
    return make_client(confluent_kafka().Consumer, settings)


def offsets_of(
    topic: KafkaTopic, start: Moment, until: Moment | None, what: str = "SOURCE"
) -> tuple[Offsets, ...]:
    """Return the offsets to read of every partition, in order of the partitions' numbers.

    They are as of the brokers' present state of the topic. Raises InputError if no broker answers or the
    topic does not exist, ConfigError for a wrong option. The error's text begins with `what`, the option that
    names the topic.
    """
    for name, value in topic.options:
        if name in OURS:
            raise ConfigError(
                f"--kafka-option {name}={value}: rocsteady keeps its offsets itself; leave it out"
            )
    there = check_topic(topic, f"{what} {topic.url}")
    if not there.id:
        _logger.warning(
            "%s: its brokers give no ids of topics, as Kafka does since 2.8; a topic that is deleted and "
            "made anew while the job runs, or before it goes on, may be read on from the old offset",
            topic.url,
        )
    numbers = range(there.partitions)
    client = consumer_of(topic)
    try:
        ranges = [_watermarks(topic, client, number) for number in numbers]
        starts = _resolved(topic, client, start, ranges)
        ends = [None] * len(ranges) if until is None else _resolved(topic, client, until, ranges)
    finally:
        client.close()
    return tuple(
        Offsets(number, first, None if end is None else max(first, end), there.cluster, there.id)
        for number, first, end in zip(numbers, starts, ends, strict=True)
    )


def _asked(topic: KafkaTopic, ask: Callable[[], _Answer]) -> _Answer:
    """Repeat a request until it succeeds, for _PATIENCE seconds: a partition's leader may be moving."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return ask()
        except confluent_kafka().KafkaException as error:
            if time.monotonic() > until or error.args[0].name().endswith("_AUTHORIZATION_FAILED"):
                raise InputError(
                    f"{topic.url} cannot be read: {reason_of(error.args[0])}; check the rights of its user, "
                    "and that all brokers can be reached by the addresses that they give"
                ) from None


def _watermarks(topic: KafkaTopic, client: Any, number: int) -> tuple[int, int]:
    """Return a partition's first offset, and the offset after its last message."""
    place = confluent_kafka().TopicPartition(topic.name, number)
    low, high = _asked(topic, lambda: client.get_watermark_offsets(place, timeout=_ASK))
    return int(low), int(high)


def _resolved(topic: KafkaTopic, client: Any, moment: Moment, ranges: Sequence[tuple[int, int]]) -> list[int]:
    """Return the offset of a moment in every partition.

    The offset of the first message at or after the moment.
    """
    if moment.word:
        return [low if moment.word == "earliest" else high for low, high in ranges]
    place = confluent_kafka().TopicPartition
    asked = [place(topic.name, number, moment.millis) for number in range(len(ranges))]
    found = _asked(topic, lambda: client.offsets_for_times(asked, timeout=_ASK))
    offsets = {each.partition: int(each.offset) for each in found}
    return [high if offsets[number] < 0 else offsets[number] for number, (_, high) in enumerate(ranges)]
