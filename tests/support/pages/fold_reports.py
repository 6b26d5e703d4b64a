"""Reports of learners in folds over a simulated stream, and what the machines that compare them say."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from rocsteady.core.compare.comparison_settings import ComparisonSettings
from rocsteady.core.compare.comparisons import ComparisonRow, FoldMean
from rocsteady.core.compare.fold_pairs import FoldPairs
from rocsteady.core.compare.fold_report import FoldReport
from rocsteady.core.compare.learners import LearnerComparisons
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.rows.columns import NUMBER_COLUMNS
from rocsteady.core.settings.windows import LastEvents

LEARNERS = ("best", "good", "poor")
SETTINGS = ComparisonSettings(LEARNERS, folds=3, window=LastEvents(50))
HOUR = 3_600_000_000


def reports_of(
    checkpoints=6, instances=40, settings=SETTINGS, seed=3, failing=0.05, by_time=True, grid=False, skill=0.5
):
    """Return the reports of all learners in all folds, checkpoint by checkpoint.

    instances  that a fold tests between two checkpoints, more or less; `failing` of them a learner fails at
    skill      by which scores tell classes apart, for each learner less
    """
    random, columns = np.random.default_rng(seed).spawn(2)  # a further column changes nothing else
    reports = []
    failures = np.zeros((settings.folds, len(settings.learners)), np.int64)
    for checkpoint in range(checkpoints):
        moment = (checkpoint + 1) * HOUR
        for fold in range(settings.folds):
            n = int(random.integers(instances // 2, instances + 1))
            labels = random.integers(0, 2, n).astype(np.int8)
            times = np.sort(moment - random.integers(0, 6, n) * (HOUR // 6))
            for learner in range(len(settings.learners)):
                scores = np.round(random.normal(labels * skill * (len(settings.learners) - learner), 1), 1)
                missing = random.random(n) < failing
                scores[missing] = np.nan
                failures[fold, learner] += missing.sum()
                measures = columns.random(len(NUMBER_COLUMNS)) - learner / 9
                measures[columns.random(len(measures)) < 0.1] = np.nan
                reports.append(
                    FoldReport(
                        learner=learner,
                        fold=fold,
                        checkpoint=checkpoint,
                        seq=(checkpoint + 1) * instances * 2,
                        time=moment if by_time else NO_TIME,
                        due=moment if grid else NO_TIME,
                        failures=int(failures[fold, learner]),
                        digest=checkpoint,
                        measures=measures,
                        wrong=(scores >= 0.5) != labels,
                        missing=missing if missing.any() else np.zeros(0, np.bool_),
                        labels=labels,
                        scores=scores,
                        times=times if by_time else np.zeros(0, np.int64),
                    )
                )
    return reports


class Compared(NamedTuple):
    """What comes out of all machines."""

    comparisons: list[ComparisonRow]
    means: list[FoldMean]


def compared(settings: ComparisonSettings, records: list[bytes]) -> Compared:
    """Return what the machines say of packed reports, without a runner."""
    folds = [FoldPairs(settings, fold) for fold in range(settings.folds)]
    over_folds = LearnerComparisons(settings)
    found = Compared([], [])
    for record in records:
        for output in folds[FoldReport.unpack(record).fold].apply(record):
            rows = over_folds.apply(output) if isinstance(output, bytes) else [output]
            for row in rows:
                (found.means if isinstance(row, FoldMean) else found.comparisons).append(row)
    return found
