"""What a client of Kafka complains of, as one sentence: the object, what it did, the remedy.

A client tells its troubles apart from its answers: it goes on trying for ever, says so to a callback again
and again, and a call that waits for a broker ends with "transport failure", whatever it was. So the last
complaint that tells more than that is kept, and said when somebody asks.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from .kafka_topic import KafkaTopic

_logger = logging.getLogger(__name__)

_SAY_SECONDS = 60.0
"""Between two lines of the log about one client."""

_TELLING = ("_AUTHENTICATION", "_SSL", "_RESOLVE", "_TRANSPORT")
"""The codes of complaints, the most telling first."""


class Trouble:
    """The complaints of the clients of a topic; given to a client as its `error_cb`."""

    def __init__(self, topic: KafkaTopic) -> None:
        self._topic = topic
        self._worst: tuple[int, str, str] | None = None
        self._said = -_SAY_SECONDS
        self._lock = threading.Lock()

    def __call__(self, error: Any) -> None:
        """Take a complaint (a KafkaError)."""
        name = error.name()
        if name in _TELLING:
            found = (_TELLING.index(name), name, error.str())
            with self._lock:
                self._worst = found if self._worst is None else min(self._worst, found)

    @property
    def is_certain(self) -> bool:
        """Whether to wait longer is of no use: credentials, certificates or names are wrong."""
        return self._worst is not None and self._worst[1] != "_TRANSPORT"

    def clear(self) -> None:
        """Forget: the broker has answered."""
        self._worst = None

    def say(self) -> None:
        """Log what is wrong, if anything is, at most once a minute; forget it."""
        if self._worst is not None and time.monotonic() - self._said >= _SAY_SECONDS:
            self._said = time.monotonic()
            _logger.warning("%s; it is tried again until it answers", self.sentence())
        self._worst = None

    def sentence(self) -> str:
        """Say what is wrong."""
        url, brokers = self._topic.url, self._topic.brokers
        _, name, said = self._worst or (0, "", "")
        if name == "_AUTHENTICATION":
            return (
                f"{url}: {brokers} refuses the credentials; check sasl.username, sasl.password and "
                "sasl.mechanism of --kafka-option"
            )
        if name == "_SSL" and "certificate" in said:
            return (
                f"{url}: the certificate of {brokers} cannot be verified; name the one that signed it with "
                "--kafka-option ssl.ca.location=FILE"
            )
        if name == "_SSL":
            protocol = dict(self._topic.options).get("security.protocol", "SSL")
            return (
                f"{url}: {brokers} does not speak TLS, and --kafka-option security.protocol={protocol} "
                "asks for it; leave it out, or give the port that speaks TLS"
            )
        if name == "_RESOLVE":
            return f"{url}: no host of {brokers} has an address; check the name"
        if "refused" in said:
            return f"{url}: no broker listens at {brokers}; check the port, and that Kafka runs"
        if "isconnected" in said or "security.protocol" in said:
            return (
                f"{url}: {brokers} ends the connection at once, as one does that asks for TLS or a password; "
                "say which with --kafka-option security.protocol=SSL, SASL_SSL or SASL_PLAINTEXT"
            )
        return f"{url}: no broker answers at {brokers}; check the address, and that Kafka runs"
