"""A watch over a topic while a job reads it.

It asks the brokers for the topic's id and its number of partitions.

Kafka gives each topic an id that no other topic ever has (KIP-516, since Kafka 2.8). If a topic is deleted
and made again, it has the old name, and its offsets begin again, but its id is another. A client that only
knows the name would continue from the old offset.

A process has one watch for each topic, for all partitions. The requests never block for long: the answer to a
request is taken when it has come.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import TimeoutError as NotYet
from typing import Any, NamedTuple

from ...core.errors import RocsteadyError
from ...core.process.console import RareLog, logger
from .client import make_client, no_answer, reason_of, topic_id_of
from .topic import KafkaTopic, confluent_kafka

LOOK_SECONDS = 10.0
"""Seconds between two requests."""

_AGAIN_SECONDS = 1.0
"""Seconds until the next request, if no broker answered."""

_STALE_SECONDS = 30.0
"""After so many seconds without an answer, nothing is read until an answer comes: the topic may have been
replaced.
"""

_GONE_SECONDS = 20.0
"""Seconds during which all answers say that there is no topic, after which the topic counts as deleted.

A broker that has just started may say so before it knows its topics.
"""

_ASK = 5.0
_GONE = "UNKNOWN_TOPIC_OR_PART"
_UNANSWERED = frozenset(
    ("_TIMED_OUT", "_TIMED_OUT_QUEUE", "_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_SSL",
     "_AUTHENTICATION", "_DESTROY", "REQUEST_TIMED_OUT")
)  # fmt: skip
"""Errors of a request that no broker answered."""

OF_A_JOB = (
    f"The job ends here. Up to {LOOK_SECONDS:g} seconds of events may be those of the new topic; begin a new "
    "job without the state of this one, and with another output"
)
OF_A_TABLE = "Start again, to read the new topic from its beginning"
"""Remedies if a topic was made again."""

_logger = logger("rocsteady.kafka.topics")
_logger.addFilter(RareLog())


class TopicNow(NamedTuple):
    """The brokers' answer on a topic: its id, "" if not known; its number of partitions, 0 if not known."""

    id: str
    partitions: int


def is_another(was: str, now: str) -> bool:
    """Return whether two ids are the ids of two different topics; "" stands for an id that is not known.

    >>> is_another("a", "b"), is_another("a", "a"), is_another("", "b"), is_another("a", "")
    (True, False, False, False)
    """
    return bool(was and now) and was != now


class TopicWatch:
    """The watch over one topic. Thread-safe."""

    def __init__(self, topic: KafkaTopic) -> None:
        from confluent_kafka.admin import AdminClient

        self._topic = topic
        settings = {**topic.settings(), "error_cb": self._complain, "log_level": 0}
        self._client: Any = make_client(AdminClient, settings)
        self._lock = threading.Lock()
        self._asked: Any = None
        self._sent = 0.0
        self._due = 0.0
        self._answered: float | None = None
        """When the request of the latest answer was sent: the answer may wait here for long."""
        self._gone_since: float | None = None
        self._now = TopicNow("", 0)

    def _complain(self, error: Any) -> None:
        if error.name() != "_ALL_BROKERS_DOWN":
            said = no_answer(self._topic, error, reason_of(error))
            _logger.warning("%s: %s; it is tried again until one answers", self._topic.url, said)

    @property
    def partitions(self) -> int:
        """The number of partitions, from the latest answer; 0 = not known."""
        return self._now.partitions

    def check_now(self, id_: str) -> None:
        """Compare the topic's id with `id_`, from a new answer if one comes soon; see `check`."""
        with self._lock:
            self._ask_anew()
        self.check(id_, 0.0)

    def check(self, id_: str, wait: float, remedy: str = OF_A_JOB) -> bool:
        """Compare the topic's id with `id_`, if the id is known; return whether the latest answer is recent.

        remedy  the end of the error's text

        Waits up to `wait` seconds if no recent answer is known. Raises RocsteadyError if the topic was made
        again, or was deleted.
        """
        with self._lock:
            self._look(0.0)
            if not self._is_recent():
                self._look(wait)
            if is_another(id_, self._now.id):  # the answer may be older than the job
                self._ask_anew()
            if self._gone_since and (self._answered or 0.0) - self._gone_since >= _GONE_SECONDS:
                raise RocsteadyError(
                    f"{self._topic.url}: the topic was deleted while it was read: its brokers have none of "
                    "this name. Create the topic, and begin anew, without the state and the output of this "
                    "reading"
                )
            if self._is_recent() and is_another(id_, self._now.id):
                raise RocsteadyError(
                    f"{self._topic.url}: the topic was deleted and made anew while it was read: its id was "
                    f"{id_} and is {self._now.id}. {remedy}"
                )
            return self._is_recent()

    def _is_recent(self) -> bool:
        return self._answered is not None and time.monotonic() - self._answered < _STALE_SECONDS

    def _ask_anew(self) -> None:
        self._asked, self._due, self._answered = None, 0.0, None
        self._look(_ASK)

    def _look(self, wait: float) -> None:
        """Send a request if one is due, and take its answer if it comes within `wait` seconds."""
        now = time.monotonic()
        if self._asked is None:
            if now < self._due and self._is_recent():
                return
            if now < self._due and not wait:
                return
            topics = confluent_kafka().TopicCollection([self._topic.name])
            found = self._client.describe_topics(topics, request_timeout=_ASK)
            self._asked, self._sent, self._due = found[self._topic.name], now, now + LOOK_SECONDS
        try:
            answer = self._asked.result(wait)
        except NotYet:
            return
        except confluent_kafka().KafkaException as error:
            self._asked = None
            self._due = time.monotonic() + _AGAIN_SECONDS
            name = error.args[0].name()
            self._gone_since = (self._gone_since or self._sent) if name == _GONE else None
            if name == _GONE:
                self._now = TopicNow("", 0)
            if name not in _UNANSWERED:  # the topic is gone, or may not be described
                self._answered = self._sent
            return
        self._asked, self._answered, self._gone_since = None, self._sent, None
        self._now = TopicNow(topic_id_of(answer) or self._now.id, len(answer.partitions))


_watches: dict[KafkaTopic, TopicWatch] = {}
_lock = threading.Lock()


def watch_of(topic: KafkaTopic) -> TopicWatch:
    """Return this process's watch over a topic; the first call makes it."""
    with _lock:
        if topic not in _watches:
            _watches[topic] = TopicWatch(topic)
        return _watches[topic]
