"""Jobs between topics on a real Flink cluster, measured: python -m benchmarks.flink [--quick].

Events/s with few and many models, in turns with a Flink pipeline that only reads and counts; how old a row is
when it can be read; bytes of state written per byte of event; checkpoints over time. Figures by the clock,
and by processor time, which is what they were if nothing else ran. With `--before FOLDER`, the jobs of the
events/s also run with the package in FOLDER/rocsteady, in turns. The page goes to docs/benchmarks/flink.md.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .checkouts import add_before
from .cluster_events import Events
from .cluster_jobs import ClusterJob, Stage, wait_until
from .flink_ages import HOT, LiveFeed, latency_on_flink, latency_on_prism, neighbours_of_a_hot_model
from .flink_pace import pace_section
from .pages import with_commit
from .processes import ROOT, table


@dataclass(frozen=True)
class Plan:
    """Turns, events of a short and a long job, seconds of latency and of checkpoints.

    before  a folder with another checkout, to measure its pace too
    """

    turns: int
    events: tuple[int, int]
    latency: float
    growth: float
    before: Path | None = None


WHOLE = Plan(3, (1_000_000, 5_000_000), 60, 600)
QUICK = Plan(1, (500_000, 2_000_000), 20, 60)


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
    add_before(parser)
    options = parser.parse_args(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    plan = replace(QUICK if options.quick else WHOLE, before=options.before)
    only = options.only or [*SECTIONS]
    if options.only is None:
        options.output = options.output or ROOT / "docs" / "benchmarks" / "flink.md"
    with tempfile.TemporaryDirectory(prefix="rocsteady-flink-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        with Stage(folder, checkpoint_seconds=10) as stage:
            parts = [_machine(plan)]
            for name in only:
                for part in SECTIONS[name](stage, plan):
                    print(part, flush=True)
                    parts.append(part)
                    if options.output:
                        options.output.write_text(with_commit("\n".join(parts)))


def pace(stage: Stage, plan: Plan) -> Iterator[str]:
    return pace_section(stage, plan.turns, plan.events, plan.before)


def latency_section(stage: Stage, plan: Plan) -> Iterator[str]:
    rows = []
    for rate in (1_000, 20_000):
        median, high = latency_on_flink(stage, plan.latency, rate)
        rows.append([f"{rate:,}", "0.8", f"{median:.2f}", f"{high:.2f}"])
    yield table(["age of rows on Flink, s: events/s", "p95 asked", "median", "p95"], rows)


def prism_section(stage: Stage, plan: Plan) -> Iterator[str]:
    median, high = latency_on_prism(stage, plan.latency)
    yield table(
        ["age of rows on Prism, s: events/s", "p95 asked", "median", "p95"],
        [["20,000", "0.3", f"{median:.3f}", f"{high:.3f}"]],
    )


def hot_section(stage: Stage, plan: Plan) -> Iterator[str]:
    rows = []
    for what, hot, own in (
        ("no hot model", 0, ()),
        ("one of 20,000 events/s in a shard with some", 20_000, ()),
        ("the same with a shard of its own", 20_000, ("--own-shard", HOT)),
        (
            "with a shard of its own and two Python workers",
            20_000,
            ("--own-shard", HOT, "--sdk_worker_parallelism=2"),
        ),
    ):
        near, others = neighbours_of_a_hot_model(stage, plan.latency, hot, *own)
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
    yield "The shards of a Python worker share its process: a hot model can slow other shards' models.\n"


def growth_section(stage: Stage, plan: Plan) -> Iterator[str]:
    found = growth(stage, plan.growth)
    if found.packets:
        each = found.state / found.packets
        yield table(["state written per byte of packet", "asked"], [[f"{each:.2f}", "2.2"]])
    step = max(len(found.sizes) // 12, 1)
    yield table(
        ["seconds", "checkpoint, bytes"], [[f"{at:.0f}", f"{size:,}"] for at, size in found.sizes[::step]]
    )


def _machine(plan: Plan) -> str:
    short, long = plan.events
    before = " --before FOLDER" if plan.before else ""
    return f"""# Flink, measured

Written by `python -m benchmarks.flink{before}`: a Flink 1.19 session cluster (one TaskManager,
parallelism 1, RocksDB, checkpoints each 10 s), a Kafka broker, the generator and the reader of rows on one
machine with {os.cpu_count()} cores; load {os.getloadavg()[0]:.1f} when it began. Two partitions in,
one topic of rows out; `--window last:1000 --every 1000` (100 for 1,000 models), order by time, 8 shards.
The columns *asked* are goals; they were set before the work.

Events a second are those of a long job ({long:,} events) beyond a short one ({short:,} events), over topics
that are filled before. So the beginnings of the jobs do not count. Events a second of processor time are
those of one core that runs nothing but the TaskManager and its Python worker. A line has the figures of the
turn with the median processor time, of {plan.turns} turn{"s" * (plan.turns > 1)}.
"""


SECTIONS: dict[str, Callable[[Stage, Plan], Iterator[str]]] = {
    "pace": pace,
    "latency": latency_section,
    "prism": prism_section,
    "hot": hot_section,
    "growth": growth_section,
}


if __name__ == "__main__":
    main(sys.argv[1:])
