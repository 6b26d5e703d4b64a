"""`python -m rocsteady.runners.servers`: fetches, starts, lists and stops servers."""

from __future__ import annotations

import argparse
import logging
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ...core.process.console import OptionParser, UsageError, say, show
from . import packages
from .flink import FlinkCluster
from .flink_settings import OPTION
from .kafka import create_topic
from .packages import COMMAND, FLINK_MINOR, NAMES
from .processes import ServerError, stop_recorded
from .up import NAMES as UP
from .up import FlinkWords, processes_of, up_flink, up_kafka, up_pool

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
    """Run one command; return the exit status.

    If a package is missing, or a server refuses, it prints the reason and returns 2.
    """
    try:
        words = _parser().parse_args(arguments)
        words.run(words)
    except (ServerError, UsageError) as error:
        say(error)
        return 2
    except KeyboardInterrupt:
        return 130
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

    start = commands.add_parser("up", help="start servers in the background, or those that have ended")
    start.add_argument("names", nargs="+", choices=UP, metavar="NAME", help=" | ".join(UP))
    start.add_argument("--task-managers", type=_positive, metavar="N", help="of Flink [1]")
    start.add_argument("--slots", type=_positive, metavar="N", help="of each TaskManager [2]")
    start.add_argument(OPTION, action="append", default=[], metavar="KEY=VALUE",
                       help="a setting by Flink's own name; may be given again")  # fmt: skip
    start.add_argument("--flink-port", type=_port, metavar="PORT", help="[8081]")
    start.add_argument("--job-port", type=_port, metavar="PORT", help="[8099]")
    start.add_argument("--kafka-port", type=_port, metavar="PORT", help="[9092]")
    start.add_argument("--pool-port", type=_port, metavar="PORT", help="[50000]")
    start.set_defaults(run=_up)

    topic = commands.add_parser("topic", help="make a topic on the Kafka broker (needs confluent-kafka)")
    topic.add_argument("name")
    topic.add_argument("--partitions", type=_positive, default=1, metavar="N", help="[1]")
    topic.set_defaults(run=_topic)

    stop = commands.add_parser("down", help="stop what was started")
    stop.add_argument("names", nargs="*", type=_name, metavar="NAME", help=f"{' | '.join(UP)} [all]")
    stop.set_defaults(run=_down)

    status = commands.add_parser("status", help="show what runs")
    status.set_defaults(run=_status)

    for command in (start, topic, stop, status):
        command.add_argument("--folder", type=Path, metavar="DIR", help="of logs and data [in the cache]")
    return parser


def _name(text: str) -> str:
    if text not in UP:  # `choices` would refuse a list without names
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(UP)}")
    return text


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


def _port(text: str) -> int:
    number = _positive(text)
    if number >= 1 << 16:
        raise argparse.ArgumentTypeError(f"{text} is not a port, which is at most 65535")
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
    if "flink" in words.names:
        told = FlinkWords(
            words.flink_port, words.job_port, words.task_managers, words.slots, words.flink_conf
        )
        up_flink(folder, told)
    if "kafka" in words.names:
        up_kafka(folder, words.kafka_port)
    if "pool" in words.names:
        up_pool(folder, words.pool_port)
    asked = "" if words.folder is None else f" --folder {shlex.quote(str(words.folder))}"
    show(f"logs and data are in {folder}; stop with `{COMMAND} down{asked}`")


def _topic(words: argparse.Namespace) -> None:
    broker = processes_of(_folder(words), ["kafka"]).get("kafka")
    if broker is None or not broker.running:
        raise ServerError(f"no Kafka broker runs in {_folder(words)}: start it with `{COMMAND} up kafka`")
    create_topic(broker.address, words.name, partitions=words.partitions)
    show(f"kafka://{broker.address}/{words.name}")


def _down(words: argparse.Namespace) -> None:
    folder = _folder(words)
    servers = list(processes_of(folder, words.names or UP).values())
    servers.sort(key=lambda server: server.name == "job-manager")  # stopped last, because the others need it
    for server in servers:
        stop_recorded(folder, server)
        show(f"{server.name} is stopped" if server.running else f"{server.name} had ended")
    if not servers:
        show(f"nothing runs in {folder}")


def _status(words: argparse.Namespace) -> None:
    folder = _folder(words)
    servers = processes_of(folder, UP)
    for server in servers.values():
        state = f"{server.memory / 2**20:5.0f} MB" if server.running else "   ended"
        show(f"{server.name:<16} {state}  {server.pid:>8}  {server.address}".rstrip())
    for name in UP:
        if not all(server.running for server in processes_of(folder, [name]).values()):
            show(f"`up {name}` starts what has ended")
    if processes_of(folder, ["flink"]):
        for key, value in FlinkCluster.in_folder(folder).changed().items():
            show(f"{key}: {value}")
    if not servers:
        show(f"nothing runs in {folder}")


if __name__ == "__main__":
    logging.getLogger().setLevel(logging.ERROR)  # Beam warns of packages that only other runners need
    sys.exit(main())
