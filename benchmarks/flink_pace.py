"""How many events a second a job on Flink evaluates, in turns with a job that only reads and counts."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from rocsteady.runners.presets import PRESETS

from .checkouts import commit_of
from .cluster_events import Events, Feed, TopicWatch
from .cluster_jobs import ClusterJob, Package, Stage, wait_until
from .processes import ROOT, processor_time, table

MOST_TOGETHER = 1.3
"""The goal for the TaskManager and its worker together: so many times the goal for Python."""

PRESET = [
    f"--{name}={value}" if value else f"--{name}"
    for name, value in PRESETS["flink"].items()
    if name != "checkpointing_interval"
]
"""What the command adds for Flink; `Stage` says how often a checkpoint is made."""


@dataclass(frozen=True)
class Run:
    """A job over so many events: seconds from when it runs to its last row, and of processors until then."""

    events: int
    clock: float
    java: float
    python: float


@dataclass(frozen=True)
class Pace:
    """Events a second: by the clock, and by processor time of the TaskManager and its Python workers."""

    clock: float
    processor: float
    java: float
    python: float
    """Seconds of processor time for a million events."""

    @classmethod
    def between(cls, short: Run, long: Run) -> Pace:
        """Return the pace of what the long job did beyond the short one: without their beginnings.

        A job reads while its kernels are loaded, and has a backlog then, so rows say little of when it began.
        """
        number = long.events - short.events
        java, python = long.java - short.java, long.python - short.python
        return cls(
            number / (long.clock - short.clock), number / (java + python), java / number * 1e6,
            python / number * 1e6,
        )  # fmt: skip


class Processors:
    """Processor time of the TaskManager and its workers, those that ended too, looked at twice a second."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._seen: list[tuple[float, float, float]] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def until(self, began: float, end: float) -> tuple[float, float]:
        """Return seconds of Java and of Python from one moment to another."""
        at, java, python = np.array(self._seen).T
        return tuple(float(np.interp(end, at, each) - np.interp(began, at, each)) for each in (java, python))

    def _run(self) -> None:
        of_worker: dict[int, float] = {}
        while not self._stopped.wait(0.5):
            java = processor_time(self._stage.task_manager().pid or 0)
            for pid in self._stage.workers():
                of_worker[pid] = max(processor_time(pid), of_worker.get(pid, 0.0))
            self._seen.append((time.monotonic(), java, sum(of_worker.values())))


def fill(stage: Stage, topic: str, events: Events) -> None:
    """Write all events to a new topic."""
    stage.broker.create_topic(topic, partitions=events.partitions)
    feed = Feed(stage.broker.address, topic, events, at_once=10**9, rate=1)
    feed.start()
    feed.join()


def evaluated(stage: Stage, topic: str, events: Events, turn: str, package: Package) -> Run:
    """Evaluate a topic that is filled, in a turn with a name of its own."""
    rows = f"rows-{topic}-{turn}"
    stage.broker.create_topic(rows)
    watch = TopicWatch(stage.broker.address, rows)
    processors = Processors(stage)
    words = [*events.options(), "--shards", "8", "--output", stage.url(rows)]
    job = ClusterJob(stage, stage.url(topic), *words, package=package)
    try:
        watch.start()
        job.start()
        began = time.monotonic()
        wait_until(lambda: watch.new >= events.rows, "all rows come", 900)
        time.sleep(1)  # for the last look at the processors
    finally:
        job.cancel()
        watch.stop()
        processors.stop()
    end = watch.times[-1]
    return Run(events.number, end - began, *processors.until(began, end))


def counted(stage: Stage, topic: str, events: Events, turn: str, package: Package) -> Run:
    """Read a topic that is filled by the package's reader, and count, in a turn with a name of its own.

    The pipeline and its options for Flink are those of this checkout.
    """
    counts = f"counts-{topic}-{turn}"
    stage.broker.create_topic(counts)
    consumer = Consumer({"bootstrap.servers": stage.broker.address, "group.id": "count", "log_level": 0})
    consumer.assign([TopicPartition(counts, 0, OFFSET_BEGINNING)])
    processors = Processors(stage)
    module = [sys.executable, "-m", "benchmarks.cluster_count", stage.url(topic), stage.url(counts)]
    known = {job.identity for job in stage.cluster.jobs()}
    options = [word for word in stage.options(package=package) if word not in ("--runner", "flink")]
    log = (stage.folder / "count.log").open("ab")
    launcher = subprocess.Popen(
        [*module, "--runner=FlinkRunner", *options, *PRESET], cwd=ROOT, env=package.environment, stdout=log,
        stderr=log,
    )  # fmt: skip

    def runs() -> bool:
        if launcher.poll() is not None:
            raise RuntimeError(f"the launcher of the count ended: see {log.name}")
        return any(job.identity not in known and job.state == "RUNNING" for job in stage.cluster.jobs())

    parts: dict[int, int] = {}
    try:
        wait_until(runs, "the count runs")
        began = end = time.monotonic()
        while sum(parts.values()) < events.number + events.partitions:
            if time.monotonic() > began + 900:
                raise RuntimeError(f"the count does not come: see {log.name}")
            for message in consumer.consume(1_000, 0.1):
                if message.error() is None:
                    number, total = json.loads(message.value())
                    parts[number] = total
                    end = time.monotonic()
        time.sleep(1)
    finally:
        for job in stage.cluster.jobs():
            if job.identity not in known:
                stage.cluster.cancel(job.identity)
        launcher.kill()
        launcher.wait()
        log.close()
        consumer.close()
        processors.stop()
    return Run(events.number, end - began, *processors.until(began, end))


