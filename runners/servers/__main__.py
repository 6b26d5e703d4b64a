"""`python -m rocsteady.runners.servers`: get servers, start them in the background, see them, stop them."""

from __future__ import annotations

import argparse
import logging
import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from ...core.process.console import OptionParser, say, show
from . import packages
from .flink import FlinkCluster, JobServer, worker_options
from .kafka import KafkaBroker, create_topic
from .packages import COMMAND, FLINK_MINOR, NAMES
from .processes import ServerError, recorded, stop_recorded

_EPILOG = f"""examples:
  {COMMAND} get flink kafka prism java-io
  {COMMAND} up flink kafka
  {COMMAND} topic events --partitions 4
  {COMMAND} status
  {COMMAND} down

Flink, Kafka and java-io need Java 17 or later, Kafka and a jar that is built Maven, Prism Go. What is fetched
is kept in $ROCSTEADY_SERVERS, else in the user's cache folder. Servers listen on 127.0.0.1 alone; their
logs and data are in --folder, and outlive them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status. A missing package or a refusal prints its reason: status 2."""
    words = _parser().parse_args(arguments)
    try:
        words.run(words)
    except ServerError as error:
        say(error)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = OptionParser(
        prog=COMMAND,
        description=__doc__.partition(": ")[2] if __doc__ else None,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    fetch = commands.add_parser("get", help="download or build what the servers are made of")
    fetch.add_argument("names", nargs="+", choices=NAMES, metavar="NAME", help=" | ".join(NAMES))
    fetch.add_argument(
        "--build", action="store_true", help="build a jar of Beam's even if the ready one can be had"
    )
    fetch.set_defaults(run=_get)

    start = commands.add_parser("up", help="start servers in the background, and say how to use them")
    start.add_argument("names", nargs="+", choices=("flink", "kafka"), metavar="NAME", help="flink | kafka")
    start.add_argument("--task-managers", type=_positive, default=1, metavar="N", help="of Flink [1]")
    start.add_argument("--slots", type=_positive, default=2, metavar="N", help="of each of them [2]")
    start.add_argument("--flink-port", type=_positive, default=8081, metavar="PORT", help="[8081]")
    start.add_argument("--job-port", type=_positive, default=8099, metavar="PORT", help="[8099]")
    start.add_argument("--kafka-port", type=_positive, default=9092, metavar="PORT", help="[9092]")
    start.set_defaults(run=_up)

    topic = commands.add_parser("topic", help="make a topic on the Kafka broker (needs confluent-kafka)")
    topic.add_argument("name")
    topic.add_argument("--partitions", type=_positive, default=1, metavar="N", help="[1]")
    topic.set_defaults(run=_topic)

    stop = commands.add_parser("down", help="stop what was started")
    stop.set_defaults(run=_down)

    status = commands.add_parser("status", help="show what runs")
    status.set_defaults(run=_status)

    for command in (start, topic, stop, status):
        command.add_argument("--folder", type=Path, metavar="DIR", help="of logs and data [in the cache]")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return number


def _folder(words: argparse.Namespace) -> Path:
    return (words.folder or packages.servers_folder() / "running").absolute()


def _get(words: argparse.Namespace) -> None:
    for name in dict.fromkeys(words.names):
        start = time.monotonic()
        was_there = not packages.missing([name])
        packages.get(name, build=words.build)
        if not was_there:
            show(f"{name} took {time.monotonic() - start:.0f} s")
        if name == "prism":
            show(f"  --runner prism --prism_location {shlex.quote(str(packages.prism_path()))}")
        if name == "java-io":
            show(f"  {shlex.quote(packages.java_io_option())}")
        if name == "flink":
            jar = shlex.quote(str(packages.job_server_jar()))
            show(f"  --runner flink --flink_version {FLINK_MINOR} --flink_job_server_jar {jar}")


def _up(words: argparse.Namespace) -> None:
    folder = _folder(words)
    up = {server.name: server for server in recorded(folder) if server.running}
    if "flink" in words.names:
        if "job-manager" in up:
            show(f"Flink runs already, at http://{up['job-manager'].address}")
            _start_anew(folder, up["job-manager"].address)
        else:
            cluster = FlinkCluster(
                folder, port=words.flink_port, task_managers=words.task_managers, slots=words.slots
            )
            jobs = JobServer(folder, cluster.address, port=words.job_port)
            with ExitStack() as started:  # a cluster without its job server is stopped
                started.enter_context(cluster)
                started.enter_context(jobs)
                started.pop_all()
            show(f"Flink is up: its page is at http://{cluster.address}; run a job on it with")
            show(f"  --runner flink {shlex.join(cluster.options())}")
            show("or, with workers that the cluster starts, so that it goes on when its launcher dies, with")
            workers = shlex.join(worker_options(folder))
            show(f"  --runner PortableRunner --job_endpoint {jobs.address} {workers}")
    if "kafka" in words.names:
        if "kafka" in up:
            show(f"Kafka runs already, at {up['kafka'].address}")
        else:
            broker = KafkaBroker(folder, port=words.kafka_port)
            with ExitStack() as started:
                started.enter_context(broker)
                started.pop_all()
            show(f"Kafka is up at {broker.address}; its topics are kafka://{broker.address}/TOPIC")
    asked = "" if words.folder is None else f" --folder {shlex.quote(str(words.folder))}"
    show(f"logs and data are in {folder}; stop with `{COMMAND} down{asked}`")


def _start_anew(folder: Path, address: str) -> None:
    """Restart the ended processes of a cluster whose JobManager still runs."""
    cluster = FlinkCluster(folder, port=int(address.rpartition(":")[2]))
    for server in recorded(folder):
        if server.running:
            continue
        if server.name.startswith("task-manager-"):
            cluster.start_task_manager(server.name)
        elif server.name == "job-server":
            JobServer(folder, address, port=int(server.address.rpartition(":")[2])).start()
        else:
            continue
        show(f"{server.name} had ended, and is started anew")


def _topic(words: argparse.Namespace) -> None:
    brokers = [server for server in recorded(_folder(words)) if server.name == "kafka" and server.running]
    if not brokers:
        raise ServerError(f"no Kafka broker runs in {_folder(words)}: start it with `{COMMAND} up kafka`")
    create_topic(brokers[0].address, words.name, partitions=words.partitions)
    show(f"kafka://{brokers[0].address}/{words.name}")


def _down(words: argparse.Namespace) -> None:
    folder = _folder(words)
    servers = recorded(folder)
    servers.sort(key=lambda server: server.name == "job-manager")  # stopped last: the others need it
    for server in servers:
        stop_recorded(folder, server)
        show(f"{server.name} is stopped" if server.running else f"{server.name} had ended")
    if not servers:
        show(f"nothing runs in {folder}")


def _status(words: argparse.Namespace) -> None:
    servers = recorded(_folder(words))
    for server in servers:
        state = f"{server.memory / 2**20:5.0f} MB" if server.running else "   ended"
        show(f"{server.name:<16} {state}  {server.pid:>8}  {server.address}".rstrip())
    if not servers:
        show(f"nothing runs in {_folder(words)}")


if __name__ == "__main__":
    logging.getLogger().setLevel(logging.ERROR)  # Beam warns of packages that only other runners need
    sys.exit(main())
