"""Settings of Flink, tried on a real cluster: python -m benchmarks.advice [--only NAME ...].

Each trial starts a cluster with its settings, and a job. The table says what was set, what was done to the
job, and what became of it. All trials take half an hour.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rocsteady.runners.servers.flink import FlinkCluster, JobServer

from .cluster_events import Events, Feed, TopicWatch
from .cluster_jobs import ClusterJob, Stage, wait_until
from .large_shards import flink_options, outputs_in, run_blob
from .processes import table

_ENDED = ("FAILED", "FINISHED", "CANCELED")
_TASK = "taskmanager.memory.task"
_FRAMEWORK = "taskmanager.memory.framework"
Settings = Mapping[str, str | int]


@contextlib.contextmanager
def running(
    stage: Stage, events: Events, *, at_once: int, rate: float
) -> Iterator[tuple[ClusterJob, TopicWatch]]:
    """Have a job in the middle of its work; yield the job, and the watch of its rows."""
    topics = [f"{kind}-{time.time():.0f}" for kind in ("events", "rows")]
    for topic, partitions in zip(topics, (events.partitions, 1), strict=True):
        stage.broker.create_topic(topic, partitions=partitions)
    feed = Feed(stage.broker.address, topics[0], events, at_once=at_once, rate=rate)
    watch = TopicWatch(stage.broker.address, topics[1])
    job = ClusterJob(
        stage, stage.url(topics[0]), *events.options(), "--shards", "8", "--output",
        stage.url(topics[1]),
    )  # fmt: skip
    try:
        feed.start()
        feed.go_on()
        watch.start()
        job.start()
        yield job, watch
    finally:
        feed.stop()
        job.cancel()
        watch.stop()


def last_words(cluster: FlinkCluster, job: str) -> str:
    """Return the causes that Flink names for the job's last failure, in a line; empty without a failure."""
    said = cluster.rest(f"/jobs/{job}/exceptions").get("root-exception") or ""
    words = []
    for line in said.splitlines():
        text = line.removeprefix("Caused by: ").strip()
        if text and not text.startswith(("at ", "... ")):
            words.append(text.rpartition("Exception: ")[2][:200])
    return " / ".join(dict.fromkeys(words))


def silence(job: ClusterJob, watch: TopicWatch, do: Callable[[], object]) -> float | None:
    """Do something that makes a job restart; return the seconds without rows, None where the job ends."""
    began, before = time.monotonic(), job.restarts()
    do()
    wait_until(lambda: job.restarts() > before or job.state() in _ENDED, "a restart", 400)
    seen = watch.new
    wait_until(lambda: watch.new > seen or job.state() in _ENDED, "rows", 400)
    return watch.times[seen] - began if watch.new > seen else None


def kill_workers(folder: Path, settings: Settings, number: int) -> str:
    """Kill the Python worker so often, each time when rows have come again."""
    silences: list[str] = []
    with (
        Stage(folder, settings=settings) as stage,
        running(stage, Events(400_000), at_once=8_000, rate=500) as (job, watch),
    ):
        wait_until(lambda: watch.new and job.checkpoints(), "rows and a checkpoint")
        for _ in range(number):
            found = silence(job, watch, lambda: [os.kill(pid, signal.SIGKILL) for pid in stage.workers()])
            if found is None:
                words = last_words(stage.cluster, job.identity)
                return f"{job.state()} at kill {len(silences) + 1} ({', '.join(silences)} s): {words}"
            silences.append(f"{found:.0f}")
            time.sleep(2)
        return f"{job.state()}; without rows for {', '.join(silences)} s"


def kill_task_manager(folder: Path, settings: Settings, wait: float) -> str:
    """Kill the TaskManager, and start another one so many seconds later."""
    with (
        Stage(folder, settings=settings) as stage,
        running(stage, Events(400_000), at_once=8_000, rate=500) as (job, watch),
    ):
        wait_until(lambda: watch.new and job.checkpoints(), "rows and a checkpoint")
        began = time.monotonic()
        stage.task_manager().kill()
        while (left := wait - (time.monotonic() - began)) > 0:
            if job.state() in _ENDED:
                words = last_words(stage.cluster, job.identity)
                return f"{job.state()} {time.monotonic() - began:.0f} s after the kill: {words}"
            time.sleep(min(left, 0.2))
        seen = watch.new
        stage.cluster.add_task_manager()
        wait_until(lambda: watch.new > seen, "rows")
        return f"{job.state()}; rows {watch.times[seen] - began:.0f} s after the kill"


