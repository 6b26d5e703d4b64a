"""A partition of a Kafka topic, read from any offset on: the later messages, in pieces of bounded size.

The caller gives the next offset at every fetch, because only the caller knows which offsets are committed.
A runner may repeat a bundle, in this process or in another. So the client joins no group and commits nothing.

The client reads ahead of the caller, and the messages that it has read must be kept. So a process has one
client for each partition, for all callers. The client seeks only when the caller does not continue at the
client's position. (With a client for every reader that a runner makes, there were 189 clients and 3 GB within
35 s, at 20,000 events a second.)
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ....core.errors import RocsteadyError
from ....core.process.collector import without_collections
from ....core.process.console import RareLog, logger
from ...kafka.client import no_answer, reason_of
from ...kafka.topic import KafkaTopic, confluent_kafka
from ...kafka.topic_watch import watch_of
from .kafka_range import consumer_of
from .offsets import added_numbers, origin_of
from .partition import Fetched, StreamPartition

_logger = logger("rocsteady.kafka.partitions")
_logger.addFilter(RareLog())

_FAST = {
    # The client's own settings make pauses of a second, and stall at 0.4 million messages a second.
    "fetch_queue_backoff_ms": 5,
    "fetch_wait_max_ms": 20,
    "queued_max_messages_kbytes": 16 << 10,
    "topic_metadata_refresh_interval_ms": 30_000,
}
_IDLE_SECONDS = 60.0
"""A client that was not used for so many seconds is closed when another client opens, because its partition
has moved to another process.
"""

_FIRST_LOOK_SECONDS = 0.2
"""The least number of seconds that a fetch waits for the topic's id, if the id is not known, or is not known
from a recent answer.
"""

_ASK = 5.0
_TOO_LARGE = re.compile(r"size (\d+) \(0\.\.(\d+)\): increase receive\.message\.max\.bytes")
_GONE = ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_PARTITION", "_UNKNOWN_TOPIC")


@dataclass(frozen=True)
class KafkaPartition(StreamPartition):
    """Partition `number` of a topic that had `partitions` of them when the job began.

    cluster   the id of the brokers' cluster, "" = not known
    topic_id  the id of the topic that has these offsets, "" = not known
    """

    topic: KafkaTopic
    number: int
    partitions: int
    cluster: str = ""
    topic_id: str = ""

    @property
    def name(self) -> str:
        """The partition's name in dead letters: "topic[3]"."""
        return f"{self.topic.name}[{self.number}]"

    @property
    def origin(self) -> str:
        """The ids of cluster and topic: another topic of the same name has offsets of its own."""
        return origin_of(self.cluster, self.topic_id)

    @property
    def known(self) -> int:
        """The number of partitions that the topic had when the job began."""
        return self.partitions

    @property
    def is_first(self) -> bool:
        """Whether this is partition 0."""
        return self.number == 0

    def as_of(self, known: int) -> KafkaPartition:
        """Return this partition for a job that began when the topic had `known` partitions."""
        return replace(self, partitions=known)

    def added(self) -> Sequence[int]:
        """Return the numbers of added partitions, by the brokers' latest answer, that its reader reads."""
        return added_numbers(self.number, self.partitions, watch_of(self.topic).partitions)

    def sibling(self, number: int) -> KafkaPartition:
        """Return another partition of the topic."""
        return replace(self, number=number)

    def fetch(self, offset: int, limit: int, wait: float, place: str = "") -> Fetched:  # noqa: ARG002
        """Return up to `limit` messages from an offset on; wait up to `wait` seconds for the first.

        Raises RocsteadyError if the topic is gone, was made again, or may not be read any more, or if the
        next message is larger than the client takes. While no broker answers, there are no messages, and the
        log gets one line a minute.
        """
        if not watch_of(self.topic).check(self.topic_id, max(wait, _FIRST_LOOK_SECONDS)):
            return Fetched([], [], offset, False)
        return _client_of(self).fetch(offset, limit, wait)

    def stop(self) -> None:
        """Make the next fetch in this process end the partition at its offset."""
        _client_of(self).stop()

    def check(self) -> None:
        """Raise RocsteadyError if the topic was deleted and made again, by the brokers' latest answer."""
        watch_of(self.topic).check(self.topic_id, _FIRST_LOOK_SECONDS)

    def end(self) -> int:
        """Return the offset after the last message, from the brokers' latest answer; -1 = not known."""
        return _client_of(self).end()

    def close(self) -> None:
        """Close the client of this process, if there is one."""
        with _lock:
            client = _clients.pop(self, None)
        if client is not None:
            client.close()


