"""Rows, alerts, dead letters and curves as messages of a Kafka topic.

A message is one record. The message's key is the model; a dead letter without a model has no key. The value
is the JSON object that a line of a .jsonl file has. The headers are the record's kind and identity, as text.
All messages of a model are in one partition, in the order in which they were written. If a runner repeats a
bundle, the bundle's messages are repeated; a reader recognises them by their identity (`table_rows`).

Invariant
    `finish` returns only when the brokers have every message that was sent before (acks=all), and raises
    when one could not be delivered. The producer is idempotent: its own retries neither repeat a message
    nor change the order. One producer serves all writers of a process to the same brokers.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.pvalue import PCollection

from ...core.errors import InputError, RocsteadyError
from ...core.rows.columns import measure_of
from ..beam.metrics import count
from ..events.text import by_type, json_objects, rfc3339
from ..kafka.client import client_settings, make_client, reason_of
from ..kafka.topic import KafkaTopic, confluent_kafka
from .kinds import KINDS, TableKind, TableSink

Headers = list[tuple[str, bytes]]

DELIVERY_SECONDS = 120
"""Seconds for the delivery of a message. In this time, an unreachable broker may come back."""

_GRACE_SECONDS = 5
"""Seconds to wait beyond the delivery time, because librdkafka looks for expired messages only from time to
time.
"""

_SETTINGS = {
    "acks": "all",
    "enable_idempotence": True,
    "delivery_timeout_ms": DELIVERY_SECONDS * 1_000,
    "queue_buffering_max_kbytes": 64 << 10,
    "compression_type": "lz4",
    "partitioner": "murmur2_random",  # the default of producers in Java
}
"""Settings of the producer. Options may override all but the first two."""

_KEYS = ("model", "group", "learner_a")
"""The columns that may be the key of a message: the first column that a record has is the key."""

_FIXED = ("acks", "enable.idempotence")
_POLL_SECONDS = 0.2

_producers: dict[tuple[int, str, tuple[tuple[str, str], ...]], Any] = {}
_producers_lock = threading.Lock()


def messages(batch: pa.RecordBatch, kind: TableKind) -> Iterator[tuple[bytes | None, bytes, Headers]]:
    """Yield key, value and headers of every record. O(cells) in columns, and some Python for each record."""
    values = _as_bytes(json_objects(batch, "number"))
    identity = [
        zip(repeat("pane" if column == "pane_start" else column), _header(batch, column))
        for column in kind.identity
    ]
    headers = map(list, zip(repeat(("kind", kind.name.encode()), len(values)), *identity, strict=True))
    key = next(name for name in _KEYS if name in batch.schema.names)
    yield from zip(_as_bytes(batch.column(key)), values, headers, strict=True)


def _header(batch: pa.RecordBatch, column: str) -> list[bytes]:
    """Return a column of the identity as text; a missing pane and an unknown value are the empty text."""
    if column != "pane_start":
        return _as_bytes(batch.column(column).cast(pa.string()).fill_null(""))
    ends = [batch.column("pane_start"), batch.column("pane_end")]
    return _as_bytes(pc.binary_join_element_wise(*by_type(ends, rfc3339), "/").fill_null(""))


def _as_bytes(texts: pa.Array) -> list[Any]:
    """Return texts in UTF-8; None for null."""
    encoded: list[Any] = texts.cast(pa.binary()).to_pylist()
    return encoded


def checked_topic(topic: KafkaTopic) -> KafkaTopic:
    """Return a topic that may be written to. Raises InputError for an option that would break the sink."""
    for name, value in topic.options:
        if name in _FIXED or (name == "request.required.acks"):
            raise InputError(
                f"--kafka-option {name}={value}: rows are written with acks=all and enable.idempotence=true, "
                "so that none is lost; leave it out"
            )
    return topic


def _producer(topic: KafkaTopic) -> Any:
    """Return this process's producer for a topic's brokers and options; the first call makes it."""
    place = (os.getpid(), topic.brokers, topic.options)
    with _producers_lock:
        if place not in _producers:
            settings = client_settings(topic, **_SETTINGS)
            _producers[place] = make_client(confluent_kafka().Producer, settings)
        return _producers[place]


def _forget(producer: Any) -> None:
    """Remove a producer that can never send again, so that the next writer gets a new producer."""
    with _producers_lock:
        for place in [place for place, each in _producers.items() if each is producer]:
            del _producers[place]


class KafkaWriter(TableSink):
    """Sends record batches of a kind to a topic; each writer belongs to one thread.

    Raises RocsteadyError, once, for undelivered messages, with their number and the first message's reason.
    """

    def __init__(self, topic: KafkaTopic, kind: TableKind) -> None:
        self._topic = topic
        self._kind = kind
        self._producer = _producer(topic)
        self._sent = self._delivered = self._failed = 0
        self._first: tuple[Any, Headers] | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Hand the records to the producer, which sends them soon; waits while its queue is full."""
        for key, value, headers in messages(batch, self._kind):
            self._send(key, value, headers)
        self.tend()

    def tend(self) -> None:
        """Handle delivery reports of messages, without waiting."""
        self._producer.poll(0)
        self._raise_failures()

    def settle(self) -> None:
        """Wait until every message so far is delivered or has failed."""
        self.finish()

    def finish(self) -> None:
        """Wait until every message is delivered or has failed."""
        given = dict(self._topic.options)
        limit = given.get("delivery.timeout.ms") or given.get("message.timeout.ms")
        patience = (float(limit) / 1_000 if limit else DELIVERY_SECONDS) + _GRACE_SECONDS
        end = time.monotonic() + patience
        while self._delivered + self._failed < self._sent and time.monotonic() < end:
            self._producer.poll(_POLL_SECONDS)
        self._raise_failures()
        if waiting := self._sent - self._delivered:
            raise RocsteadyError(
                f"{self._topic.url}: {waiting:,} messages were not delivered within {patience:.0f} s, and "
                "nothing says why; see whether its brokers answer"
            )

    def _send(self, key: bytes | None, value: bytes, headers: Headers) -> None:
        heard = partial(self._heard, headers)
        while True:
            try:
                self._producer.produce(self._topic.name, value, key, headers=headers, on_delivery=heard)
            except BufferError:  # the queue is full
                self._producer.poll(_POLL_SECONDS)
                self._raise_failures()
                continue
            except confluent_kafka().KafkaException as error:
                heard(error.args[0], None)
            self._sent += 1
            return

    def _heard(self, headers: Headers, error: Any, _: Any) -> None:
        """Count a message that was delivered or has failed.

        `headers` is an argument, because a failed message has no headers.
        """
        if error is None:
            self._delivered += 1
            return
        self._failed += 1
        if self._first is None:
            self._first = error, headers
        if error.fatal():
            _forget(self._producer)

    def _raise_failures(self) -> None:
        if self._first is None:
            return
        (error, headers), failed = self._first, self._failed
        self._first, self._failed, self._sent = None, 0, self._sent - failed
        others = f", and {failed - 1:,} more" if failed > 1 else ""
        why = f"{reason_of(error)}); {_remedy(error)}"
        raise RocsteadyError(f"{self._topic.url}: {_named(headers)} was not delivered{others} ({why}")