def large_shard(folder: Path, settings: Settings, megabytes: int, *more: str, outputs: int = 8) -> str:
    """Read and write a shard so often, each second, and see how long that takes, or which error comes."""
    path = folder / "outputs"
    with FlinkCluster(folder, settings=settings) as cluster, JobServer(folder, cluster.address) as jobs:
        began = time.monotonic()
        run_blob([*flink_options(jobs), *more], path, megabytes * 1_000_000, every=2)
        wait_until(cluster.jobs, "a job")
        job = cluster.jobs()[0].identity
        until = began + 150
        while len(outputs_in(path)) < outputs and time.monotonic() < until:
            time.sleep(0.5)
            if cluster.jobs()[0].state in _ENDED or not cluster.task_managers[0].running:
                break
        wait_until(lambda: cluster.jobs()[0].state != "INITIALIZING", "the job leaves its restart")
        seen = cluster.rest(f"/jobs/{job}/checkpoints")
        counts, failed = seen["counts"], seen["latest"]["failed"]
        took = time.monotonic() - began
        told = (
            f"{len(outputs_in(path))} outputs in {took:.0f} s, {cluster.jobs()[0].state}, checkpoints: "
            f"{counts['completed']} completed, {counts['failed']} failed; {counts['restored']} restarts"
        )
        if failed is not None:
            told += f", the last checkpoint that failed: {failed['failure_message'].splitlines()[0][:200]}"
        errors = re.findall(r"OutOfMemoryError: (.*)", cluster.task_managers[0].said())
        if errors:
            told += f", OutOfMemoryError in the log {len(errors)} times ({errors[0][:200]})"
        if not cluster.task_managers[0].running:
            told += ", the TaskManager ended"
        words = last_words(cluster, job)
        with contextlib.suppress(Exception):
            cluster.savepoint(job, stop=True, patience=60)
    return f"{told}: {words}" if words else told


@dataclass(frozen=True)
class Trial:
    """What is set, what is done, and the function that does it in a folder and tells what it saw."""

    setting: str
    done: str
    run: Callable[[Path], str]


def _strategy(settings: Settings) -> dict[str, str | int]:
    return {
        f"restart-strategy.{name.replace('__', '.').replace('_', '-')}": value
        for name, value in settings.items()
    }


def _words(settings: Settings, more: Sequence[str] = ()) -> str:
    return ", ".join([*(f"`{key}: {value}`" for key, value in settings.items()), *(f"`{w}`" for w in more)])


def _kills(number: int, **settings: str | int) -> Trial:
    given = _strategy(settings)
    return Trial(
        _words(given), f"{number} kills of the Python worker", lambda it: kill_workers(it, given, number)
    )


def _lost(wait: float, **settings: str | int) -> Trial:
    # A JobManager lets jobs wait for slots in its first 5 minutes; the trial is about an older JobManager.
    given = {"resourcemanager.standalone.start-up-time": 1_000, **_strategy(settings)}
    return Trial(
        _words(given),
        f"kill -9 of the TaskManager, another one {wait:.0f} s later",
        lambda it: kill_task_manager(it, given, wait),
    )


def _memory(megabytes: int, *more: str, **settings: str) -> Trial:
    names = {
        "managed": ["taskmanager.memory.managed.size"],
        "heap": [f"{_TASK}.heap.size"],
        "direct": [f"{_TASK}.off-heap.size"],
        "framework": [f"{_FRAMEWORK}.off-heap.size"],
        "network": ["taskmanager.memory.network.min", "taskmanager.memory.network.max"],
        "tolerable": ["execution.checkpointing.tolerable-failed-checkpoints"],
        "incremental": ["state.backend.incremental"],
    }
    given = {key: value for name, value in settings.items() for key in names[name]}
    return Trial(
        _words(given, more),
        f"a shard of {megabytes} MB",
        lambda it: large_shard(it, given, megabytes, *more),
    )


TRIALS: dict[str, Trial] = {
    "restart-none": _kills(1, type="none"),
    "restart-fixed": _kills(4, type="fixed-delay", fixed_delay__attempts=3, fixed_delay__delay="1 s"),
    "restart-rate": _kills(
        10,
        type="failure-rate",
        failure_rate__max_failures_per_interval=3,
        failure_rate__failure_rate_interval="1 min",
        failure_rate__delay="1 s",
    ),
    "restart-exponential": _kills(10, type="exponential-delay"),
    "lost-fixed": _lost(45, type="fixed-delay", fixed_delay__attempts=10, fixed_delay__delay="1 s"),
    "lost-exponential": _lost(45, type="exponential-delay"),
    "managed-192": _memory(80, heap="512m", managed="192m"),
    "managed-8": _memory(80, heap="512m", managed="8m"),
    "managed-0": _memory(80, heap="512m", managed="0m"),
    "direct-32": _memory(160, heap="640m", framework="32m", direct="0m"),
    "direct-8": _memory(160, heap="640m", framework="8m", direct="0m", network="64m"),
    "direct-1": _memory(160, heap="640m", framework="1m", direct="0m", network="32m"),
    "heap": _memory(80, heap="64m"),
    "timeout": _memory(80, "--checkpoint_timeout_millis=300", heap="512m"),
    "timeout-tolerated": _memory(80, "--checkpoint_timeout_millis=300", heap="512m", tolerable="1000"),
}


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", choices=TRIALS, metavar="NAME", help=f"of {', '.join(TRIALS)} [all]"
    )
    options = parser.parse_args(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the servers are stopped then, too
    lines = []
    for name in options.only or TRIALS:
        trial = TRIALS[name]
        with tempfile.TemporaryDirectory(prefix="rocsteady-advice-") as folder:
            try:
                seen = trial.run(Path(folder))
            except RuntimeError as failure:
                seen = str(failure)
        lines.append([trial.setting, trial.done, seen.replace("|", "/")])
        print(f"{name}: {' | '.join(lines[-1])}", flush=True)
    print(table(["set", "done", "seen"], lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