class _Client:
    """The one consumer of a partition in this process. Thread-safe."""

    def __init__(self, partition: KafkaPartition) -> None:
        self._of = partition
        self._place = confluent_kafka().TopicPartition(partition.topic.name, partition.number)
        self._consumer: Any = consumer_of(partition.topic, self._is_handled, **_FAST)
        self._lock = threading.Lock()
        self._position = -1
        self._seen_end = -1
        self._too_large: tuple[int, int] | None = None
        self._stopped = False
        self.used = time.monotonic()

    def fetch(self, offset: int, limit: int, wait: float) -> Fetched:
        with self._lock:
            if self._stopped:
                return Fetched([], [], offset, True, ended=True)
            if offset != self._position:
                self._seek(offset)
            first = self._consumer.poll(wait)
            self.used = time.monotonic()
            with without_collections():  # 20,000 messages would cause collections: 1 us for each message
                return self._fetched(offset, self._with_next(first, limit))

    def _with_next(self, first: Any, limit: int) -> list[Any]:
        """Return the first record, if there is one, and the records that the client holds behind it."""
        if first is None:
            return []
        is_more = first.error() is None and limit > 1
        return [first, *(self._consumer.consume(limit - 1, 0) if is_more else ())]

    def _seek(self, offset: int) -> None:
        place = confluent_kafka().TopicPartition(self._place.topic, self._place.partition, offset)
        self._consumer.assign([place])
        self._position, self._seen_end, self._too_large = offset, -1, None

    def _is_handled(self, error: Any) -> bool:
        """Return whether an error needs no line in the log.

        Such errors report a message larger than the client takes, whose sizes are kept, or a topic that is
        gone, which the topic's watch says.
        """
        found = _TOO_LARGE.search(error.str())
        if found is not None:
            self._too_large = int(found[1]), int(found[2])
        return found is not None or error.name() in _GONE

    def _fetched(self, offset: int, found: list[Any]) -> Fetched:
        """Return the fetched records: 0.1 us each if all are messages; a loop would take 0.35 us each."""
        kind = confluent_kafka().Message
        if not found or any(map(kind.error, found)):
            return self._sifted(offset, found)
        first, last = found[0].offset(), found[-1].offset()
        is_whole = last - first == len(found) - 1
        self._position, self._too_large = max(last + 1, self._seen_end), None
        return Fetched(
            range(first, last + 1) if is_whole else [*map(kind.offset, found)],
            [*map(kind.value, found)],
            self._position,
            self._position == self._seen_end,
        )

    def _sifted(self, offset: int, found: list[Any]) -> Fetched:
        """Return the fetched messages, and handle the events and errors among the client's records."""
        offsets: list[int] = []
        values: list[bytes | None] = []
        for message in found:
            error = message.error()
            if error is None:
                offsets.append(message.offset())
                values.append(message.value())
            elif error.name() == "_PARTITION_EOF":
                self._seen_end = message.offset()
            elif error.name() == "_AUTO_OFFSET_RESET":
                if not offsets:
                    return self._beyond_deleted(offset)
                self._position = -1  # so that the next fetch finds the error again, as its first record
                return Fetched(offsets, values, offsets[-1] + 1, False)
            elif error.name() in _GONE:
                raise RocsteadyError(
                    f"{self._of.topic.url}: the topic, or partition {self._of.number} of it, is gone"
                )
            elif error.name() in ("TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED"):
                raise RocsteadyError(
                    f"{self._of.topic.url} may not be read any more: {error.str()}; let its user read it"
                )
            else:
                said = no_answer(self._of.topic, error, reason_of(error))
                _logger.warning("%s: %s; it is tried again until one answers", self._of.topic.url, said)
        if offsets:
            self._position, self._too_large = offsets[-1] + 1, None
        elif self._too_large is not None:
            size, limit = self._too_large
            raise RocsteadyError(
                f"{self._of.topic.url}: what is at offset {self._position:,} of partition {self._of.number} "
                f"comes in {size:,} bytes, and the client takes {limit:,} at once; raise --kafka-option "
                f"receive.message.max.bytes={limit}"
            )
        self._position = max(self._position, self._seen_end)  # past transaction markers
        return Fetched(offsets, values, self._position, self._position == self._seen_end)

    def _beyond_deleted(self, offset: int) -> Fetched:
        """Continue from the first offset that exists, after messages were deleted before they were read.

        Raises RocsteadyError if the topic was made again, or has fewer messages than were read.
        """
        watch_of(self._of.topic).check_now(self._of.topic_id)
        try:
            low, high = self._consumer.get_watermark_offsets(self._place, timeout=_ASK)
        except confluent_kafka().KafkaException as error:
            said = no_answer(self._of.topic, error.args[0], reason_of(error.args[0]))
            _logger.warning("%s: %s; it is tried again until one answers", self._of.topic.url, said)
            self._position = -1
            return Fetched([], [], offset, False)
        if offset > high:
            raise RocsteadyError(
                f"{self._of.topic.url}: the job goes on from offset {offset:,} of partition "
                f"{self._of.number}, which ends at {high:,}: the topic was made anew, or its brokers lost "
                "messages; begin a new job without the state of this one, and with another output"
            )
        deleted = max(int(low) - offset, 0)
        self._seek(offset + deleted)
        return Fetched([], [], offset + deleted, False, deleted)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True

    def end(self) -> int:
        with self._lock:
            _, high = self._consumer.get_watermark_offsets(self._place, cached=True)
        return max(int(high), -1)

    def close(self) -> None:
        with self._lock:
            self._consumer.close()


_clients: dict[KafkaPartition, _Client] = {}
_lock = threading.Lock()


def _client_of(partition: KafkaPartition) -> _Client:
    with _lock:
        if partition not in _clients:
            now = time.monotonic()
            for idle in [each for each, other in _clients.items() if now - other.used > _IDLE_SECONDS]:
                _clients.pop(idle).close()
            _clients[partition] = _Client(partition)
        return _clients[partition]
