"""A million models on one machine, with what befalls them in production: python -m benchmarks.scale.

A Flink session cluster and a Kafka broker run here. 10^8 events with times are written to a topic of four
partitions, and one job evaluates 10^6 models of them, with windows of 100 events. On the way a worker and a
TaskManager are killed, the job is stopped with a savepoint and goes on with another parallelism, and its
state is exported and goes on in other shards. In the end all rows are counted, and the rows of 1,000 models
are compared with those of the local runner.

The command says first how long it takes, and --plan only says so. It goes on where it stopped: after Ctrl-C,
the same command does the phase once more that it was in. The page goes to docs/benchmarks/scale.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException

from .pages import with_commit
from .processes import ROOT
from .scale_events import Crowd
from .scale_page import page
from .scale_phases import (
    PHASES,
    READ,
    WINDOW,
    Figures,
    LongRun,
    Plan,
    chosen_ports,
    drop_older_savepoints,
)

TABLE_SECONDS, START_SECONDS = 10.0, 30.0
FILL_SECONDS, JOB_SECONDS, MODEL_SECONDS = 4e-6, 20e-6, 60e-6
"""Of an event to write or to compare, of an event to evaluate, and of a model's state that a job or an import
begins with."""

MODEL_BYTES, HELD_BYTES, OTHER_BYTES = 1_000, 45, 4_500_000_000
"""Memory of a model in a worker, of an event in its window, and of everything else that runs."""

EVENT_DISK, MODEL_DISK = 80, 12_000
"""Bytes on the disk: of an event in both topics, and of a model in savepoints, checkpoints and exports."""

LEAST_EVENTS = 4_000_000
"""Of fewer events none are left to read for the later phases: a job reads on while it is killed or asked."""

_PROGRESS = "progress.json"


def seconds_of(plan: Plan) -> dict[str, float]:
    """Return how long each phase takes by the unit costs, on 2 cores."""
    events, state = plan.crowd.number, plan.crowd.models * MODEL_SECONDS
    found, before = {}, 0.0
    for phase, part in READ.items():
        found[phase] = START_SECONDS + (part - before) * events * JOB_SECONDS
        before = part
    begun = {"worker": 2, "task-manager": 2, "rescale": 1, "finish": 1}
    found |= {phase: found[phase] + often * state for phase, often in begun.items()}
    found |= {"fill": events * FILL_SECONDS, "import": state, "compare": events * FILL_SECONDS}
    found["table"] = TABLE_SECONDS
    return {phase: found[phase] for phase in PHASES}


def model_bytes(crowd: Crowd) -> int:
    """Return how much memory a model takes in a worker at the end of a run, by the unit costs."""
    return MODEL_BYTES + round(HELD_BYTES * crowd.held(WINDOW))


def too_little(plan: Plan, folder: Path) -> str:
    """Return what this machine has too little of for a run, with the remedy; "" where it has enough."""
    with suppress(OSError):
        said = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        free = int(said["MemAvailable"].split()[0]) << 10
        each = model_bytes(plan.crowd)
        if plan.crowd.models * each + OTHER_BYTES > free:
            fits = max(free - OTHER_BYTES, 0) // each // 1_000 * 1_000
            return f"{free / 1e9:.1f} GB of memory are free: --models {fits} fits"
    free = shutil.disk_usage(folder).free
    wanted = plan.crowd.number * EVENT_DISK + plan.crowd.models * MODEL_DISK
    if wanted > free:
        return f"{wanted / 1e9:.0f} GB of disk are needed, and {free / 1e9:.0f} GB are free in {folder}"
    return ""


class Progress:
    """What was done in a folder: the plan, the ports of its servers, and the figures of each phase.

    Raises SystemExit where the folder holds a run of another plan.
    """

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._path = folder / _PROGRESS
        written = json.loads(json.dumps(asdict(plan)))
        self._kept: dict[str, Any] = {"plan": written, "ports": chosen_ports(), "done": {}}
        if self._path.exists():
            self._kept = json.loads(self._path.read_text())
            if self._kept["plan"] != written:
                raise SystemExit(
                    f"scale: {folder} holds a run of another plan, {self._kept['plan']}: give the options of "
                    "that run, or another --folder"
                )
        self.done: dict[str, Figures] = self._kept["done"]
        self.ports: tuple[int, int] = tuple(self._kept["ports"])
        self._write()

    def add(self, phase: str, figures: Figures) -> None:
        """Note that a phase is done."""
        self.done[phase] = figures
        self._write()

    def _write(self) -> None:
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(self._kept, indent=1))
        new.replace(self._path)


def _plan(options: argparse.Namespace) -> Plan:
    models = options.models
    shards = options.shards or max(64, models // 8_000)
    crowd = Crowd(options.events, models)
    cache_bytes = 2 * models * model_bytes(crowd)
    return Plan(crowd, options.every, shards, shards * 3 // 2, options.drawn, cache_bytes)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, default=1_000_000, help="[1000000]")
    parser.add_argument("--events", type=int, default=100_000_000, help="[100000000]")
    parser.add_argument("--every", type=int, default=50, help="events of a model between two rows [50]")
    parser.add_argument("--shards", type=int, help="[one for each 8,000 models, at least 64]")
    parser.add_argument("--drawn", type=int, default=1_000, help="models whose rows are compared [1000]")
    parser.add_argument(
        "--folder", type=Path, default=Path("scale-run"), help="of servers, data and progress [scale-run]"
    )
    parser.add_argument("--output", type=Path, help="the page [docs/benchmarks/scale.md]")
    parser.add_argument("--plan", action="store_true", help="only say how long it takes")
    options = parser.parse_args(words)
    if options.events < LEAST_EVENTS:
        parser.error(f"--events {options.events}: give {LEAST_EVENTS} or more, or all are read too early")
    plan, folder = _plan(options), options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    progress = Progress(folder, plan)
    left = {name: seconds for name, seconds in seconds_of(plan).items() if name not in progress.done}
    print(
        f"scale: {plan.crowd.models:,} models, {plan.crowd.number:,} events in {folder}: some "
        f"{sum(left.values()) / 60:.0f} minutes on 2 cores for {', '.join(left) or 'nothing'}",
        flush=True,
    )
    if left and (lacking := too_little(plan, folder)):
        print(f"scale: {lacking}", file=sys.stderr)
        return 2
    if options.plan:
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the servers are stopped then, too
    if left:
        status = _run(LongRun(folder, plan, progress.done, progress.ports), progress, left)
        if status:
            return status
    path = options.output or ROOT / "docs/benchmarks/scale.md"
    path.write_text(with_commit(page(plan, progress.done, path)))
    print(f"scale: the page is {path}", flush=True)
    return 0 if progress.done["compare"]["equal"] else 1


def _run(run: LongRun, progress: Progress, left: dict[str, float]) -> int:
    """Do the phases that are left; return the exit status."""
    phase = "start"
    try:
        with run.servers():
            for phase in left:
                print(f"scale: {phase}, some {left[phase]:,.0f} s", flush=True)
                began = time.monotonic()
                figures = PHASES[phase](run)
                taken = time.monotonic() - began
                progress.add(phase, {**figures, "taken_seconds": taken, "load": os.getloadavg()[0]})
                drop_older_savepoints(run, phase)
                print(f"scale: {phase} took {taken:,.0f} s: {json.dumps(figures)}", flush=True)
    except KeyboardInterrupt:
        print(f"scale: stopped in {phase}; the same command goes on with it", file=sys.stderr)
        return 130
    except (RuntimeError, KafkaException) as failure:
        print(f"scale: {phase} failed: {failure}\nthe same command goes on with it", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
