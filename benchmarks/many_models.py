"""What a shard of many models costs: python -m benchmarks.many_models [--quick] [--before FOLDER].

A shard applies packets as on a worker, without Beam. Each case runs in a process of its own. With `--before`,
every case also runs in another checkout, in turns: FOLDER has that checkout in its folder `rocsteady`. The
page goes to docs/benchmarks/many_models.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from .checkouts import add_before, commit_of
from .pages import with_commit
from .processes import ROOT, table

Figures = dict[str, float]


@dataclass(frozen=True)
class Case:
    """A stream of events, spread evenly over models and slices by chance, and the windows of a shard.

    models, slices  how many there are; slices 0: events have no slice column
    events, packet  how many events come, and how many in each packet
    """

    models: int
    slices: int
    window: str
    every: int
    events: int
    packet: int

    @property
    def title(self) -> str:
        """The models and slices in words."""
        return f"{self.models:,}" + (f" x {self.slices:,} slices" if self.slices else "")


WHOLE = (
    Case(10, 0, "last:1000", 1_000, 1_000_000, 2_500),
    Case(125, 0, "last:1000", 100, 1_000_000, 2_500),
    Case(125, 0, "last:100", 100, 1_000_000, 2_500),
    Case(20_000, 0, "last:50", 50, 2_000_000, 20_000),
    Case(200_000, 0, "last:100", 100, 4_000_000, 50_000),
    Case(1_000, 1_000, "last:100", 100, 500_000, 50_000),
)
QUICK = (Case(20, 0, "last:50", 10, 5_000, 500), Case(20, 5, "last:50", 50, 5_000, 500))


def measured(case: Case) -> Figures:
    """Return the figures of a case, by the package that this process imports."""
    import numpy as np
    from rocsteady.core.events.batch import EventBatch
    from rocsteady.core.events.columns import TextColumn
    from rocsteady.core.events.records import EndOfInput
    from rocsteady.core.settings.evaluator import EvaluatorSettings
    from rocsteady.core.settings.table import TableSettings
    from rocsteady.core.settings.windows import EveryEvents, parse_window
    from rocsteady.core.table.table import EvaluatorTable, warm_up

    evaluator = EvaluatorSettings(window=parse_window(case.window), every=EveryEvents(case.every))
    slices = (("slice",),) if case.slices else ()
    settings = TableSettings(evaluator, slices=slices, slice_cap=max(1, case.slices))
    warm_up(settings)
    random, records = np.random.default_rng(1), []
    models = tuple(f"model-{place:06d}" for place in range(case.models))
    values = tuple(f"value-{place:04d}" for place in range(case.slices))
    for _ in range(0, case.events, case.packet):
        used, codes = np.unique(random.integers(0, case.models, case.packet), return_inverse=True)
        labels = (random.random(case.packet) < 0.3).astype(np.int8)
        scores = np.round(random.normal(size=case.packet) + labels, 4)
        of_slices = random.integers(0, max(1, case.slices), case.packet).astype(np.int32)
        batch = EventBatch(
            TextColumn(codes.astype(np.int32), tuple(models[place] for place in used)), scores, labels,
            slices=(("slice", TextColumn(of_slices, values)),) if case.slices else (),
        )  # fmt: skip
        records.append(batch.pack())
    memory = _resident()
    shard, start = EvaluatorTable(settings), time.process_time()
    for record in records:
        shard.apply(record)
    applied = time.process_time()
    held = _resident() - memory
    state = shard.to_bytes()
    written = time.process_time()
    EvaluatorTable.from_bytes(state, settings)
    loaded = time.process_time()
    shard.apply(EndOfInput().pack())
    evaluators = len(shard)
    return {
        "microseconds an event": (applied - start) / case.events * 1e6,
        "microseconds of the last row, an evaluator": (time.process_time() - loaded) / evaluators * 1e6,
        "microseconds to write the state, an evaluator": (written - applied) / evaluators * 1e6,
        "microseconds to read the state, an evaluator": (loaded - written) / evaluators * 1e6,
        "bytes of memory, an evaluator": held / evaluators,
    }


def _resident() -> int:
    """Return the resident memory of this process in bytes."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def asked(case: Case, folder: Path | None = None) -> Figures:
    """Return the figures of a case by a process that imports the package in a folder; None: this package."""
    program = f"import sys, json; sys.path.insert(0, {str(ROOT)!r}); from benchmarks.many_models import *; "
    program += "print(json.dumps(measured(Case(**json.loads(sys.argv[1])))))"
    words = [sys.executable, "-c", program, json.dumps(asdict(case))]
    environment = dict(os.environ) if folder is None else {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, cwd="/")
    if done.returncode:
        raise SystemExit(f"{case} failed: {done.stderr[-2000:]}")
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def page(cases: Sequence[Case], before: Path | None, turns: int) -> str:
    """Measure all cases, in turns with the other checkout if there is one; return the page."""
    rows: dict[str, list[list[str]]] = {}
    for case in cases:
        runs: list[tuple[Figures, Figures | None]] = []
        for _ in range(turns):
            runs.append((asked(case), None if before is None else asked(case, before)))
            print(f"  {case.title}, {case.window}: {runs[-1]}", flush=True)
        for name in runs[0][0]:
            here = median(now[name] for now, _ in runs)
            cells = [case.title, case.window, f"{case.every:,}", f"{case.packet:,}", f"{here:,.2f}"]
            if before is not None:
                other = median(then[name] for _, then in runs if then is not None)
                cells += [f"{other:,.2f}", f"{other / here:.1f}x"]
            rows.setdefault(name, []).append(cells)
    head = [
        "models",
        "window",
        "a row every",
        "events a packet",
        "now",
        *(["before", "ratio"] if before else []),
    ]
    parts = [
        (
            "# Many models in a shard, measured\n\n"
            "Written by `python -m benchmarks.many_models`. A shard applies packets of events, spread evenly "
            "over its models by chance, in one process and without Beam. Processor time, medians of "
            f"{turns} turn{'s' * (turns > 1)}. New evaluators are made in this time, too."
        )
    ]
    if before is not None:
        parts.append(f"Before: {commit_of(before)}, in turns with now.")
    for name, lines in rows.items():
        parts.append(f"## {name[0].upper()}{name[1:]}\n\n{table(head, lines)}")
    return "\n\n".join(parts).rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small cases, once")
    add_before(parser)
    parser.add_argument("--output", type=Path, default=ROOT / "docs/benchmarks/many_models.md")
    words = parser.parse_args()
    cases, turns = (QUICK, 1) if words.quick else (WHOLE, 2)
    words.output.write_text(with_commit(page(cases, words.before, turns)), "utf-8")


if __name__ == "__main__":
    main()
