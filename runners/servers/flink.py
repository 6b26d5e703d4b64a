"""A real Flink session cluster, Beam's job server for it, and Python workers, on this machine.

    with FlinkCluster(folder) as cluster, JobServer(folder, cluster.address) as jobs:
        options = ["--runner=PortableRunner", f"--job_endpoint={jobs.address}", "--environment_type=LOOPBACK"]

Without a `JobServer`, Beam's FlinkRunner starts a job server for each job, so pass it `cluster.options()`.

Measured on 2 cores shared with other work: a cluster starts in 6 to 10 s, a job server in 2 to 3 s. A tiny
job takes 17 to 30 s: first the job server uploads its jar, then Flink runs the job for 6 to 12 s. Resident
memory after five jobs: JobManager 330 MB, TaskManager 700 MB, job server 390 MB.

The cluster keeps state in RocksDB (or in its heap), and checkpoints and savepoints in its folder. It restarts
a job up to ten times, a second after each failure. It notices after 8 s that a process has ended (Flink's
default: 50 s). There is no standby: a killed JobManager restarts without its jobs, and the jobs resume from a
savepoint.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .closed_jar import closed
from .flink_settings import memory_of
from .packages import FLINK_MINOR, flink_jars, job_server_jar, servers_folder
from .processes import HOST, Server, ServerError, Startable, crash_report, free_port, java, listens, polls

_OPENS = [
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in (
        "java.lang", "java.lang.reflect", "java.net", "java.io", "java.nio", "java.text", "java.time",
        "java.util", "java.util.concurrent", "java.util.concurrent.atomic", "java.util.concurrent.locks",
        "sun.nio.ch",
    )
] + [
    "--add-exports=java.base/sun.net.util=ALL-UNNAMED",
    "--add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED",
    "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
]  # fmt: skip
"""Options that open packages of Java 17, because"""

_SMALL = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss512k"]
"""Java options of processes that coordinate and move no events."""

_LOGGING = """rootLogger.level = INFO
rootLogger.appenderRef.console.ref = Console
appender.console.type = Console
appender.console.name = Console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yyyy-MM-dd HH:mm:ss,SSS} %-5p %-50c{1.} - %m%n
logger.netty.name = org.apache.flink.shaded.akka.org.jboss.netty.channel.DefaultChannelPipeline
logger.netty.level = OFF
"""

_SLOTS = "taskmanager.numberOfTaskSlots"
_FOR_ITSELF = ("jobmanager.rpc.port", "taskmanager.cpu.cores")
"""Settings that a cluster computes for itself."""

_HEAP = ("taskmanager.memory.framework.heap.size", "taskmanager.memory.task.heap.size")
_DIRECT = (
    "taskmanager.memory.framework.off-heap.size", "taskmanager.memory.task.off-heap.size",
    "taskmanager.memory.network.max",
)  # fmt: skip
_METASPACE = ("taskmanager.memory.jvm-metaspace.size",)
"""Settings whose sums are the heap, the direct memory and the metaspace of a TaskManager's Java."""

_WITHOUT_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""An opener for URLs of this machine."""


@dataclass(frozen=True)
class FlinkJob:
    """A job that a cluster knows; `state` is Flink's name, such as RUNNING, FINISHED, FAILED."""

    identity: str
    name: str
    state: str


