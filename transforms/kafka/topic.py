"""A Kafka topic, given by its URL and the options of its client, for sources and sinks.

    kafka://host:port[,host:port...]/topic

Options are librdkafka's: each is `key=value`, or `@FILE` for a file with such lines. A password belongs into
a file, because every user of the machine can see the command line. Only functions that open a client import
confluent-kafka.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...core.errors import ConfigError, InputError
from ...core.process.imports import missing_package

SCHEME = "kafka://"

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SECRET = re.compile("password|secret|key|pem|username|certificate|token|jaas|oauthbearer|location|url")
_WORDS = frozenset(
    (
        "true", "false", "none", "all", "earliest", "latest", "PLAINTEXT", "SSL", "SASL_PLAINTEXT",
        "SASL_SSL", "PLAIN", "GSSAPI", "OAUTHBEARER", "SCRAM-SHA-256", "SCRAM-SHA-512", "gzip", "snappy",
        "lz4", "zstd",
    )
)  # fmt: skip
"""Values that are not secret; errors show them, because they help to understand the error."""

_told: set[str] = set()
"""The values of options, in this process's clients, that may be secret; see `without_values`."""

_KEY = re.compile(r"[a-z]+([._][a-z0-9_]+)*")
"""The pattern of librdkafka's keys, including those of plugins."""

_IN_URL = ("bootstrap.servers", "metadata.broker.list")


def is_kafka(path: str) -> bool:
    """Return whether a path is the URL of a topic.

    >>> is_kafka("kafka://localhost:9092/rows"), is_kafka("rows.jsonl")
    (True, False)
    """
    return path.lower().startswith(SCHEME)


@dataclass(frozen=True)
class KafkaTopic:
    """A topic and its brokers. `options` may hold a password, so they are not shown.

    brokers  "host:port", several with commas between
    options  (name, value) pairs of librdkafka's settings, in the order in which they were given
    """

    brokers: str
    name: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, url: str, options: Iterable[str] = ()) -> KafkaTopic:
        """Read a URL, and options in the form of the command line.

        Raises ConfigError for a URL or an option that is not valid, InputError for a file that cannot be
        read.

        >>> KafkaTopic.parse("kafka://one:9092,two:9093/rows", ["linger.ms=5"])
        KafkaTopic(brokers='one:9092,two:9093', name='rows')
        """
        if "@" in url:
            raise ConfigError(
                f"{SCHEME}***: its URL is not shown, as it holds an '@' and so perhaps a password; give "
                f"{SCHEME}host:port/topic, and user and password by --kafka-option @FILE"
            )
        brokers, _, name = url[len(SCHEME) :].partition("/")
        for address in brokers.split(","):
            found = _ADDRESS.fullmatch(address)
            if found is None or not 0 < int(found[2]) < 65_536:
                raise ConfigError(
                    f"{url}: {address!r} is no broker; give host:port, such as kafka://localhost:9092/topic"
                )
        if not _TOPIC.fullmatch(name) or name in (".", ".."):
            raise ConfigError(
                f"{url}: {name!r} is no name of a topic; name one behind the brokers, of at most 249 "
                "letters, digits, '.', '_' and '-'"
            )
        return cls(brokers, name, tuple(kafka_options(options).items()))

    @property
    def url(self) -> str:
        """The URL, without the options."""
        return f"{SCHEME}{self.brokers}/{self.name}"

    def is_same(self, other: KafkaTopic) -> bool:
        """Return whether two URLs name one topic.

        Both have the same name, and at least one broker in common.

        >>> KafkaTopic("one:9092,two:9093", "rows").is_same(KafkaTopic("TWO:9093", "rows"))
        True
        """
        brokers, others = (set(each.brokers.lower().split(",")) for each in (self, other))
        return self.name == other.name and not brokers.isdisjoint(others)

    def settings(self, **own: Any) -> dict[str, Any]:
        """Return the settings of a client: `own` (with "_" for "."), then the options, then the brokers."""
        given = {name.replace("_", "."): value for name, value in own.items()}
        for name, value in self.options:
            if value and (_SECRET.search(name) or not (value.isdecimal() or value in _WORDS)):
                _told.add(value)
        return {**given, **dict(self.options), "bootstrap.servers": self.brokers}


def without_values(text: str) -> str:
    """Return a text of the client with *** in place of each option's value, which may be a password.

    librdkafka repeats values in its errors and in its log ("Unsupported SASL mechanism: hunter2"). The method
    replaces the values of all topics whose `settings` method was called in this process.
    """
    for value in sorted(_told, key=len, reverse=True):
        if value in text:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", "***", text)
    return text


def kafka_options(words: Iterable[str]) -> dict[str, str]:
    """Read options, each `key=value` or `@FILE`.

    Raises ConfigError for an option that is not valid, InputError for a file that cannot be read.

    A key has one value. An option `key=value` replaces the value of a file.

    An error never shows a value or a malformed line, which may hold a password. The error names the place.

    >>> kafka_options(["security.protocol=SASL_SSL", "sasl.username=me"])
    {'security.protocol': 'SASL_SSL', 'sasl.username': 'me'}
    """
    of_files: dict[str, str] = {}
    alone: dict[str, str] = {}
    for place, word in enumerate(words, 1):
        options, lines = alone, iter([(f"number {place}", word)])
        if word.startswith("@"):
            options, lines = of_files, _lines(word[1:])
        for where, line in lines:
            name, equals, value = (part.strip() for part in line.partition("="))
            if not equals or not name:
                raise ConfigError(f"{_unseen(where)}: it lacks a key or '='; {_EXAMPLE}")
            if not _KEY.fullmatch(name):
                raise ConfigError(
                    f"{_unseen(where)}: what precedes its '=' is no key of librdkafka; {_EXAMPLE}"
                )
            if name in _IN_URL:
                raise ConfigError(f"--kafka-option {name}: the brokers stand in the URL; leave it out")
            if options.setdefault(name, value) != value:
                raise ConfigError(f"--kafka-option {name} is given twice, with two values; leave one out")
    return of_files | alone


_EXAMPLE = "give key=value, such as security.protocol=SASL_SSL"


def _unseen(where: str) -> str:
    return f"--kafka-option ({where}; not shown, it may hold a password)"


def _lines(path: str) -> Iterator[tuple[str, str]]:
    """Yield (place, text) of each line of a file, without blank lines and comments ("#")."""
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InputError(f"--kafka-option @{path} cannot be read: {why}") from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield f"line {number} of {path}", line


def confluent_kafka() -> Any:
    """Import confluent-kafka. Raises MissingPackageError, which says how to install the package."""
    try:
        import confluent_kafka
    except ImportError:
        raise missing_package("confluent-kafka", "kafka://", "kafka") from None
    return confluent_kafka