Job = Callable[[Stage, str, Events, str, Package], Run]
Paces = dict[tuple[Job, str], list[Pace]]
"""The paces of all turns, by job and by package: "now" or "before"."""


def pace_section(stage: Stage, turns: int, numbers: tuple[int, int], before: Path | None) -> Iterator[str]:
    """Yield the table of paces, and sentences on them.

    numbers  events of the short and the long job
    before   a folder with another checkout: each job also runs with its package, in turns
    """
    packages = {"now": Package.of_checkout(None, stage.folder / "now")}
    if before is not None:
        packages["before"] = Package.of_checkout(before, stage.folder / "before")
        yield _wrapped(
            f"Before: commit {commit_of(before)}. Each job ran in this cluster with both packages, in turns. "
            "*Only read and count* is one pipeline with the reader of each package. Processes like a "
            "launcher and a worker said beforehand from which folder they import each package."
        )
    rows, sentences = [], []
    for models, every, goal in ((10, 1_000, 4.5), (1_000, 100, 7.0)):
        of_one = models * every
        sizes = (Events(number // of_one * of_one, models, 2, every) for number in numbers)
        paces = in_turns(stage, turns, {f"events-{models}-{each.number}": each for each in sizes}, packages)
        rows += _lines(f"{models:,} models", goal, paces)
        sentences.append(_wrapped(_sentence(f"{models:,} models", paces)))
    head = [
        "", "events/s by the clock", "events/s of processor time", "Python, s per million", "asked of Python",
        "Java, s per million", "both, s per million", "asked of both",
    ]  # fmt: skip
    yield table(head, rows)
    yield "".join(sentences)


def in_turns(
    stage: Stage, turns: int, topics: Mapping[str, Events], packages: Mapping[str, Package]
) -> Paces:
    """Fill two topics, for a short and a long job; return the paces of both jobs with each package."""
    for topic, events in topics.items():
        fill(stage, topic, events)
    paces: Paces = defaultdict(list)
    for turn in range(turns):
        for job in (evaluated, counted):
            for which, package in packages.items():
                short, long = (
                    job(stage, topic, events, f"{turn}-{which}", package) for topic, events in topics.items()
                )
                pace = Pace.between(short, long)
                paces[job, which].append(pace)
                print(*topics, job.__name__, which, short, long, pace, sep="\n  ", flush=True)
    return paces


def _lines(what: str, goal: float, paces: Paces) -> Iterator[list[str]]:
    """Yield the lines of the table for so many models; `goal` is that for Python, in seconds per million."""
    for (job, which), of_turns in paces.items():
        pace = _middle(of_turns)
        title, goals = "only read and count", ("", "")
        if job is evaluated:
            title, goals = what, (f"{goal:.2f}", f"{goal * MOST_TOGETHER:.2f}")
        yield [
            title if which == "now" else f"{title}, {which}", f"{pace.clock:,.0f}", f"{pace.processor:,.0f}",
            f"{pace.python:.2f}", goals[0], f"{pace.java:.2f}", f"{pace.python + pace.java:.2f}", goals[1],
        ]  # fmt: skip


def _sentence(what: str, paces: Paces) -> str:
    """Return what the paces of so many models say, in words."""
    whole, reading = (_middle(paces[job, "now"]).python for job in (evaluated, counted))
    found = f"- {what}: Python takes {whole:.2f} s for a million events"
    found += f", and {reading:.2f} s where the job only reads and counts."
    if (evaluated, "before") in paces:
        both = zip(paces[evaluated, "now"], paces[evaluated, "before"], strict=True)
        ratio = median(then.processor / now.processor for now, then in both)
        found += f" The job takes {ratio:.2f} times the processor time of before."
    return found


def _middle(paces: Sequence[Pace]) -> Pace:
    """Return the pace of the turn whose processor time is the median."""
    return sorted(paces, key=lambda pace: pace.processor)[len(paces) // 2]


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 110, subsequent_indent="  " if text.startswith("- ") else "") + "\n"
