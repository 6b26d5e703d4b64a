"""What befalls a job in production, done to one on real servers: python -m benchmarks.faults [--only NAME].

A Flink session cluster and a Kafka broker run on this machine; a generator writes events of two days to a
topic, `rocsteady evaluate` reads them in order of their times and writes rows to another, and in the middle
of it something breaks. In the end the rows, repeats dropped by their identity, must be those of the local
runner over the same events in a file. The table goes to docs/benchmarks/faults.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from . import large_shards
from .cluster_events import Events, Feed, FolderWatch, TopicWatch, Watch, differences, letters_in, sorted_rows
from .cluster_jobs import ClusterJob, Stage, wait_until
from .pages import with_commit
from .processes import ROOT, table

SHARE_AT_ONCE, RATE = 0.25, 4_000
"""Of the events, those that come when the job begins; and events a second after that."""

POISONS = (b"", b"{", b'{"model": "m0000", "score": "high", "label": 1}', b"\xff\xfe", b"[1, 2", b"null")


INTRODUCTION = """# Faults

`python -m benchmarks.faults` wrote this page. Processes are killed, a broker stops, a disk is full: does the
job lose an event, or make a wrong row?

The processes are real: a Flink 1.19 session cluster and a Kafka broker. The cluster has one TaskManager and
makes a checkpoint every 3 s. It gives a process up after 8 s without a heartbeat. The job is
`rocsteady evaluate kafka://... --time time --window last:1000 --every 100 --runner flink`, and writes rows
and dead letters to topics.

- **Events.** 160,000 events of 20 models over two days, in four partitions. 40,000 of them are there at the
  start. The others come at 4,000 a second. The fault happens in the middle of them, after a checkpoint.
- **Longest silence.** The longest time without a new row, from the fault on.
- **Rows equal.** The rows are compared, in every column, with the rows of the local runner over the same
  events in a file. Repeats are dropped by their identity first, as `rs.read_rows` does.
- **Lost, wrong.** Lost are rows that are missing, and wrong are rows that differ or should not be there.
- **The disk** is a small one that is mounted for the trial, which only root can do.

[Run it for months](../how-to/operations.md) says what to set and to watch, so that a job goes on in this way.

