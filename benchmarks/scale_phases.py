"""The phases of a long run, one after the other. A phase begins with the state that the phase before left.

A phase that was interrupted is done again, from the savepoint or export of the phase before. Rows that it
wrote already come again, with the same identity, and count once.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rocsteady.runners.servers.flink import FlinkCluster
from rocsteady.runners.servers.kafka import KafkaBroker
from rocsteady.runners.servers.processes import ServerError, free_port, recorded, stop_recorded

from .cluster_jobs import ClusterJob, Stage, wait_until
from .processes import COMMAND, run
from .scale_events import Crowd, Filling, written_to
from .scale_rows import compare
from .scale_samples import Pace, Sample, Samples

EVENTS, ROWS = "events", "rows"
READ = {"pace": 0.2, "worker": 0.35, "task-manager": 0.5, "rescale": 0.7, "finish": 1.0}
"""The share of all events that are read when a phase ends."""

WINDOW = 100
"""Events in a model's window."""
CHECKPOINT_SECONDS = 10
HEAP = 512
"""Megabytes of heap of a TaskManager."""
MANAGED = 384
"""Megabytes of a TaskManager for RocksDB."""

_SETTLING = 0.05
"""The share of all events after which a job that was started is measured: kernels and shards are loaded."""

_TABLE_MODELS = 20_000

_TOLD_SECONDS = 3
"""Seconds after which the cluster has told what a killed process read before its end."""

_PATIENCE = 1_800
_STILL = 600
"""Seconds without an event after which a job counts as stuck."""

Figures = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What is run: events, `--every`, shards before and after the import, models whose rows are compared."""

    crowd: Crowd
    every: int
    shards: int
    new_shards: int
    drawn: int
    cache_bytes: int

    def options(self) -> list[str]:
        """Return the command's options for the events, on any runner."""
        return [
            "--time", "time", "--time-unit", "us", "--window", f"last:{WINDOW}", "--every", str(self.every),
            "--order", "time:0s",
        ]  # fmt: skip


class LongRun:
    """A run in a folder: its servers, and what its phases need of each other."""

    def __init__(self, folder: Path, plan: Plan, done: dict[str, Figures], ports: tuple[int, int]) -> None:
        self.folder, self.plan, self.done = folder, plan, done
        flink, kafka = ports
        cluster = FlinkCluster(
            folder / "flink", port=flink, task_managers=2, slots=1,
            settings={
                "state.backend.incremental": "true",
                "metrics.fetcher.update-interval": 1_000,
                "taskmanager.memory.task.heap.size": f"{HEAP}m",
                "taskmanager.memory.managed.size": f"{MANAGED}m",
                "execution.checkpointing.timeout": "30 min",
            },
        )  # fmt: skip
        broker = KafkaBroker(folder / "kafka", port=kafka)
        self.stage = Stage(folder, checkpoint_seconds=CHECKPOINT_SECONDS, cluster=cluster, broker=broker)

    @contextlib.contextmanager
    def servers(self) -> Iterator[None]:
        """Run the servers; those that an earlier run left behind are stopped first."""
        for place in (self.folder / "flink", self.folder / "kafka"):
            for server in recorded(place) if place.exists() else []:
                stop_recorded(place, server)
        for name in ("checkpoints", "tmp"):
            shutil.rmtree(self.folder / "flink" / name, ignore_errors=True)
        with self.stage:
            yield

    def control(self) -> Path:
        return self.folder / "ask.json"

    def share(self, part: float) -> int:
        """Return a part of all events."""
        return round(self.plan.crowd.number * part)

    @contextlib.contextmanager
    def job(self, *more: str, shards: int, parallelism: int = 1) -> Iterator[Running]:
        """Start a job, and look at it; a job that is not stopped is cancelled."""
        stage, plan = self.stage, self.plan
        self.start_what_ended()
        job = ClusterJob(
            stage, stage.url(EVENTS), *plan.options(), "--shards", str(shards),
            "--cache-bytes", str(plan.cache_bytes), "--control", str(self.control()),
            "--output", stage.url(ROWS),
        )  # fmt: skip
        began = time.monotonic()
        try:
            job.start(*more, parallelism=parallelism)
            with Samples(stage, job, plan.crowd.partitions) as samples:
                yield Running(self, job, samples, began)
        finally:
            job.cancel()

    def start_what_ended(self) -> None:
        """Start the TaskManagers that ended."""
        cluster = self.stage.cluster
        for ended in [each for each in cluster.task_managers if not each.running]:
            cluster.task_managers.remove(ended)
            cluster.start_task_manager(ended.name)


