"""The command's jobs on a real Flink cluster, between topics of a real broker."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rocsteady.runners.servers.flink import FlinkCluster, JobServer, worker_options
from rocsteady.runners.servers.kafka import KafkaBroker
from rocsteady.runners.servers.processes import Server

from .processes import COMMAND, ROOT

_POLL = 0.1


def wait_until(condition: Callable[[], Any], what: str, patience: float = 180) -> None:
    """Wait until a condition holds; RuntimeError when it does not in time."""
    until = time.monotonic() + patience
    while not condition():
        if time.monotonic() > until:
            raise RuntimeError(f"{what}: not within {patience:.0f} s")
        time.sleep(_POLL)


@dataclass(frozen=True)
class Package:
    """The package that a job uses: by its launcher's environment, and by Beam's options for its workers."""

    environment: Mapping[str, str]
    workers: Sequence[str]

    @classmethod
    def of_checkout(cls, before: Path | None, scripts: Path) -> Package:
        """Return the package of this checkout, or of the one in the folder `rocsteady` of `before`.

        Raises RuntimeError where a launcher or a worker of the cluster would import another package.
        The checkout's own code writes the script that starts workers; it goes to the folder `scripts`.
        """
        wanted = ROOT if before is None else before / "rocsteady"
        path = [*([] if before is None else [str(before)]), str(ROOT)]  # ROOT has the package `benchmarks`
        path += filter(None, [os.environ.get("PYTHONPATH")])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
        said = _said([sys.executable, "-c", _ASKED, str(scripts.absolute())], env=environment, cwd=ROOT)
        launchers, workers = json.loads(said.splitlines()[-1])
        script = json.loads(workers[-1].partition("=")[2])["command"]
        starts_python = Path(script).read_text().rpartition(" -m ")[0]
        of_workers = _said(["sh", "-c", f"{starts_python} -c 'import rocsteady; print(rocsteady.__file__)'"])
        for who, file in (("a launcher", launchers), ("a worker", of_workers.strip())):
            if Path(file).resolve().parent != wanted.resolve():
                raise RuntimeError(f"{who} imports {file}, not the package in {wanted}: look at PYTHONPATH")
        return cls(environment, workers)


_ASKED = """
import json, pathlib, sys, rocsteady
from rocsteady.runners.servers.flink import worker_options
print(json.dumps([rocsteady.__file__, worker_options(pathlib.Path(sys.argv[1]))]))
"""


def _said(command: Sequence[str], **how: Any) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **how)
    if done.returncode:
        raise RuntimeError(f"{command} failed: {done.stderr[-2000:]}")
    return done.stdout


class Stage:
    """A cluster, its job server and a broker in a folder; workers are started by the TaskManagers.

    settings         Flink's settings by name, beside those of `FlinkCluster`
    cluster, broker  in the place of those that the folder would have
    """

    def __init__(
        self,
        folder: Path,
        *,
        checkpoint_seconds: float = 3,
        slots: int = 2,
        settings: Mapping[str, str | int] | None = None,
        cluster: FlinkCluster | None = None,
        broker: KafkaBroker | None = None,
    ) -> None:
        self.folder = folder
        self.cluster = cluster or FlinkCluster(folder / "flink", slots=slots, settings=settings)
        self.job_server = JobServer(folder / "flink", self.cluster.address)
        self.broker = broker or KafkaBroker(folder / "kafka")
        self._checkpoints = round(checkpoint_seconds * 1_000)
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Stage:
        try:
            for server in (self.broker, self.cluster, self.job_server):
                self._open.enter_context(server)
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def url(self, topic: str) -> str:
        return f"kafka://{self.broker.address}/{topic}"

    def options(self, parallelism: int = 1, package: Package | None = None) -> list[str]:
        """Return the command's options for a job here.

        package  that the workers use [what this process imports]
        """
        workers = worker_options(self.folder) if package is None else package.workers
        return [
            "--runner", "flink", f"--flink_master={self.cluster.address}",
            f"--job_endpoint={self.job_server.address}", f"--checkpointing_interval={self._checkpoints}",
            f"--parallelism={parallelism}", *workers,
        ]  # fmt: skip

    def workers(self) -> list[int]:
        """Return the processes of the Python workers that the TaskManagers have started."""
        sessions = {server.pid for server in self.cluster.task_managers if server.running}
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                said = (entry / "cmdline").read_bytes()
                if b"runners.servers.worker" in said and os.getsid(int(entry.name)) in sessions:
                    found.append(int(entry.name))
        return found

    def task_manager(self) -> Server:
        """Return the TaskManager that runs."""
        return next(server for server in self.cluster.task_managers if server.running)


class ClusterJob:
    """`rocsteady evaluate` as a process of its own, and its job on the cluster.

    package  that the launcher and the workers use [what this process imports]
    """

    def __init__(self, stage: Stage, *words: str, package: Package | None = None) -> None:
        self._stage = stage
        self._words = words
        self._package = package
        self._log = stage.folder / "launcher.log"
        self._launcher: subprocess.Popen[bytes] | None = None
        self.identity = ""

    def start(self, *more: str, parallelism: int = 1) -> None:
        """Launch it and wait until it runs."""
        known = {job.identity for job in self._stage.cluster.jobs()}
        command = [sys.executable, "-c", COMMAND, "evaluate", *self._words]
        with self._log.open("ab") as log:
            self._launcher = subprocess.Popen(
                [*command, *self._stage.options(parallelism, self._package), *more], stdout=log, stderr=log,
                cwd=ROOT, env=None if self._package is None else self._package.environment,
            )  # fmt: skip

        def runs() -> bool:
            assert self._launcher is not None
            if self._launcher.poll() is not None:
                raise RuntimeError(f"the launcher ended: {self._log.read_text()[-3000:]}")
            new = [job for job in self._stage.cluster.jobs() if job.identity not in known]
            if new:
                self.identity = new[0].identity
            return bool(new) and new[0].state == "RUNNING"

        wait_until(runs, "the job runs")

    def state(self) -> str:
        """Return Flink's word for how it is."""
        return next(job.state for job in self._stage.cluster.jobs() if job.identity == self.identity)

    def checkpoints(self) -> int:
        """Return how many checkpoints it has completed."""
        return int(self._stage.cluster.rest(f"/jobs/{self.identity}/checkpoints")["counts"]["completed"])

    def restarts(self) -> int:
        """Return how often it went on from a checkpoint."""
        return int(self._stage.cluster.rest(f"/jobs/{self.identity}/checkpoints")["counts"]["restored"])

    def terminate(self) -> int:
        """Send the launcher SIGTERM and return its exit status."""
        assert self._launcher is not None
        self._launcher.send_signal(signal.SIGTERM)
        return self._launcher.wait(60)

    def forget(self) -> None:
        """Let go of the launcher, as when its job is gone."""
        if self._launcher is not None and self._launcher.poll() is None:
            self._launcher.kill()
        if self._launcher is not None:
            self._launcher.wait()

    def cancel(self) -> None:
        """End it, whatever state it is in."""
        with contextlib.suppress(Exception):
            self._stage.cluster.cancel(self.identity)
        with contextlib.suppress(Exception):
            wait_until(lambda: self.state() in ("CANCELED", "FAILED", "FINISHED"), "the job is cancelled", 30)
        self.forget()