def _named(headers: Sequence[tuple[str, bytes]]) -> str:
    """Return a text that names a message's record: its kind and its identity."""
    (_, kind), *identity = headers
    words = ", ".join(f"{name} {value.decode()!r}" for name, value in identity if value)
    return f"the {kind.decode().replace('-', ' ')} of {words or 'an unknown place'}"


def _remedy(error: Any) -> str:
    name = error.name()
    if name in ("MSG_SIZE_TOO_LARGE", "INVALID_MSG_SIZE", "RECORD_LIST_TOO_LARGE"):
        return "raise max.message.bytes of the topic, and --kafka-option message.max.bytes=N"
    if name in ("_UNKNOWN_TOPIC", "UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_PARTITION"):
        return "create the topic again"
    if "AUTHORIZATION" in name:
        return "let its user write to the topic"
    if name in ("_MSG_TIMED_OUT", "_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN"):
        return (
            "see whether its brokers answer; a message may take --kafka-option delivery.timeout.ms="
            f"{DELIVERY_SECONDS * 1_000}"
        )
    return "see the brokers' log"


class WriteKafka(beam.PTransform[PCollection[pa.RecordBatch], PCollection[str]]):
    """Writes record batches of rows, or of other records of rocsteady, to a topic.

    The columns decide the kind.

    url      kafka://host:port[,host:port]/topic
    options  options of librdkafka, each "key=value" or "@FILE"

    Every bundle waits until its messages are delivered, so that a committed bundle has lost no message. The
    output is empty. Raises ConfigError, InputError or MissingPackageError for invalid arguments. A message
    that cannot be delivered fails its bundle.

        result.batches | rs.WriteKafka("kafka://localhost:9092/rows")
    """

    def __init__(self, url: str, options: Sequence[str] = ()) -> None:
        super().__init__()
        self._topic = checked_topic(KafkaTopic.parse(url, options))
        confluent_kafka()

    def expand(self, batches: PCollection[pa.RecordBatch]) -> PCollection[str]:
        """Apply to record batches of any kind."""
        nothing: PCollection[str] = batches | "Send" >> beam.ParDo(_Send(self._topic)).with_output_types(str)
        return nothing


def kind_of(schema: pa.Schema) -> TableKind | None:
    """Return the kind whose columns are those of a schema; None for other columns.

    Rows may have columns of measures with values beside those of the kind.

    >>> kind_of(KINDS[0].schema).name
    'row'
    """
    from .comparisons import COMPARISONS, MEANS

    kinds = (*KINDS, COMPARISONS, MEANS)
    names = [name for name in schema.names if not measure_of(name)]
    return next((kind for kind in kinds if kind.schema.names == names), None)


class _Send(beam.DoFn):
    def __init__(self, topic: KafkaTopic) -> None:
        self._topic = topic

    def start_bundle(self) -> None:
        """Begin without writers, because an earlier bundle has settled its own messages."""
        self._writers: dict[str, KafkaWriter] = {}

    def process(self, batch: pa.RecordBatch) -> None:
        """Send the records of a batch."""
        kind = kind_of(batch.schema)
        if kind is None:
            shown = ", ".join(batch.schema.names[:8])
            raise InputError(
                f"{self._topic.url}: a record batch with the columns {shown} is none of rows, alerts, dead "
                "letters, curves, roll-ups or pairs; give .batches or .curves of EvaluateModels"
            )
        if kind.name not in self._writers:
            self._writers[kind.name] = KafkaWriter(self._topic, kind)
        self._writers[kind.name].write(batch)
        if kind.counter is not None:
            count(kind.counter, kind.number(batch))

    def finish_bundle(self) -> None:
        """Wait until every message of the bundle is delivered."""
        for writer in self._writers.values():
            writer.finish()
