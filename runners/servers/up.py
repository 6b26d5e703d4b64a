"""Starts the servers that are asked for, or those of their processes that have ended.

It prints how to use the servers. A server that has ended starts again at its port, with the settings and the
data of its folder. A server that runs is not touched. So other settings are refused while there are records
of Flink's processes. `down` removes the records.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ...core.process.console import show
from .flink import FlinkCluster, JobServer, WorkerPool, worker_options
from .flink_settings import OPTION, check_settings, parse_settings
from .kafka import KafkaBroker
from .packages import flink_jars
from .processes import HOST, Recorded, Server, ServerError, listens, recorded

_TASK_MANAGER = "task-manager-"
_SERVERS = {
    "flink": ("job-manager", _TASK_MANAGER, "job-server"),
    "kafka": ("kafka",),
    "pool": ("worker-pool",),
}
"""For each name that a command is given: the beginnings of the names of its processes, in the order of their
starts.
"""

NAMES = tuple(_SERVERS)


@dataclass(frozen=True)
class FlinkWords:
    """The options of `up` for Flink; an option that was not given is None.

    settings  words KEY=VALUE
    """

    port: int | None
    job_port: int | None
    task_managers: int | None
    slots: int | None
    settings: Sequence[str]


def processes_of(folder: Path, names: Sequence[str]) -> dict[str, Recorded]:
    """Return the records in a folder for names such as "flink", by the names of the processes."""
    starts = tuple(start for name in names for start in _SERVERS[name])
    return {server.name: server for server in recorded(folder) if server.name.startswith(starts)}


def up_flink(folder: Path, words: FlinkWords) -> None:
    """Start a cluster and its job server, or those of their processes that have ended or are missing."""
    there = processes_of(folder, ["flink"])
    cluster = _as_it_was(folder, words, there) if there else _new(folder, words)
    record = there.get("job-server")
    jobs = JobServer(folder, cluster.address, port=(record and record.port) or words.job_port or 8099)
    recorded_managers = [name for name in there if name.startswith(_TASK_MANAGER)]
    number = words.task_managers or len(recorded_managers) or 1
    managers = sorted({*recorded_managers, *(f"{_TASK_MANAGER}{place + 1}" for place in range(number))})
    missing = [
        name
        for name in ("job-manager", *managers, "job-server")
        if name not in there or not there[name].running
    ]
    if not missing:
        show(f"Flink runs already, at http://{cluster.address}")
        return
    for server, option in ((cluster.job_manager, "--flink-port"), (jobs, "--job-port")):
        if server.name in missing:
            _refuse_taken("flink", server, option)
    with ExitStack() as undo:
        if not there:  # a new cluster that cannot be started as a whole is stopped
            undo.callback(cluster.stop)
            undo.callback(jobs.stop)
        for name in missing:
            if name == "job-manager":
                cluster.job_manager.start()
            elif name == "job-server":
                jobs.start()
            else:
                cluster.start_task_manager(name)
            if there:
                show(f"{name} had ended, and is started anew" if name in there else f"{name} is started")
        if "job-manager" in missing:  # TaskManagers that run find the new JobManager by themselves
            cluster.wait_for_slots(cluster.slots * len(managers))
        undo.pop_all()
    if "job-server" not in there:
        show(f"Flink is up: its page is at http://{cluster.address}; run a job on it with")
        show(f"  --runner flink {shlex.join(cluster.options())}")
        show("or, with workers that the cluster starts, so that it goes on when its launcher dies, with")
        workers = shlex.join(worker_options(folder))
        show(f"  --runner PortableRunner --job_endpoint {jobs.address} {workers}")
    if "job-manager" in missing and "job-manager" in there:
        show("jobs are gone with their JobManager; start each again with its newest checkpoint:")
        for path in cluster.newest_checkpoints(since=there["job-manager"].started):
            show(f"  --savepoint_path={shlex.quote(path)}")


def _new(folder: Path, words: FlinkWords) -> FlinkCluster:
    given = parse_settings(words.settings)
    cluster = FlinkCluster(folder, port=words.port or 8081, slots=words.slots or 2, settings=given)
    check_settings(given, cluster.ours, flink_jars())
    cluster.configure()
    return cluster


def _as_it_was(folder: Path, words: FlinkWords, there: Mapping[str, Recorded]) -> FlinkCluster:
    """Return the cluster of a folder that has records; raise ServerError if another cluster is asked for."""
    cluster = FlinkCluster.in_folder(folder)
    managers = sum(name.startswith(_TASK_MANAGER) for name in there)
    _refuse_other("flink", "--flink-port", words.port, cluster.port)
    _refuse_other("flink", "--slots", words.slots, cluster.slots)
    if "job-server" in there:
        _refuse_other("flink", "--job-port", words.job_port, there["job-server"].port)
    if words.task_managers is not None and words.task_managers < managers:
        _refuse_other("flink", "--task-managers", words.task_managers, managers)
    for key, value in parse_settings(words.settings).items():
        _refuse_other("flink", f"{OPTION} {key}", value, cluster.settings.get(key, "Flink's default"))
    return cluster


def up_kafka(folder: Path, port: int | None) -> None:
    """Start a broker, or start it again if it has ended; its topics are in its folder."""
    address = _up_alone(folder, "kafka", KafkaBroker, "--kafka-port", port, 9092)
    show(f"Kafka is up at {address}; its topics are kafka://{address}/TOPIC")


def up_pool(folder: Path, port: int | None) -> None:
    """Start a pool of Python workers, or start it again if it has ended."""
    address = _up_alone(folder, "pool", WorkerPool, "--pool-port", port, 50_000)
    show(f"the pool is up; a job uses it by --environment_type EXTERNAL --environment_config {address}")


def _up_alone(
    folder: Path, name: str, make: Callable[..., Server], option: str, asked: int | None, default: int
) -> str:
    """Start a server that is a single process, unless it runs; return its address."""
    record = next(iter(processes_of(folder, [name]).values()), None)
    if record is not None:
        _refuse_other(name, option, asked, record.port)
        if record.running:
            show(f"{record.name} runs already")
            return record.address
    server = make(folder, port=(record and record.port) or asked or default)
    _refuse_taken(name, server, option)
    if record is not None:
        server.start()
        show(f"{record.name} had ended, and is started anew")
    else:
        with ExitStack() as undo:  # a new server that does not answer leaves no record
            undo.enter_context(server)
            undo.pop_all()
    return f"{HOST}:{server.port}"


def _refuse_other(name: str, option: str, asked: object, found: object) -> None:
    if asked is not None and str(asked) != str(found):
        raise ServerError(
            f"{option} {asked}: {name} was started with {found}; stop it with `down {name}` first"
        )


def _refuse_taken(name: str, server: Server, option: str) -> None:
    if server.port is not None and listens(server.port):
        raise ServerError(
            f"{server.name} cannot have port {server.port}, where another process listens: end that process, "
            f"or `down {name}`, and `up {name}` with another {option}"
        )