class FlinkCluster(Startable):
    """A JobManager and its TaskManagers.

    folder          the folder of conf/config.yaml, logs, checkpoints/ and savepoints/
    port            the port of the REST interface and the web page [a free port]
    slots           the number of parallel tasks of each TaskManager
    settings        Flink's settings by name; they override the arguments above, and the defaults of this
                    module
    """

    def __init__(
        self,
        folder: Path,
        *,
        port: int | None = None,
        task_managers: int = 1,
        slots: int = 2,
        settings: Mapping[str, str | int] | None = None,
    ) -> None:
        self.folder = folder.absolute()
        self.port = port or free_port()
        self.address = f"{HOST}:{self.port}"
        self.checkpoints = self.folder / "checkpoints"
        self.savepoints = self.folder / "savepoints"
        self.ours: dict[str, str | int] = {
            "rest.address": HOST,
            "rest.bind-address": HOST,
            "rest.port": self.port,
            "jobmanager.rpc.address": HOST,
            "jobmanager.bind-host": HOST,
            "jobmanager.rpc.port": free_port(),
            "jobmanager.memory.heap.size": "384m",
            "taskmanager.host": HOST,
            "taskmanager.bind-host": HOST,
            _SLOTS: slots,
            "taskmanager.cpu.cores": slots,
            "taskmanager.memory.framework.heap.size": "128m",
            "taskmanager.memory.framework.off-heap.size": "128m",
            "taskmanager.memory.task.heap.size": "384m",
            "taskmanager.memory.task.off-heap.size": "64m",
            "taskmanager.memory.network.min": "192m",
            "taskmanager.memory.network.max": "192m",
            "taskmanager.memory.managed.size": "192m",
            "taskmanager.memory.jvm-metaspace.size": "256m",
            "taskmanager.memory.jvm-overhead.min": "192m",
            "taskmanager.memory.jvm-overhead.max": "192m",
            "parallelism.default": 1,
            "state.backend.type": "rocksdb",
            "state.checkpoints.dir": self.checkpoints.as_uri(),
            "state.savepoints.dir": self.savepoints.as_uri(),
            "state.checkpoints.num-retained": 2,
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": 10,
            "restart-strategy.fixed-delay.delay": "1 s",
            "heartbeat.interval": 2_000,
            "heartbeat.timeout": 8_000,
            "io.tmp.dirs": str(self.folder / "tmp"),
        }
        self.settings = {**self.ours, **(settings or {})}
        self._wanted = task_managers
        self.job_manager = self._server(
            "job-manager",
            "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint",
            [
                f"-Xmx{memory_of(self.settings, 'jobmanager.memory.heap.size')}",
                "-XX:MaxMetaspaceSize=256m",
                *_SMALL,
            ],
            answers=lambda _: self._overview() is not None,
            port=self.port,
        )
        self.task_managers: list[Server] = []

    @classmethod
    def in_folder(cls, folder: Path) -> FlinkCluster:
        """Return the cluster that was last started in a folder, with the settings of its conf/config.yaml.

        Raises ServerError if the file cannot be read.
        """
        path = folder / "conf" / "config.yaml"
        try:
            settings = json.loads("{" + ",".join(path.read_text().splitlines()) + "}")
            return cls(folder, port=settings["rest.port"], settings=settings)
        except (OSError, ValueError, KeyError):
            raise ServerError(
                f"{path} is not as `up` wrote it: stop the cluster with `down flink`, and start it with `up`"
            ) from None

    @property
    def slots(self) -> int:
        """The number of parallel tasks of each TaskManager."""
        return int(self.settings[_SLOTS])

    def changed(self) -> dict[str, str | int]:
        """Return, by name, the settings that differ from the settings of a cluster without arguments."""
        return {
            name: value
            for name, value in self.settings.items()
            if str(value) != str(self.ours.get(name)) and name not in _FOR_ITSELF
        }

    def newest_checkpoints(self, since: float) -> list[str]:
        """Return the path of each job's newest checkpoint, for --savepoint_path.

        Checkpoints that were made before `since`, in seconds since 1970, are left out. A JobManager removes
        the checkpoints of a job that ends. So checkpoints are there only for the jobs that a killed
        JobManager had.
        """
        found: dict[Path, tuple[float, Path]] = {}
        for metadata in self.checkpoints.glob("*/chk-*/_metadata"):
            written = metadata.stat().st_mtime
            job = metadata.parent.parent
            if written > max(since, found.get(job, (0.0, job))[0]):
                found[job] = written, metadata.parent
        return [path.as_uri() for _, path in sorted(found.values())]

    def options(self) -> list[str]:
        """Return Beam's options for a job on this cluster whose Python code runs in the launching process."""
        return [
            "--flink_master", self.address, "--flink_version", FLINK_MINOR, "--flink_job_server_jar",
            str(job_server_jar()), "--environment_type", "LOOPBACK",
        ]  # fmt: skip

    def start(self) -> None:
        """Start all processes and wait until every slot is registered; about 8 s."""
        self.configure()
        self.job_manager.start()
        for _ in range(self._wanted):
            self.add_task_manager()

    def configure(self) -> None:
        """Make the folder, with the configuration that every process reads when it starts."""
        for folder in ("conf", "checkpoints", "savepoints", "tmp"):
            (self.folder / folder).mkdir(parents=True, exist_ok=True)
        # JSON is valid YAML, and its quoting is unambiguous.
        written = "".join(f"{json.dumps(k)}: {json.dumps(v)}\n" for k, v in self.settings.items())
        (self.folder / "conf" / "config.yaml").write_text(written)
        (self.folder / "conf" / "log4j.properties").write_text(_LOGGING)

    def add_task_manager(self) -> Server:
        """Start one more TaskManager, wait until it is registered, and return it."""
        return self.start_task_manager(f"task-manager-{len(self.task_managers) + 1}")

    def start_task_manager(self, name: str) -> Server:
        """Start the TaskManager with a name, wait until it is registered, and return it."""
        added = self._server(
            name,
            "org.apache.flink.runtime.taskexecutor.TaskManagerRunner",
            [f"-Xmx{memory_of(self.settings, *_HEAP)}",
             f"-XX:MaxMetaspaceSize={memory_of(self.settings, *_METASPACE)}",
             f"-XX:MaxDirectMemorySize={memory_of(self.settings, *_DIRECT)}", "-XX:+UseG1GC"],
            answers=lambda said: "Successful registration at resource manager" in said,
        )  # fmt: skip
        self.task_managers.append(added)
        added.start()
        return added

    def wait_for_slots(self, slots: int, patience: float = 60) -> None:
        """Wait until the cluster has exactly `slots` slots, free or not.

        Slots of a dead process count until the cluster notices its death. Raises ServerError after `patience`
        seconds.
        """
        for _ in polls(patience):
            found = (self._overview() or {}).get("slots-total", "no")
            if found == slots:
                return
        raise ServerError(
            f"the cluster at {self.address} has {found} slots after {patience:.0f} s, not {slots}: see the "
            f"logs in {self.folder}"
        )

    def stop(self) -> None:
        """Stop every process; checkpoints, savepoints and logs stay."""
        for server in [*self.task_managers, self.job_manager]:
            server.stop()
        self.task_managers.clear()

    def jobs(self) -> list[FlinkJob]:
        """Return the jobs that the JobManager knows, the newest job first."""
        found = self.rest("/jobs/overview")["jobs"]
        found.sort(key=lambda job: -job["start-time"])
        return [FlinkJob(job["jid"], job["name"], job["state"]) for job in found]

    def cancel(self, job: str) -> None:
        """Cancel a job; its state since the last checkpoint is lost."""
        self.rest(f"/jobs/{job}?mode=cancel", method="PATCH")

    def savepoint(self, job: str, *, stop: bool = False, patience: float = 60) -> str:
        """Write a savepoint, and with `stop` end the job; return the path for --savepoint_path.

        Raises ServerError if no savepoint was written within `patience` seconds.
        """
        what, body = ("stop", {"drain": False}) if stop else ("savepoints", {"cancel-job": False})
        trigger = self.rest(f"/jobs/{job}/{what}", body)["request-id"]
        for _ in polls(patience):
            found = self.rest(f"/jobs/{job}/savepoints/{trigger}")
            if found["status"]["id"] == "COMPLETED":
                break
        else:
            raise ServerError(f"the savepoint of job {job} was not written within {patience:.0f} s")
        if "location" not in found["operation"]:
            cause = found["operation"]["failure-cause"]["stack-trace"].splitlines()[0]
            raise ServerError(f"the savepoint of job {job} was not written: {cause}")
        return str(found["operation"]["location"])

    def rest(self, path: str, body: Any = None, *, method: str | None = None, patience: float = 60) -> Any:
        """Return the answer of Flink's REST interface.

        Raises ServerError with Flink's text if Flink refuses.
        """
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://{self.address}{path}", data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with _WITHOUT_PROXY.open(request, timeout=patience) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            with error:
                raise ServerError(
                    f"Flink at {self.address} refuses {path}: {error.read().decode()}"
                ) from None
        except OSError as error:
            raise ServerError(f"Flink at {self.address} does not answer ({error}): is it up?") from None

    def memory(self) -> int:
        """Return the resident memory of all processes in bytes."""
        return sum(server.memory() for server in [self.job_manager, *self.task_managers])

    def _overview(self) -> Any:
        """Return Flink's overview of the cluster; None if Flink does not answer."""
        with suppress(ServerError, ValueError):
            return self.rest("/overview", patience=2)

    def _server(self, name: str, main: str, flags: list[str], **rest: Any) -> Server:
        conf = self.folder / "conf"
        command = [
            java(), *flags, crash_report(self.folder), *_OPENS,
            f"-Dlog4j.configurationFile={(conf / 'log4j.properties').as_uri()}",
            "-cp", f"{flink_jars()}/*", main, "--configDir", str(conf),
        ]  # fmt: skip
        # Beam's operators read the configuration again, from the folder in FLINK_CONF_DIR.
        return Server(name, self.folder, command, environment={"FLINK_CONF_DIR": str(conf)}, **rest)


