"""What folds of learners cost beside the learners themselves: python -m benchmarks.prequential [--quick].

The harness is everything but the learner's own calls: packets, order, folds, records of features,
evaluation in a window, reports, comparisons with DeLong's test. It is measured by a learner whose calls do
nothing, by the machines as a worker hosts them; and the whole command on Electricity by river's learners, in
one process and with two workers. The page goes to docs/benchmarks/prequential.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from rocsteady.core.compare.fold_pairs import FoldPairs
from rocsteady.core.compare.fold_report import FoldReport
from rocsteady.core.compare.learners import LearnerComparisons
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.records import EndOfPartition
from rocsteady.core.events.wire import PacketHead
from rocsteady.core.prequential.fold import FoldOutput, PrequentialFold
from rocsteady.core.prequential.fold_settings import PrequentialSettings
from rocsteady.core.prequential.folds import Folds
from rocsteady.core.prequential.instances import Task
from rocsteady.core.prequential.learners import LearnerSpec
from rocsteady.core.prequential.wire import shared_record
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.settings.windows import EveryEvents, LastEvents

from .pages import with_commit
from .papers.data import data_file
from .processes import ROOT, command, table

LEARNERS, FOLDS = 4, 10


class Idle:
    """A learner whose calls do nothing."""

    def __init__(self) -> None:
        self._prediction = {True: 0.4, False: 0.6}

    def predict_proba_one(self, x: object) -> dict[bool, float]:  # noqa: ARG002
        return self._prediction

    def learn_one(self, x: object, y: object) -> None:
        pass


def instances(n: int, features: int) -> list[bytes]:
    """Return a stream of instances as packets of 10,000, and its end."""
    random = np.random.default_rng(1)
    batch = EventBatch(
        models=TextColumn(np.zeros(n, np.int32), ("",)),
        scores=np.zeros(n),
        labels=random.integers(0, 2, n).astype(np.int8),
        ids=IdColumn.of([f"0:{place}" for place in range(n)]),
        features=tuple((f"x{place}", random.normal(size=n)) for place in range(features)),
    )
    packets = [
        batch.part(start, min(n, start + 10_000)).pack(PacketHead(sequence=number))
        for number, start in enumerate(range(0, n, 10_000))
    ]
    return [*packets, EndOfPartition("", 0, 1, len(packets)).pack()]


def harness(n: int, features: int) -> tuple[float, float]:
    """Return microseconds of processor time an (instance, learner, fold): of folds, and of comparisons."""
    names = [f"idle{number}=benchmarks.prequential:Idle" for number in range(LEARNERS)]
    specs = tuple(map(LearnerSpec.parse, names))
    evaluator = EvaluatorSettings(window=LastEvents(1_000), every=EveryEvents(1_000), order="position")
    settings = PrequentialSettings(specs, Folds("bootstrap", FOLDS), evaluator, Task(is_binary=True))
    began = time.process_time()
    records = [shared_record(record) for record in instances(n, features)]
    reports: list[bytes] = []
    for learner in range(LEARNERS):
        for fold in range(FOLDS):
            machine = PrequentialFold(settings, learner, fold)
            for record in records:
                for output in machine.apply(record):
                    if isinstance(output, FoldOutput):
                        reports += output.reports
    between = time.process_time()
    pairs = [FoldPairs(settings.comparison, fold) for fold in range(FOLDS)]
    whole = LearnerComparisons(settings.comparison)
    for report in reports:
        for paired in pairs[FoldReport.unpack(report).fold].apply(report):
            if isinstance(paired, bytes):
                whole.apply(paired)
    ended = time.process_time()
    of_one = 1e6 / (n * LEARNERS * FOLDS)
    return (between - began) * of_one, (ended - between) * of_one


def on_electricity(folder: Path, *words: str) -> float:
    """Return the seconds by the clock of the whole command."""
    learners = ("majority", "naive-bayes", "hoeffding", "logistic")
    return command(
        "prequential", str(data_file("electricity.csv.gz")), "--label", "class", "--positive", "UP",
        *(f"--learner={name}" for name in learners), "--folds", str(FOLDS), "--window", "last:1000",
        "--every", "1000", "--output", str(folder), *words,
    ).wall  # fmt: skip


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer instances, and not the command")
    parser.add_argument("--output", type=Path, help="the page [docs/benchmarks/prequential.md]")
    options = parser.parse_args(arguments)
    n = 5_000 if options.quick else 45_312
    harness(2_000, 2)  # compiled, and warm
    rows = []
    for features in (2, 8, 54):
        turns = sorted(harness(n, features) for _ in range(1 if options.quick else 3))
        folds, comparisons = turns[len(turns) // 2]
        rows.append([str(features), f"{folds:.2f}", f"{comparisons:.2f}", f"{folds + comparisons:.2f}"])
    page = [table(["features", "folds, us", "comparisons, us", "together, us (asked: 5)"], rows)]
    if not options.quick:
        page.append(_commands())
    print("\n".join(page))
    if options.output is not None or not options.quick:
        path = options.output or ROOT / "docs/benchmarks/prequential.md"
        path.write_text(with_commit(_PAGE.format(harness=page[0], command="".join(page[1:]), n=n)))


def _commands() -> str:
    """Return a table of the command's seconds, with one process and with two, whose rows are equal."""
    two = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")
    rows, tables = [], []
    for name, words in (("one process", ()), ("two worker processes", two)):
        with tempfile.TemporaryDirectory() as folder:
            seconds = on_electricity(Path(folder) / "out", *words)
            tables.append(pq.read_table(Path(folder) / "out" / "rows.parquet"))
        rows.append([name, f"{seconds:.0f}"])
    if not tables[0].equals(tables[1]):
        raise AssertionError("two workers gave other rows than one")
    return table(["electricity.csv.gz, 4 learners x 10 folds", "seconds (asked: 180)"], rows)


_PAGE = """# What folds of learners cost

Written by `python -m benchmarks.prequential`.

## The harness

Microseconds of processor time for every (instance, learner, fold), without the learner's own calls.
Bootstrap tests and trains 63% of these. Measured on {n:,} instances, 4 learners x 10 folds, `--window
last:1000 --every 1000`, AUC and the rest in every row, DeLong's test for every pair, fold and checkpoint.
The learner does nothing. The median of three turns.

{harness}

## The whole command

By the clock, from the start of the process to its end, with a page written. Two workers give the same rows.

{command}
"""


if __name__ == "__main__":
    main(sys.argv[1:])
