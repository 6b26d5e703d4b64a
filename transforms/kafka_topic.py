"""A topic of Kafka by its URL, with the options of its client: what sources and sinks have in common.

    kafka://host:port[,host:port...]/topic

Options are those of librdkafka, `key=value` each, or `@FILE` for a file of such lines: a password on the
command line can be seen by every user of the machine. Only what opens a client imports confluent-kafka.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.errors import ConfigError, InputError, MissingPackageError

SCHEME = "kafka://"

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_IN_URL = ("bootstrap.servers", "metadata.broker.list")


def is_kafka(path: str) -> bool:
    """Tell whether a path is the URL of a topic.

    >>> is_kafka("kafka://localhost:9092/rows"), is_kafka("rows.jsonl")
    (True, False)
    """
    return path.lower().startswith(SCHEME)


@dataclass(frozen=True)
class KafkaTopic:
    """A topic and how to reach it. `options` may hold a password, so they are not shown.

    brokers  "host:port", several with commas between
    options  (name, value) pairs of librdkafka's settings, in the order given
    """

    brokers: str
    name: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, url: str, options: Iterable[str] = ()) -> KafkaTopic:
        """Read a URL, and options as the command line has them. Raises ConfigError, InputError.

        >>> KafkaTopic.parse("kafka://one:9092,two:9093/rows", ["linger.ms=5"])
        KafkaTopic(brokers='one:9092,two:9093', name='rows')
        """
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
        """Tell whether two URLs are of one topic: the name is the same, and one of the brokers.

        >>> KafkaTopic("one:9092,two:9093", "rows").is_same(KafkaTopic("TWO:9093", "rows"))
        True
        """
        brokers, others = (set(each.brokers.lower().split(",")) for each in (self, other))
        return self.name == other.name and not brokers.isdisjoint(others)

    def settings(self, **own: Any) -> dict[str, Any]:
        """Return a client's settings: `own` (with "_" for "."), then the options, then the brokers."""
        given = {name.replace("_", "."): value for name, value in own.items()}
        return {**given, **dict(self.options), "bootstrap.servers": self.brokers}


def kafka_options(words: Iterable[str]) -> dict[str, str]:
    """Read options, `key=value` or `@FILE`; the last of a key counts. Raises ConfigError, InputError.

    >>> kafka_options(["security.protocol=SASL_SSL", "sasl.username=me"])
    {'security.protocol': 'SASL_SSL', 'sasl.username': 'me'}
    """
    options = {}
    for word in words:
        for line in _lines(word[1:]) if word.startswith("@") else (word,):
            name, equals, value = (part.strip() for part in line.partition("="))
            if not equals or not name:
                where = f"--kafka-option {word}"
                told = f"{where}: {name!r} is not key=value" if word.startswith("@") else where
                raise ConfigError(f"{told}: give key=value, such as security.protocol=SASL_SSL")
            if name in _IN_URL:
                raise ConfigError(f"--kafka-option {name}: the brokers stand in the URL; leave it out")
            options[name] = value
    return options


def _lines(path: str) -> Iterator[str]:
    """Yield the lines of a file of options that are neither blank nor begin with "#"."""
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InputError(f"--kafka-option @{path} cannot be read: {why}") from None
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield line


def confluent_kafka() -> Any:
    """Import the client. Raises MissingPackageError, which says how to get it."""
    try:
        import confluent_kafka
    except ImportError:
        raise MissingPackageError(
            "kafka:// needs the package confluent-kafka, which is not installed here; run: "
            "pip install 'rocsteady[kafka]'"
        ) from None
    return confluent_kafka