class Running:
    """A job that runs."""

    def __init__(self, of: LongRun, job: ClusterJob, samples: Samples, began: float) -> None:
        self._of, self._job, self.samples, self._began = of, job, samples, began

    def read(self, events: int) -> None:
        """Wait until so many events are read. Raises RuntimeError where the job fails or stands still."""
        seen, since = self.samples.events, time.monotonic()
        while (now := self.samples.events) < events:
            if now != seen:
                seen, since = now, time.monotonic()
            state = "of unknown state"
            with contextlib.suppress(ServerError):
                state = self._job.state()
            if state in ("FAILED", "CANCELED", "FINISHED"):
                raise RuntimeError(f"the job is {state}: see the logs in {self._of.folder}")
            if not self._of.stage.broker.running:
                raise RuntimeError(f"the broker ended: see {self._of.stage.broker.log}")
            if time.monotonic() - since > _STILL:
                raise RuntimeError(f"no event was read for {_STILL} s: see the logs in {self._of.folder}")
            time.sleep(0.5)

    def first_events(self) -> Figures:
        """Return the seconds from the launch to the first events that are read, by clock and processor."""
        whole = self._of.plan.crowd.number + self._of.plan.crowd.partitions

        def begun() -> list[Sample]:
            said = self.samples.said()
            return [each for each in said if each.events > said[0].events or each.events == whole]

        wait_until(begun, "events are read", _STILL)
        return {
            "resume_seconds": begun()[0].at - self._began,
            "resume_python_seconds": begun()[0].python_seconds,
        }

    def pace(self, since: float) -> Pace:
        """Return the pace from a moment on; of the whole job where nothing was read since."""
        said = self.samples.said(since)
        if not said or said[0].events == said[-1].events:
            said = self.samples.said()
        return Pace.between(said[0], said[-1])

    def recovered(self, strike: Callable[[], None]) -> float:
        """Do something to the job; return the seconds until it is further than it was."""
        restarts, checkpoints = self._job.restarts(), self._job.checkpoints()
        wait_until(lambda: self._job.checkpoints() > checkpoints, "a checkpoint comes", _PATIENCE)
        began = time.monotonic()
        strike()
        wait_until(lambda: self._job.restarts() > restarts, "the job restarts", _PATIENCE)
        time.sleep(_TOLD_SECONDS)
        reached = max(each.events for each in self.samples.taken)
        checkpoints = self._job.checkpoints()
        self.read(min(reached + 1, self._of.plan.crowd.number))
        seconds = time.monotonic() - began
        wait_until(lambda: self._job.checkpoints() > checkpoints, "a checkpoint comes", _PATIENCE)
        return seconds

    def checkpoints(self) -> Figures:
        """Return what the checkpoints so far took."""
        found = self._of.stage.cluster.rest(f"/jobs/{self._job.identity}/checkpoints")
        done = [each for each in found["history"] if each["status"] == "COMPLETED"]
        done = [each for each in done if not each["is_savepoint"]]
        return {
            "checkpoints": found["counts"]["completed"],
            "checkpoint_seconds": max((each["end_to_end_duration"] for each in done), default=0) / 1e3,
            "checkpoint_bytes": max((each["state_size"] for each in done), default=0),
            "checkpoint_new_bytes": max((each["checkpointed_size"] for each in done), default=0),
        }

    def stop(self) -> Figures:
        """Stop the job with a savepoint; return the savepoint's place, its size, and what the job took."""
        figures, began = self.checkpoints(), time.monotonic()
        cluster = self._of.stage.cluster
        savepoint = cluster.savepoint(self._job.identity, stop=True, patience=_PATIENCE)
        seconds = time.monotonic() - began
        wait_until(lambda: self._job.state() == "FINISHED", "the job is stopped")
        python, java = self.samples.peak()
        return {
            **figures,
            "savepoint": savepoint,
            "savepoint_seconds": seconds,
            "savepoint_bytes": folder_bytes(Path(savepoint.removeprefix("file:"))),
            "events": self.samples.events,
            "python_bytes": python,
            "java_bytes": java,
        }


