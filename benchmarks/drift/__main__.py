"""python -m benchmarks.drift [--trials N] [--quick] [--output PATH]: writes docs/benchmarks/drift.md.

Data sets are read from the folder that the environment variable ROCSTEADY_DATA names. --quick takes a small
generated data set in their place.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from ..pages import with_commit
from ..processes import ROOT
from .constructed import EVENTS, constructed
from .page import page
from .runs import Results, costs, watch
from .streams import LEARNERS, DataSet, data_sets, generated, trials
from .tables import Measured
from .watchers import told_both_ways, watchers

TRIALS, SLOW_TRIALS = 10, 1
"""Shuffles of each data set; the slow detector sees the first of them."""

LONGEST = {"Covertype": 30_000}
"""Events of a shuffle, of data sets that would take too long."""

PAPER_TRIALS, PAPER_LEARNERS = 40, tuple(LEARNERS)[:1]
"""Shuffles and learner beside the paper's own figures, on the first data set."""

CONSTRUCTED = 40
"""Streams of each constructed change."""


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drift", description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS, help="shuffles of each data set [%(default)s]")
    parser.add_argument("--quick", action="store_true", help="a shuffle of a small generated data set")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/benchmarks/drift.md", help="the page")
    options = parser.parse_args(arguments)
    number, slow = (1, 1) if options.quick else (options.trials, SLOW_TRIALS)
    measured = measure(number, slow, options.quick)
    options.output.write_text(with_commit(page(measured)))


def measure(number: int, slow: int, quick: bool) -> Measured:
    """Run everything: so many shuffles of each data set, of which the slow detector sees the first."""
    found: dict[tuple[str, str], Results] = {}
    sets: list[DataSet] = [generated(4_000)] if quick else list(data_sets())
    begin = time.monotonic()
    for data in sets:
        for seed in range(number):
            for learner, trial in trials(data, LONGEST.get(data.name, len(data.labels)), seed):
                told = watchers(trial.before.part(0, trial.judged), seed < slow)
                watch(trial, told, found.setdefault((data.name, learner), {}))
        print(f"{data.name}: {time.monotonic() - begin:.0f} s", flush=True)
    paper: Results = {}
    for seed in range(2 if quick else PAPER_TRIALS):
        for _, trial in trials(sets[0], len(sets[0].labels), seed, PAPER_LEARNERS, ("abrupt",)):
            watch(trial, told_both_ways(), paper)
    made: dict[str, Results] = {}
    streams, events = (2, 4_000) if quick else (CONSTRUCTED, EVENTS)
    for change, trial in constructed(streams, events):
        watch(trial, watchers(trial.before.part(0, trial.judged), False), made.setdefault(change, {}))
    timed = costs(events * 5)
    print(f"all: {time.monotonic() - begin:.0f} s", flush=True)
    return Measured(found, made, paper, timed, number, min(number, slow))


if __name__ == "__main__":
    main(sys.argv[1:])
