"""Clients of Kafka: they check before a job that a topic is available, and turn errors into sentences.

librdkafka reports the same problem many times a second while it retries. Its lines go to the logger
"rocsteady.kafka", each kind of line once a minute.
"""

from __future__ import annotations

import logging
import re
import time
from typing import Any, NamedTuple

from ...core.errors import ConfigError, InputError
from ...core.process.console import RareLog, logger
from ...core.process.near_names import near_names
from .topic import KafkaTopic, confluent_kafka, without_values

CHECK_SECONDS = 10.0
"""Seconds to wait for an answer from the brokers, before a job starts."""

_POLL_SECONDS = 0.1
_ID_SECONDS = 5.0
_REFUSALS = ("_AUTHENTICATION", "_SSL", "_RESOLVE", "_UNKNOWN_PROTOCOL")
"""Errors that do not end if the client waits. Other errors may come from a broker that is still starting."""

_PLACE = re.compile(
    r"^(\[thrd:[^\]]*\]: )?(\w+://)?[^ ]*?:\d+/(bootstrap|\d+): | \(after \d+ms in state \w+.*?\)"
)
_NUMBERS = re.compile(r"\d+")

_logger = logger("rocsteady.kafka")
_logger.addFilter(RareLog(kind=lambda record: _NUMBERS.sub("", record.getMessage())[:80]))


def _hide_values(record: logging.LogRecord) -> bool:
    """Hide values of options in a log line that librdkafka writes; the line itself is always kept."""
    if isinstance(record.args, tuple):
        record.args = tuple(without_values(a) if isinstance(a, str) else a for a in record.args)
    return True


_logger.addFilter(_hide_values)

_silent = logging.Logger("rocsteady.kafka.asking")
_silent.addHandler(logging.NullHandler())


def reason_of(error: Any) -> str:
    """Return the text of a KafkaError, without the remarks of librdkafka on threads, addresses and states."""
    return without_values(_PLACE.sub("", str(error.str())).strip().rstrip("."))


def client_settings(topic: KafkaTopic, **own: Any) -> dict[str, Any]:
    """Return settings for any client, which logs to "rocsteady.kafka"; see `KafkaTopic.settings`."""
    return {"logger": _logger, **topic.settings(**own)}


def make_client(kind: Any, settings: dict[str, Any]) -> Any:
    """Make a client of confluent-kafka. Raises ConfigError for a setting that librdkafka refuses."""
    try:
        return kind(settings)
    except (confluent_kafka().KafkaException, TypeError, ValueError) as error:
        said = without_values(error.args[0].str() if hasattr(error.args[0], "str") else str(error))
        raise ConfigError(
            f"--kafka-option: {said.rstrip('.')}; names and values are those of librdkafka (its "
            "CONFIGURATION.md)"
        ) from None


class TopicFound(NamedTuple):
    """The brokers' report on a topic: its number of partitions, the id of their cluster, and the topic's id.

    An id that the brokers do not have is "". Kafka has ids of topics since 2.8.
    """

    partitions: int
    cluster: str
    id: str = ""


def topic_id_of(description: Any) -> str:
    """Return the id of a topic from its description; "" if the brokers have no ids of topics."""
    found = getattr(description, "topic_id", None)
    if found is None or not (found.get_most_significant_bits() or found.get_least_significant_bits()):
        return ""
    return str(found)


def _topic_id(client: Any, topic: KafkaTopic) -> str:
    """Ask for the id of a topic that exists; "" if the brokers give none."""
    kafka = confluent_kafka()
    asked = client.describe_topics(kafka.TopicCollection([topic.name]), request_timeout=_ID_SECONDS)
    try:
        return topic_id_of(asked[topic.name].result(_ID_SECONDS))
    except (kafka.KafkaException, TimeoutError):
        return ""


def check_topic(topic: KafkaTopic, what: str, seconds: float = CHECK_SECONDS) -> TopicFound:
    """Return the brokers' description of a topic. The request never creates the topic.

    what  the option and its value, with which the text of each error begins

    Raises InputError if no broker answers in time, the brokers refuse the client, or the topic does not
    exist; ConfigError for an invalid option; MissingPackageError if confluent-kafka is missing.
    """
    kafka = confluent_kafka()
    from confluent_kafka.admin import AdminClient

    errors: list[Any] = []
    settings = topic.settings(reconnect_backoff_ms=500)
    client = make_client(AdminClient, {**settings, "error_cb": errors.append, "logger": _silent})
    end = time.monotonic() + seconds
    while True:
        try:
            there = client.list_topics(timeout=min(2.0, seconds))
            break
        except kafka.KafkaException as error:
            client.poll(_POLL_SECONDS)  # this call serves error_cb
            telling = [each for each in errors if each.name() != "_ALL_BROKERS_DOWN"]
            final = [each for each in telling if each.name() in _REFUSALS]
            if final or time.monotonic() >= end:
                last = (final or telling or [error.args[0]])[-1]
                raise InputError(
                    f"{what}: {no_answer(topic, last, reason_of(last), connected=not telling)}"
                ) from None
    known = there.topics
    found = known.get(topic.name)
    if found is None or found.error is not None:
        near = near_names(topic.name, known)
        hint = f"did you mean {near[0]}?" if near else "create it, or name another"
        raise InputError(f"{what}: {topic.brokers} has no topic {topic.name!r} that may be seen; {hint}")
    return TopicFound(len(found.partitions), there.cluster_id or "", _topic_id(client, topic))


def no_answer(topic: KafkaTopic, error: Any, said: str, *, connected: bool = False) -> str:
    """Return a sentence on why no broker answers, with the remedy.

    said       the reason of the error
    connected  whether a server took the connection, but then sent no answer
    """
    if error.name() == "_RESOLVE":
        return f"no host of {topic.brokers} is known here ({said}); check its name"
    if error.name() in _REFUSALS:
        return (
            f"{topic.brokers} does not let us in ({said}); check --kafka-option security.protocol, sasl.* "
            "and ssl.*"
        )
    remedy = (
        "start the broker, or name another, or say --kafka-option security.protocol=SSL, SASL_SSL or "
        "SASL_PLAINTEXT if it asks for TLS or a password"
    )
    # A listener without TLS answers TLS with an error, or closes the connection; which of both is chance.
    if "PLAINTEXT" in said or "SSL connection closed" in said:
        remedy = "leave --kafka-option security.protocol out, or say SASL_PLAINTEXT, if it speaks no TLS"
    elif connected:  # a TLS listener silently closes a connection without TLS
        remedy = (
            "something takes connections there: say --kafka-option security.protocol=SSL, or SASL_SSL, if it "
            "speaks TLS"
        )
    return f"no broker answers at {topic.brokers} ({said}); {remedy}"
