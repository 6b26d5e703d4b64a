"""The rows of a topic that `WriteKafka` wrote, in the order of each partition."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ...core.errors import InputError, RocsteadyError
from ...core.rows.arrow import ROW_SCHEMA
from ..kafka.client import check_topic, client_settings, make_client, reason_of
from ..kafka.topic import KafkaTopic, confluent_kafka
from ..sinks.kinds import ROWS
from .read import parse_lines

_AT_ONCE = 5_000
_WAIT_SECONDS = 0.5
_PATIENCE_SECONDS = 60.0
"""Seconds after which the read fails, if messages are expected and none comes."""

_FINAL = ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "_AUTHENTICATION")
"""Errors that waiting does not resolve."""

_NULLABLE = pa.schema([field.with_nullable(True) for field in ROW_SCHEMA])
_SETTINGS = {
    "group_id": "rocsteady-read-rows",  # the group is never joined or committed to
    "enable_auto_commit": False,
    "enable_partition_eof": True,
    "auto_offset_reset": "earliest",
    "fetch_queue_backoff_ms": 20,
}


def read_kafka_rows(topic: KafkaTopic, follow: bool) -> Iterator[tuple[pa.Table, list[str]]]:
    """Yield (table of rows, each row's place), up to the topic's present end, or for ever with `follow`.

    Messages of another kind (alerts, dead letters) and messages without a value are left out. Raises
    InputError for a message that is not a row, RocsteadyError if the brokers stop answering.
    """
    partitions = check_topic(topic, topic.url).partitions
    kafka = confluent_kafka()
    consumer = make_client(kafka.Consumer, client_settings(topic, **_SETTINGS))
    try:
        starts = [kafka.TopicPartition(topic.name, n, kafka.OFFSET_BEGINNING) for n in range(partitions)]
        ends = {} if follow else _ends(consumer, starts, topic)
        consumer.assign(starts)
        heard = time.monotonic()
        while follow or ends:
            found = consumer.consume(_AT_ONCE, _WAIT_SECONDS)
            if found:
                heard = time.monotonic()
            elif not follow and time.monotonic() - heard > _PATIENCE_SECONDS:
                raise RocsteadyError(
                    f"{topic.url}: no message came for {_PATIENCE_SECONDS:.0f} s, and the end was not "
                    "reached; see whether its brokers answer"
                )
            rows = [message for message in found if _is_row(message, ends, topic, follow)]
            if rows:
                yield _table(rows, topic), [f"partition {m.partition()} offset {m.offset()}" for m in rows]
    finally:
        consumer.close()


def _ends(consumer: Any, starts: list[Any], topic: KafkaTopic) -> dict[int, int]:
    """Return each partition's offset after its last message; empty partitions are left out."""
    ends = {}
    until = time.monotonic() + _PATIENCE_SECONDS / 2
    waiting = list(starts)
    while waiting:
        try:
            low, high = consumer.get_watermark_offsets(waiting[-1], timeout=_PATIENCE_SECONDS / 2)
        except confluent_kafka().KafkaException as failure:
            if time.monotonic() > until:
                said = reason_of(failure.args[0])
                raise InputError(f"{topic.url}: {said}; see whether its brokers answer") from None
            time.sleep(_WAIT_SECONDS)  # a new or moving partition has no leader for a moment
            continue
        partition = waiting.pop().partition
        if high > low:
            ends[partition] = high
    return ends


def _is_row(message: Any, ends: dict[int, int], topic: KafkaTopic, follow: bool) -> bool:
    """Tell whether a message is a wanted row; remove a partition from `ends` when its end is reached."""
    error, partition, offset = message.error(), message.partition(), message.offset()
    if error is not None:
        if error.code() == confluent_kafka().KafkaError._PARTITION_EOF:
            ends.pop(partition, None)  # also if the last offsets have no messages
            return False
        if error.fatal() or error.name() in _FINAL or "AUTHORIZATION" in error.name():
            raise RocsteadyError(f"{topic.url}: {reason_of(error)}; see whether it is still there, for us")
        return False  # the client tries again, and logs it
    asked = follow or partition in ends
    if not follow and offset + 1 >= ends.get(partition, 0):
        asked = asked and offset < ends.pop(partition, 0)
    kinds = [value for name, value in message.headers() or () if name == "kind"]
    return asked and message.value() is not None and kinds in ([], [ROWS.name.encode()])


def _table(messages: list[Any], topic: KafkaTopic) -> pa.Table:
    table = _parsed([message.value() for message in messages])
    if table is not None:
        return table
    bad = next(message for message in messages if _parsed([message.value()]) is None)
    raise InputError(
        f"{topic.url}: partition {bad.partition()} offset {bad.offset()} is no row of rocsteady "
        f"({bad.value()[:60]!r}); read a topic that evaluate --output wrote"
    )


def _parsed(values: list[bytes]) -> pa.Table | None:
    """Return messages as a table of rows; None if any message is no row."""
    try:
        table = parse_lines(b"\n".join(values), _NULLABLE)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    whole = table.num_rows == len(values) and not any(
        table.column(name).null_count for name in ("model", "slice", "row")
    )
    return table if whole else None