"""


@dataclass
class Scene:
    """A job in the middle of its work, to which something is done: `began` is when. It makes `rows`."""

    stage: Stage
    job: ClusterJob
    feed: Feed
    watch: Watch
    folder: Path
    rows: int
    began: float = 0.0
    notes: list[str] = field(default_factory=list)

    def strike(self) -> None:
        """Note that it is done now."""
        self.began = time.monotonic()


@contextlib.contextmanager
def _restarted(job: ClusterJob) -> Iterator[None]:
    """Wait until what is done has made the job restart from a checkpoint."""
    before = job.restarts()
    yield
    wait_until(lambda: job.restarts() > before, "the job restarts")


def _kill_worker(scene: Scene) -> None:
    (worker, *_) = scene.stage.workers()
    scene.strike()
    with _restarted(scene.job):
        os.kill(worker, signal.SIGKILL)


def _kill_task_manager(scene: Scene) -> None:
    killed = scene.stage.task_manager()
    scene.strike()
    with _restarted(scene.job):
        killed.kill()
        scene.stage.cluster.add_task_manager()


def _restart_job_manager(scene: Scene) -> None:
    cluster = scene.stage.cluster
    savepoint = cluster.savepoint(scene.job.identity)
    seen = scene.watch.new
    behind = min(seen + 100, scene.rows)
    wait_until(lambda: scene.watch.new >= behind, "rows come behind the savepoint")
    scene.strike()
    cluster.job_manager.kill()
    scene.job.forget()
    cluster.job_manager.start()
    cluster.wait_for_slots(2)
    scene.job.start(f"--savepoint_path={savepoint}")


def _stop_and_resume(scene: Scene, parallelism: int = 1) -> None:
    scene.strike()
    savepoint = scene.stage.cluster.savepoint(scene.job.identity, stop=True)
    wait_until(lambda: scene.job.state() == "FINISHED", "the job is stopped")
    scene.job.forget()
    scene.job.start(f"--savepoint_path={savepoint}", parallelism=parallelism)


def _stop_and_resume_on_two(scene: Scene) -> None:
    _stop_and_resume(scene, parallelism=2)


def _stop_broker(scene: Scene) -> None:
    scene.strike()
    scene.stage.broker.stop()
    time.sleep(30)
    scene.stage.broker.start()


def _terminate_launcher(scene: Scene) -> None:
    scene.strike()
    status = scene.job.terminate()
    scene.notes.append(f"the launcher ended with status {status}, and the job went on")


def _fill_disk(scene: Scene) -> None:
    ballast = scene.folder / "disk" / "ballast"
    scene.strike()
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(1 << 12)):
            pass
    time.sleep(10)
    ballast.unlink()


def _nothing(scene: Scene) -> None:
    scene.strike()


class Before(Protocol):
    """Changes what is written to the topic."""

    def __call__(self, place: int, partition: int, record: bytes) -> Sequence[tuple[int, bytes]]:
        """Return what (partition, record) becomes, once or more often."""

    def told(self) -> str:
        """Say what it did."""


class Redelivery:
    """Gives the last 500 records of a partition once more, after each 5,000 of the topic."""

    def __init__(self) -> None:
        self._last: dict[int, list[bytes]] = {}
        self._again = 0

    def told(self) -> str:
        return f"{self._again:,} records came twice, `--deduplicate 1d --order time:6h`"

    def __call__(self, place: int, partition: int, record: bytes) -> list[tuple[int, bytes]]:
        last = self._last.setdefault(partition, [])
        last.append(record)
        del last[:-500]
        given = [(partition, record)]
        if place % 5_000 == 4_999:
            self._again += len(last)
            given += [(partition, each) for each in last]
        return given


class Poison:
    """Puts a record that is none behind each 1,000."""

    def __init__(self) -> None:
        self.given = 0

    def told(self) -> str:
        return f"{self.given:,} poisons"

    def __call__(self, place: int, partition: int, record: bytes) -> list[tuple[int, bytes]]:
        if place % 1_000 != 999:
            return [(partition, record)]
        self.given += 1
        return [(partition, record), (partition, POISONS[self.given % len(POISONS)])]


@dataclass(frozen=True)
class Fault:
    """What is done; `words` for the table.

    before   makes what changes the events, from nothing
    order    of the job and of its reference
    more     the command's further options
    replayed the events are all there before the job
    on_disk  rows go to a folder on a small disk of its own
    """

    words: str
    do: Callable[[Scene], None]
    before: Callable[[], Before] | None = None
    order: str = "time:0s"
    more: tuple[str, ...] = ()
    replayed: bool = False
    on_disk: bool = False


FAULTS: dict[str, Fault] = {
    "task-manager": Fault("kill -9 of the TaskManager, another started", _kill_task_manager),
    "worker": Fault("kill -9 of the Python worker", _kill_worker),
    "job-manager": Fault(
        "kill -9 of the JobManager (no HA), which is started, and the job from a savepoint made before",
        _restart_job_manager,
    ),
    "savepoint": Fault("stop with a savepoint, resume", _stop_and_resume),
    "rescale": Fault(
        "stop with a savepoint, resume with parallelism 2 instead of 1", _stop_and_resume_on_two
    ),
    "broker": Fault("the broker stopped for 30 s and started again", _stop_broker),
    "redelivery": Fault(
        "the broker redelivers the last 500 records of a partition after each 5,000; kill -9 of the worker",
        _kill_worker,
        before=Redelivery,
        order="time:6h",
        more=("--deduplicate", "1d"),
    ),
    "poison": Fault(
        "poison: each 1,000th record is followed by one that is none; and kill -9 of the worker",
        _kill_worker,
        before=Poison,
    ),
    "launcher": Fault("SIGTERM to the launcher", _terminate_launcher),
    "replay": Fault("two days of event time at full speed", _nothing, replayed=True),
    "disk": Fault("the disk of the output folder full for 10 s", _fill_disk, on_disk=True),
}


@dataclass(frozen=True)
class Line:
    """What became of a fault."""

    fault: str
    silence: float
    events: int
    rows: int
    repeats: int
    lost: int
    wrong: int
    notes: tuple[str, ...]

    @property
    def good(self) -> bool:
        return not self.lost and not self.wrong and self.rows > 0

    def cells(self) -> list[str]:
        return [
            self.fault + ("; " + "; ".join(self.notes) if self.notes else ""),
            f"{self.silence:.1f}",
            f"{self.events:,}",
            f"{self.rows:,}",
            "yes" if self.good else "**no**",
            f"{self.repeats:,}",
            f"{self.lost:,}",
            f"{self.wrong:,}",
        ]


class Trial:
    """Does one fault after the other to new jobs on one cluster."""

    def __init__(self, folder: Path, events: Events, rate: float = RATE) -> None:
        self._folder = folder
        self.events = events
        self._rate = rate
        self._expected: dict[tuple[str, ...], pa.Table] = {}

    def expected(self, fault: Fault) -> pa.Table:
        """Return the rows of the undisturbed run."""
        key = (fault.order, *fault.more)
        if key not in self._expected:
            self._expected[key] = self.events.rows_of_local_runner(
                self._folder, *fault.more, order=fault.order
            )
        return self._expected[key]

    def run(self, stage: Stage, name: str) -> Line:
        """Do one fault to a job, and compare its rows."""
        with _disk(self._folder / "disk") if FAULTS[name].on_disk else contextlib.nullcontext():
            return self._run(stage, name)

    def _run(self, stage: Stage, name: str) -> Line:
        fault = FAULTS[name]
        topics = [f"{kind}-{name}-{time.time():.0f}" for kind in ("events", "rows", "letters")]
        expected = self.expected(fault)
        for topic, partitions in zip(topics, (self.events.partitions, 1, 1), strict=True):
            stage.broker.create_topic(topic, partitions=partitions)
        events, rows, letters = map(stage.url, topics)
        if fault.on_disk:
            rows = f"{self._folder / 'disk' / 'rows'}/"
        at_once = self.events.number + self.events.partitions
        if not fault.replayed:
            at_once = round(self.events.number * SHARE_AT_ONCE)
        before = None if fault.before is None else fault.before()
        address = stage.broker.address
        feed = Feed(address, topics[0], self.events, at_once=at_once, rate=self._rate, before=before)
        watch = FolderWatch(rows) if fault.on_disk else TopicWatch(address, topics[1])
        job = ClusterJob(
            stage, events, *self.events.options(fault.order), *fault.more, "--shards", "8",
            "--output", rows, "--dead-letters", letters,
        )  # fmt: skip
        scene = Scene(stage, job, feed, watch, self._folder, self.events.rows)
        try:
            if fault.replayed:
                feed.start()
                feed.join()
            job.start()
            watch.start()
            if not fault.replayed:
                feed.start()
                wait_until(lambda: watch.new >= at_once // self.events.every // 4, "rows come")
                checkpoints = job.checkpoints()
                wait_until(lambda: job.checkpoints() > checkpoints, "a checkpoint comes")
                feed.go_on()
                before_it = watch.new
                wait_until(lambda: watch.new > before_it + 100, "more rows come")
            fault.do(scene)
            feed.join()
            wait_until(lambda: watch.new >= self.events.rows, "all rows come", 120)
        except RuntimeError as failure:
            scene.notes.append(str(failure))
        finally:
            feed.stop()
            job.cancel()
            watch.stop()
        found, repeats = sorted_rows([rows])
        lost, wrong = differences(found, expected)
        if before is not None:
            scene.notes.append(before.told())
        if isinstance(before, Poison):
            dead = letters_in(address, topics[2])
            lost += abs(before.given - dead)
            scene.notes.append(f"{dead:,} dead letters")
        silence = watch.longest_silence(scene.began)
        return Line(
            fault.words, silence, self.events.number, len(found), repeats, lost, wrong, (*scene.notes,)
        )


@contextlib.contextmanager
def _disk(folder: Path) -> Iterator[None]:
    """Have a disk of 16 MB at a folder; only root can."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def page(lines: Sequence[Line]) -> str:
    """Return the page about what became of faults."""
    head = [
        "done to the job", "longest silence, s", "events", "rows", "rows equal", "repeats dropped", "lost",
        "wrong",
    ]  # fmt: skip
    return INTRODUCTION + table(head, [line.cells() for line in lines])


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ", ".join(FAULTS)
    parser.add_argument("--only", nargs="+", choices=FAULTS, metavar="NAME", help=f"of {names} [all]")
    parser.add_argument(
        "--output", type=Path, help="the page [docs/benchmarks/faults.md, where all are done]"
    )
    parser.add_argument(
        "--folder", type=Path, help="for servers and logs, and for what was done before [a temporary one]"
    )
    parser.add_argument(
        "--large",
        type=int,
        nargs="+",
        metavar="MB",
        help="only shards whose state is so large: a table of them",
    )
    parser.add_argument(
        "--runners", nargs="+", choices=["flink", "prism"], default=["flink", "prism"], metavar="RUNNER",
        help="of flink and prism, for --large [both]",
    )  # fmt: skip
    options = parser.parse_args(words)
    if options.large is not None:
        print(large_shards.report(options.large, options.runners))
        return 0
    if options.only is None:
        options.only = [*FAULTS]
        options.output = options.output or ROOT / "docs/benchmarks/faults.md"
    if "disk" in options.only and os.geteuid() != 0:
        print("faults: disk is left out: only root can mount a small disk", file=sys.stderr)
        options.only.remove("disk")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the servers are stopped then, too
    with tempfile.TemporaryDirectory(prefix="rocsteady-faults-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        trial, lines = Trial(folder, Events()), _done_before(folder)
        with Stage(folder) as stage:
            for name in options.only:
                lines[name] = trial.run(stage, name)
                print(f"{name}: {' | '.join(lines[name].cells())}", flush=True)
                done = {each: asdict(line) for each, line in lines.items()}
                (folder / _LINES).write_text(json.dumps(done))
                if options.output is not None:
                    text = page([lines[each] for each in FAULTS if each in lines])
                    options.output.write_text(with_commit(text))
    return 0 if all(line.good for line in lines.values()) else 1


_LINES = "lines.json"


def _done_before(folder: Path) -> dict[str, Line]:
    """Return what became of the faults that were done in a folder by an earlier run."""
    if not (folder / _LINES).exists():
        return {}
    done = json.loads((folder / _LINES).read_text())
    return {name: Line(**{**line, "notes": tuple(line["notes"])}) for name, line in done.items()}


if __name__ == "__main__":
    sys.exit(main())
