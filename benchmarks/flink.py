"""Jobs between topics on a real Flink cluster, measured: python -m benchmarks.flink [--quick].

Events/s with few and many models, in turns with a Flink pipeline that only reads and counts; how old a row is
when it can be read; bytes of state written per byte of event; checkpoints over time. Figures by the clock,
and by processor time, which is what they were if nothing else ran. The page goes to docs/benchmarks/flink.md.
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
import threading
import time
import urllib.parse
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from rocsteady.core.ids.sharding import shard_of
from rocsteady.runners.presets import PRESETS
from rocsteady.runners.servers.packages import prism_path

from .cluster_events import Events, Feed, TopicWatch
from .cluster_jobs import ClusterJob, Stage, wait_until
from .pages import with_commit
from .processes import COMMAND, ROOT, table

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Sizes:
    """Turns, events of a short and a long job, seconds of latency and of checkpoints."""

    turns: int
    events: tuple[int, int]
    latency: float
    growth: float


WHOLE = Sizes(3, (1_000_000, 5_000_000), 60, 600)
QUICK = Sizes(1, (500_000, 2_000_000), 20, 60)


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
            java = _processor_time(self._stage.task_manager().pid or 0)
            for pid in self._stage.workers():
                of_worker[pid] = max(_processor_time(pid), of_worker.get(pid, 0.0))
            self._seen.append((time.monotonic(), java, sum(of_worker.values())))


def _processor_time(pid: int) -> float:
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS
    return 0.0


def fill(stage: Stage, topic: str, events: Events) -> None:
    """Write all events to a new topic."""
    stage.broker.create_topic(topic, partitions=events.partitions)
    feed = Feed(stage.broker.address, topic, events, at_once=10**9, rate=1)
    feed.start()
    feed.join()


def evaluated(stage: Stage, topic: str, events: Events, turn: int) -> Run:
    """Evaluate a topic that is filled."""
    rows = f"rows-{topic}-{turn}"
    stage.broker.create_topic(rows)
    watch = TopicWatch(stage.broker.address, rows)
    processors = Processors(stage)
    job = ClusterJob(stage, stage.url(topic), *events.options(), "--shards", "8", "--output", stage.url(rows))
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


def counted(stage: Stage, topic: str, events: Events, turn: int) -> Run:
    """Read a topic that is filled, and count."""
    counts = f"counts-{topic}-{turn}"
    stage.broker.create_topic(counts)
    consumer = Consumer({"bootstrap.servers": stage.broker.address, "group.id": "count", "log_level": 0})
    consumer.assign([TopicPartition(counts, 0, OFFSET_BEGINNING)])
    processors = Processors(stage)
    module = [sys.executable, "-m", "benchmarks.cluster_count", stage.url(topic), stage.url(counts)]
    known = {job.identity for job in stage.cluster.jobs()}
    options = [word for word in stage.options() if word not in ("--runner", "flink")]
    log = (stage.folder / "count.log").open("ab")
    launcher = subprocess.Popen(
        [*module, "--runner=FlinkRunner", *options, *PRESET], cwd=ROOT, stdout=log, stderr=log
    )

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


PRESET = [
    f"--{name}={value}" if value else f"--{name}"
    for name, value in PRESETS["flink"].items()
    if name != "checkpointing_interval"
]
"""What the command adds for Flink; `Stage` says how often a checkpoint is made."""


class LiveFeed:
    """Writes events of now to a topic, so many a second, from a process of its own."""

    def __init__(
        self, broker: str, topic: str, rate: float, models: int, partitions: int, prefix: str = "m"
    ) -> None:
        words = [broker, topic, str(rate), str(models), str(partitions), prefix]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.flink", "--feed", *words], cwd=ROOT
        )

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


def feed_of_now(broker: str, topic: str, rate: float, models: int, partitions: int, prefix: str) -> None:
    """Write events whose times are now, until the process is ended: some each 5 ms."""
    settings = {"bootstrap.servers": broker, "linger.ms": 2, "log_level": 0}
    producer = Producer({**settings, "queue.buffering.max.messages": 2_000_000})
    random = np.random.default_rng(3)
    began, written = time.time(), 0
    last = [0] * partitions
    while True:
        due = int((time.time() - began) * rate)
        for place in range(written, due):
            partition = place % partitions
            label = int(random.random() < 0.3)
            last[partition] = max(time.time_ns() // 1_000, last[partition] + 1)
            event = {
                "model": f"{prefix}{place // partitions % models:04d}",
                "score": round(random.normal(label, 1.5), 6), "label": label, "time": last[partition],
                "id": f"e{place}",
            }  # fmt: skip
            producer.produce(topic, json.dumps(event, separators=(",", ":")).encode(), partition=partition)
        written = max(written, due)
        producer.poll(0)
        time.sleep(0.005)


def _ages(broker: str, topic: str, seconds: float, warm_up: float) -> dict[str, list[float]]:
    """Return by model how old rows were when they could be read: since the event that made each."""
    consumer = Consumer(
        {"bootstrap.servers": broker, "group.id": "age", "log_level": 0, "fetch.wait.max.ms": 10}
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    ages: dict[str, list[float]] = defaultdict(list)
    began = None
    limit = time.monotonic() + 180
    while began is None or time.monotonic() < began + warm_up + seconds:
        if began is None and time.monotonic() > limit:
            raise RuntimeError("no row came within 180 s")
        for message in consumer.consume(500, 0.005):
            if message.error() is not None:
                continue
            began = began or time.monotonic()
            if time.monotonic() > began + warm_up:
                row = json.loads(message.value())
                made = np.datetime64(row["time"].removesuffix("Z"), "us").astype(int)
                ages[row["model"]].append(time.time() - made / 1e6)
    consumer.close()
    return ages


def _median_and_high(ages: Iterable[Sequence[float]]) -> tuple[float, float]:
    """Return median and 95% quantile."""
    median, high = np.quantile(np.concatenate([*map(np.asarray, ages)]), (0.5, 0.95))
    return float(median), float(high)


def latency_on_flink(stage: Stage, seconds: float, rate: int) -> tuple[float, float]:
    """Return median and 95% quantile of rows' ages, in seconds, at so many events a second."""
    topic, rows = f"live-flink-{rate}", f"ages-flink-{rate}"
    stage.broker.create_topic(topic, partitions=2)
    stage.broker.create_topic(rows)
    job = ClusterJob(
        stage, stage.url(topic), *Events(every=min(rate // 100, 100)).options(), "--shards", "8",
        "--output", stage.url(rows),
    )  # fmt: skip
    feed = LiveFeed(stage.broker.address, topic, rate, 10, 2)
    try:
        job.start()
        ages = _ages(stage.broker.address, rows, seconds, 20)
    finally:
        feed.stop()
        job.cancel()
    return _median_and_high(ages.values())


def latency_on_prism(stage: Stage, seconds: float) -> tuple[float, float]:
    """Return median and 95% quantile of rows' ages, in seconds, on Prism at 20,000 events/s."""
    stage.broker.create_topic("live-prism", partitions=2)
    stage.broker.create_topic("ages-prism")
    words = [
        stage.url("live-prism"), *Events(every=100).options(), "--shards", "8", "--output",
        stage.url("ages-prism"), "--runner", "prism", f"--prism_location={prism_path()}",
        "--environment_type=LOOPBACK", "--start", "latest",
    ]  # fmt: skip
    feed = LiveFeed(stage.broker.address, "live-prism", 20_000, 10, 2)
    with (stage.folder / "prism.log").open("ab") as log:
        job = subprocess.Popen(
            [sys.executable, "-c", COMMAND, "evaluate", *words], cwd=ROOT, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    try:
        ages = _ages(stage.broker.address, "ages-prism", seconds, 20)
    finally:
        feed.stop()
        job.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            job.wait(15)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    return _median_and_high(ages.values())


_HOT, _SHARDS = "hot0000", 8


def neighbours_of_a_hot_model(
    stage: Stage, seconds: float, hot: float, *own: str
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the ages of rows of 40 models: of those in a shard with another one, and of those in no such.

    hot  events a second of that one, beside 2,000 of the 40 together
    """
    topic, rows = f"hot-{hot:.0f}-{len(own)}", f"hot-rows-{hot:.0f}-{len(own)}"
    stage.broker.create_topic(topic, partitions=2)
    stage.broker.create_topic(rows)
    job = ClusterJob(
        stage, stage.url(topic), *Events(every=100).options(), "--shards", str(_SHARDS), *own,
        "--output", stage.url(rows),
    )  # fmt: skip
    feeds = [LiveFeed(stage.broker.address, topic, 2_000, 40, 2)]
    if hot:
        feeds.append(LiveFeed(stage.broker.address, topic, hot, 1, 2, "hot"))
    try:
        job.start()
        ages = _ages(stage.broker.address, rows, seconds, 20)
    finally:
        for feed in feeds:
            feed.stop()
        job.cancel()
    ages.pop(_HOT, None)
    (shard,) = shard_of((_HOT,), _SHARDS).tolist()
    is_near = {model: shard_of((model,), _SHARDS)[0] == shard for model in ages}
    near = [ages[model] for model in ages if is_near[model]]
    return _median_and_high(near), _median_and_high(ages[model] for model in ages if not is_near[model])


@dataclass(frozen=True)
class Growth:
    """What a job at a constant window wrote.

    sizes    (seconds since the first, bytes of the state) of each checkpoint
    state    bytes of snapshots and logs that the machines wrote
    packets  bytes of packets that they were given
    """

    sizes: list[tuple[float, int]]
    state: int
    packets: int


def growth(stage: Stage, seconds: float) -> Growth:
    """Watch the checkpoints of a job at 20,000 events/s, 100 models, windows of 1,000 events."""
    stage.broker.create_topic("live-growth", partitions=2)
    stage.broker.create_topic("rows-growth")
    job = ClusterJob(
        stage, stage.url("live-growth"), *Events(every=1_000, number=20_000).options(), "--shards", "8",
        "--output", stage.url("rows-growth"),
    )  # fmt: skip
    feed = LiveFeed(stage.broker.address, "live-growth", 20_000, 100, 2)
    done: dict[int, tuple[float, int]] = {}
    try:
        job.start()
        wait_until(lambda: job.checkpoints() > 0, "a checkpoint comes")
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for each in stage.cluster.rest(f"/jobs/{job.identity}/checkpoints")["history"]:
                if each["status"] == "COMPLETED":
                    done[each["id"]] = each["trigger_timestamp"] / 1_000, int(each["state_size"])
            time.sleep(5)
        for _ in range(6):  # Flink fetches what it is asked for a first time behind its answer
            state, packets = _written(stage, job.identity)
            if packets:
                break
            time.sleep(10)
    finally:
        feed.stop()
        job.cancel()
    first = min(at for at, _ in done.values())
    return Growth([(at - first, size) for at, size in sorted(done.values())], state, packets)


def _written(stage: Stage, job: str) -> tuple[int, int]:
    """Return the bytes of state that machines wrote, and those that the step before sent to them."""
    state = packets = 0
    for vertex in stage.cluster.rest(f"/jobs/{job}")["vertices"]:
        place = f"/jobs/{job}/vertices/{vertex['id']}"
        names = [metric["id"] for metric in stage.cluster.rest(f"{place}/subtasks/metrics")]
        wanted = [
            name for name in names if name.endswith(("rocsteady_snapshot_bytes", "rocsteady_log_bytes"))
        ]
        if wanted:
            asked = urllib.parse.quote(",".join(wanted))
            found = stage.cluster.rest(f"{place}/subtasks/metrics?get={asked}")
            state += round(sum(float(metric["sum"]) for metric in found))
            packets += int(vertex["metrics"]["read-bytes"])
    return state, packets


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one turn of fewer events")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, help="[all]")
    parser.add_argument("--folder", type=Path, help="for servers and logs [a temporary one]")
    parser.add_argument("--output", type=Path, help="the page [docs/benchmarks/flink.md, where all is done]")
    parser.add_argument("--feed", nargs=6, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.feed:
        broker, topic, rate, models, partitions, prefix = options.feed
        feed_of_now(broker, topic, float(rate), int(models), int(partitions), prefix)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sizes = QUICK if options.quick else WHOLE
    only = options.only or [*SECTIONS]
    if options.only is None:
        options.output = options.output or ROOT / "docs" / "benchmarks" / "flink.md"
    with tempfile.TemporaryDirectory(prefix="rocsteady-flink-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        with Stage(folder, checkpoint_seconds=10) as stage:
            parts = [_machine()]
            for name in only:
                for part in SECTIONS[name](stage, sizes):
                    print(part, flush=True)
                    parts.append(part)
                    if options.output:
                        options.output.write_text(with_commit("\n".join(parts)))


def pace_section(stage: Stage, sizes: Sizes) -> Iterator[str]:
    rows = []
    for models, every, asked in ((10, 1_000, 250_000), (1_000, 100, 150_000)):
        short, long = (
            Events(number // (models * every) * models * every, models, 2, every) for number in sizes.events
        )
        for events in (short, long):
            fill(stage, f"events-{models}-{events.number}", events)
        ours, counts = [], []
        for turn in range(sizes.turns):
            for job, paces in ((evaluated, ours), (counted, counts)):
                runs = [job(stage, f"events-{models}-{each.number}", each, turn) for each in (short, long)]
                paces.append(Pace.between(*runs))
                print(models, job.__name__, *runs, paces[-1], sep="\n  ", flush=True)
        for what, paces, wanted in (
            (f"{models:,} models", ours, f"{asked:,}"),
            ("only read and count", counts, ""),
        ):
            middle = sorted(paces, key=lambda pace: pace.processor)[len(paces) // 2]
            rows.append([
                what, wanted, f"{middle.clock:,.0f}", f"{middle.processor:,.0f}", f"{middle.python:.2f}",
                f"{middle.java:.2f}",
            ])  # fmt: skip
    yield table(
        [
            "",
            "asked, events/s",
            "by the clock",
            "by processor time",
            "Python, s per million",
            "Java, s per million",
        ],
        rows,
    )


def latency_section(stage: Stage, sizes: Sizes) -> Iterator[str]:
    rows = []
    for rate in (1_000, 20_000):
        median, high = latency_on_flink(stage, sizes.latency, rate)
        rows.append([f"{rate:,}", "0.8", f"{median:.2f}", f"{high:.2f}"])
    yield table(["age of rows on Flink, s: events/s", "p95 asked", "median", "p95"], rows)


def prism_section(stage: Stage, sizes: Sizes) -> Iterator[str]:
    median, high = latency_on_prism(stage, sizes.latency)
    yield table(
        ["age of rows on Prism, s: events/s", "p95 asked", "median", "p95"],
        [["20,000", "0.3", f"{median:.3f}", f"{high:.3f}"]],
    )


def hot_section(stage: Stage, sizes: Sizes) -> Iterator[str]:
    rows = []
    for what, hot, own in (
        ("no hot model", 0, ()),
        ("one of 20,000 events/s in a shard with some", 20_000, ()),
        ("the same with a shard of its own", 20_000, ("--own-shard", _HOT)),
        (
            "with a shard of its own and two Python workers",
            20_000,
            ("--own-shard", _HOT, "--sdk_worker_parallelism=2"),
        ),
    ):
        near, others = neighbours_of_a_hot_model(stage, sizes.latency, hot, *own)
        rows.append([what, *(f"{value:.2f}" for value in (*near, *others))])
    yield table(
        [
            "rows of 40 models, 2,000 events/s",
            "in its shard: median, s",
            "p95",
            "in others: median, s",
            "p95",
        ],
        rows,
    )


def growth_section(stage: Stage, sizes: Sizes) -> Iterator[str]:
    found = growth(stage, sizes.growth)
    if found.packets:
        each = found.state / found.packets
        yield table(["state written per byte of packet", "asked"], [[f"{each:.2f}", "2.2"]])
    step = max(len(found.sizes) // 12, 1)
    yield table(
        ["seconds", "checkpoint, bytes"], [[f"{at:.0f}", f"{size:,}"] for at, size in found.sizes[::step]]
    )


def _machine() -> str:
    return f"""# Flink, measured

Written by `python -m benchmarks.flink`: a Flink 1.19 session cluster (one TaskManager, parallelism 1,
RocksDB, checkpoints each 10 s), a Kafka broker, the generator and the reader of rows on one machine with
{os.cpu_count()} cores; load {os.getloadavg()[0]:.1f} when it began. Two partitions in, one topic of
rows out; `--window last:1000 --every 1000` (100 for 1,000 models), order by time, 8 shards. Events a second
are those of a long job ({WHOLE.events[1]:,}) beyond a short one ({WHOLE.events[0]:,}), over topics that are
filled before, so that their beginnings do not count; of processor time: of the TaskManager and its Python
worker together, as if nothing else ran and on one core. Medians of turns.
"""


SECTIONS = {
    "pace": pace_section,
    "latency": latency_section,
    "prism": prism_section,
    "hot": hot_section,
    "growth": growth_section,
}


if __name__ == "__main__":
    main(sys.argv[1:])