def folder_bytes(folder: Path) -> int:
    """Return the bytes of all files in a folder, those in its folders too."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _paced(pace: Pace) -> Figures:
    return {"rate": pace.rate, "python_seconds": pace.python, "java_seconds": pace.java}


def measure_table(of: LongRun) -> Figures:
    """Measure what a model takes, with some models that have as many events as those of the run."""
    crowd = of.plan.crowd
    models = min(crowd.models, _TABLE_MODELS)
    words = map(str, (models, models * crowd.number // crowd.models, of.plan.every))
    return run(sys.executable, "-m", "benchmarks.scale_table", *words).said


def fill(of: LongRun) -> Figures:
    """Write all events to a topic."""
    broker, crowd = of.stage.broker, of.plan.crowd
    for topic, partitions in ((EVENTS, crowd.partitions), (ROWS, 1)):
        with contextlib.suppress(ServerError):  # it is there
            broker.create_topic(topic, partitions=partitions)
    filling, began = Filling(broker.address, EVENTS, crowd), time.monotonic()
    written = filling.left()
    filling.run()
    seconds = time.monotonic() - began
    segments = (of.folder / "kafka" / "data").glob(f"{EVENTS}-*/*.log")
    size = sum(path.stat().st_size for path in segments)
    return {"events": written, "rate": written / seconds, "topic_bytes": size}


def pace(of: LongRun) -> Figures:
    """Read a fifth of all events, undisturbed, and stop with a savepoint."""
    with of.job(shards=of.plan.shards) as running:
        running.read(of.share(_SETTLING))
        since = time.monotonic()
        running.read(of.share(READ["pace"]))
        found = running.pace(since)
        start = running.samples.said()[0].python
        return {**_paced(found), "python_start_bytes": start, **running.stop()}


def _resumed(of: LongRun, phase: str) -> str:
    return f"--savepoint_path={of.done[phase]['savepoint']}"


def worker(of: LongRun) -> Figures:
    """Resume, kill the Python worker, and stop with a savepoint."""
    with of.job(_resumed(of, "pace"), shards=of.plan.shards) as running:
        first = running.first_events()
        seconds = running.recovered(lambda: [os.kill(each, signal.SIGKILL) for each in of.stage.workers()])
        running.read(of.share(READ["worker"]))
        return {**first, "recovery_seconds": seconds, **running.stop()}


def task_manager(of: LongRun) -> Figures:
    """Resume, kill the TaskManager of the job, start it anew, and stop with a savepoint."""
    with of.job(_resumed(of, "worker"), shards=of.plan.shards) as running:
        first = running.first_events()

        def strike() -> None:
            sessions = {os.getsid(each) for each in of.stage.workers()}
            next(each for each in of.stage.cluster.task_managers if each.pid in sessions).kill()
            of.start_what_ended()

        seconds = running.recovered(strike)
        running.read(of.share(READ["task-manager"]))
        return {**first, "recovery_seconds": seconds, **running.stop()}


def rescale(of: LongRun) -> Figures:
    """Resume with parallelism 2, export the state of the running job, and stop it."""
    state = of.folder / "state"
    shutil.rmtree(state, ignore_errors=True)
    of.control().unlink(missing_ok=True)
    with of.job(_resumed(of, "task-manager"), shards=of.plan.shards, parallelism=2) as running:
        first = running.first_events()
        running.read(of.share(READ["task-manager"] + _SETTLING))
        since = time.monotonic()
        running.read(of.share(READ["rescale"]))
        found = running.pace(since)
        words = ["--control", str(of.control()), "--output", str(state), "--timeout", "600s"]
        export = run(sys.executable, "-c", COMMAND, "state", "export", *words)
        return {
            **first, **_paced(found), "export_seconds": export.wall,
            "export_bytes": folder_bytes(state), **running.stop(),
        }  # fmt: skip


def spread(of: LongRun) -> Figures:
    """Spread the export over other shards."""
    state = of.folder / "state-spread"
    shutil.rmtree(state, ignore_errors=True)
    words = [str(of.folder / "state"), "--shards", str(of.plan.new_shards), "--output", str(state)]
    done = run(sys.executable, "-c", COMMAND, "state", "import", *words)
    return {"seconds": done.wall, "bytes": folder_bytes(state), "python_bytes": round(done.megabytes * 1e6)}


def finish(of: LongRun) -> Figures:
    """Begin a job of other shards with the export, read all events, and stop with a savepoint."""
    words = f"--import-state={of.folder / 'state-spread'}"
    with of.job(words, shards=of.plan.new_shards, parallelism=2) as running:
        first = running.first_events()
        running.read(of.share(READ["rescale"] + 2 * _SETTLING))
        since = time.monotonic()
        running.read(of.plan.crowd.number)
        found = running.pace(since)
        running.read(of.plan.crowd.number + of.plan.crowd.partitions)
        return {**first, **_paced(found), **running.stop()}


def compared(of: LongRun) -> Figures:
    """Compare the rows with those that are due, and with those of the local runner."""
    plan, address = of.plan, of.stage.broker.address
    if sum(written_to(address, EVENTS, plan.crowd.partitions)) != plan.crowd.number + plan.crowd.partitions:
        raise RuntimeError(f"the topic {EVENTS} does not hold the events: remove {of.folder}")
    return compare(address, ROWS, plan.crowd, plan.every, plan.options(), plan.drawn, of.folder).figures()


PHASES: dict[str, Callable[[LongRun], Figures]] = {
    "table": measure_table,
    "fill": fill,
    "pace": pace,
    "worker": worker,
    "task-manager": task_manager,
    "rescale": rescale,
    "import": spread,
    "finish": finish,
    "compare": compared,
}
"""What is done, in this order."""


def drop_older_savepoints(of: LongRun, phase: str) -> None:
    """Remove all savepoints but that of `phase`: later phases do not begin with them."""
    for name, figures in of.done.items():
        if name != phase and "savepoint" in figures:
            shutil.rmtree(figures["savepoint"].removeprefix("file:"), ignore_errors=True)


def chosen_ports() -> tuple[int, int]:
    """Return ports for Flink's REST and for the broker."""
    return free_port(), free_port()
