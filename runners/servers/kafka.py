"""A real Kafka broker on this machine: a single process that is broker and controller (KRaft).

    with KafkaBroker(folder) as broker:
        broker.create_topic("events", partitions=4)
        consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.address, "group.id": "one"})

Records are kept regardless of their times: Kafka's default limit of a week deletes replayed records within
minutes. Only `create_topic` makes topics. Data outlives the process. The broker starts in 8 s with 230 MB.
"""

from __future__ import annotations

import socket
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.process.imports import missing_package
from .packages import kafka_jars
from .processes import HOST, Server, ServerError, crash_report, free_port, java

_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)
"""A request for the versions that the broker speaks: length, key, version, number, no name."""

_CLUSTER = "cm9jc3RlYWR5LXNlcnZlcg"
_TOPIC_PATIENCE = 30


class KafkaBroker(Server):
    """A broker and its data.

    folder         the folder of configuration, log and data/; a broker restarted in the folder keeps its data
    port           the port [a free port]
    settings       Kafka's settings by name, such as message.max.bytes; they override the settings of this
                   module
    """

    def __init__(
        self,
        folder: Path,
        *,
        port: int | None = None,
        settings: Mapping[str, str | int] | None = None,
    ) -> None:
        folder = folder.absolute()
        port = port or free_port()
        controller = f"{HOST}:{free_port()}"
        listener = f"PLAINTEXT://{HOST}:{port}"
        self._settings: dict[str, str | int] = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CONTROLLER://{controller},{listener}",
            "advertised.listeners": listener,
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": str(folder / "data"),
            "log.retention.ms": -1,
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
            "broker.session.timeout.ms": 3_000,  # a killed broker may register again only after this time
            "broker.heartbeat.interval.ms": 500,
            "num.network.threads": 2,
            "num.io.threads": 2,
            **(settings or {}),
        }
        self._properties_file = folder / "server.properties"
        # Kafka's own helper asks for a gigabyte of heap; a quarter of that holds a test's topics.
        self._java = [
            java(), "-Xmx320m", "-XX:+UseG1GC", crash_report(folder),
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS", "-cp", f"{kafka_jars()}/*",
        ]  # fmt: skip
        super().__init__(
            "kafka",
            folder,
            [*self._java, "kafka.Kafka", str(self._properties_file)],
            answers=lambda _: _speaks_kafka(port),
            port=port,
        )

    def launch(self) -> None:
        """Start the process without waiting for it; format the folder first if it is new."""
        self.folder.mkdir(parents=True, exist_ok=True)
        written = "".join(f"{name}={value}\n" for name, value in self._settings.items())
        self._properties_file.write_text(written)
        if not (self.folder / "data" / "meta.properties").exists():
            tool = "kafka.tools.StorageTool"
            _run(*self._java, tool, "format", "-t", _CLUSTER, "-c", str(self._properties_file))
        super().launch()

    def create_topic(
        self, name: str, *, partitions: int = 1, settings: Mapping[str, str | int] | None = None
    ) -> None:
        """Make a topic and wait until it exists; raise ServerError with the broker's text if it refuses."""
        create_topic(self.address, name, partitions=partitions, settings=settings)


def create_topic(
    address: str, name: str, *, partitions: int = 1, settings: Mapping[str, str | int] | None = None
) -> None:
    """Make a topic of one replica on the broker at an address; raise ServerError if the broker refuses."""
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic  # the module that has its type annotations
    except ImportError:
        raise ServerError(str(missing_package("confluent-kafka", "a topic", "kafka"))) from None
    client = AdminClient({"bootstrap.servers": address, "log_level": 0})
    config = {key: str(value) for key, value in (settings or {}).items()}
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config)
    made: Any = client.create_topics(
        [topic], operation_timeout=_TOPIC_PATIENCE, request_timeout=_TOPIC_PATIENCE
    )
    try:
        made[name].result()
    except KafkaException as error:
        raise ServerError(f"topic {name!r} cannot be made at {address}: {error.args[0].str()}") from None


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ServerError(f"Kafka cannot be made ready: {(done.stdout + done.stderr).strip()}")


def _speaks_kafka(port: int) -> bool:
    """Return whether a broker answers requests. A starting broker takes connections before it answers."""
    try:
        with socket.create_connection((HOST, port), timeout=5) as wire:
            wire.sendall(_API_VERSIONS)
            return len(wire.recv(4)) == 4
    except OSError:
        return False