class JobServer(Server):
    """Beam's job server: it takes pipelines at `address` (--job_endpoint) and gives them to a cluster.

    If it stays up, no job waits for the start of a job server, and jobs survive their launcher. `folder` is
    the folder of the cluster: jobs get the settings of `execution` in its conf/config.yaml.
    """

    def __init__(self, folder: Path, cluster: str, *, port: int | None = None) -> None:
        folder = folder.absolute()
        port = port or free_port()
        jar = closed(job_server_jar(), servers_folder() / "closed")
        command = [
            java(), "-Xmx512m", *_SMALL, crash_report(folder), *_OPENS, "-jar", str(jar),
            "--flink-master", cluster, "--job-host", HOST, "--job-port", str(port), "--artifact-port", "0",
            "--expansion-port", "0", "--artifacts-dir", str(folder / "artifacts"),
        ]  # fmt: skip
        environment = {"FLINK_CONF_DIR": str(folder / "conf")}
        super().__init__(
            "job-server", folder, command, answers=lambda _: listens(port), port=port, environment=environment
        )


class WorkerPool(Server):
    """A pool of Python workers for --environment_type=EXTERNAL --environment_config=`address`.

    Its workers end with it, unless SIGKILL ends it: then the workers continue to serve their jobs.
    """

    def __init__(self, folder: Path, *, port: int | None = None) -> None:
        folder = folder.absolute()
        port = port or free_port()
        command = [str(worker_program(folder)), "--pool", f"{HOST}:{port}"]
        super().__init__("worker-pool", folder, command, answers=lambda _: listens(port), port=port)


def worker_options(folder: Path) -> list[str]:
    """Return Beam's options for workers that the TaskManagers of this machine start and restart."""
    config = json.dumps({"command": str(worker_program(folder))})
    return ["--environment_type=PROCESS", f"--environment_config={config}"]


def worker_program(folder: Path) -> Path:
    """Write a shell script that runs a worker with this Python and its import path; return the script's path.

    The script does what `boot` does in Beam's container images, except that it stages no files.
    """
    program = folder.absolute() / "worker"
    program.parent.mkdir(parents=True, exist_ok=True)
    import_path = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path if entry)
    python = f"PYTHONPATH={shlex.quote(import_path)} exec {shlex.quote(sys.executable)}"
    program.write_text(f'#!/bin/sh\n{python} -m {__package__}.worker "$@"\n')
    program.chmod(0o755)
    return program
