"""Bifet et al. 2015 again: tables 1 and 5, times, and all that other modules measure."""

from __future__ import annotations

import sys
import time
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rocsteady.core.compare.significance import sign_test, wilcoxon
from rocsteady.core.evaluator.evaluator import ModelEvaluator
from rocsteady.core.events.records import EndOfInput
from rocsteady.core.prequential.fold import PrequentialFold
from rocsteady.core.prequential.fold_settings import PrequentialSettings
from rocsteady.core.prequential.folds import METHODS, Folds
from rocsteady.core.prequential.learners import LearnerSpec
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.settings.windows import AllEvents, EveryEvents
from scipy.stats import binom

from .bifet2015_figures import Sizes as FigureSizes
from .bifet2015_figures import figure_2, figure_3, figure_4
from .bifet2015_numbers import CLASSIFIER_A, CLASSIFIER_B, SECONDS
from .bifet2015_runs import ALPHA, FOLDS, PAPER_WINS, run_all
from .bifet2015_streams import PAPER_LENGTH, STREAMS, stream_of, width_of
from .bifet2015_tables import looks, noise_filter, table_2, table_3, table_4
from .drawing import machine, prose, table, verdict
from .online_forest import TREES

PAPER_RUNS = 50
TURNS = 3
_MODES = (False, True)


class Sizes(NamedTuple):
    """How much is measured."""

    count: int  # instances of a stream
    runs: int
    timed: int  # instances of a run whose time is taken
    figures: FigureSizes


FULL = Sizes(10_000, 20, 3000, FigureSizes(45_312, 250, 2000, 1000, 50))
QUICK = Sizes(400, 2, 150, FigureSizes(4000, 250, 500, 300, 12))


def report(folder: Path, quick: bool = False) -> str:
    """Measure, write the pictures into the folder and return the text. 8 minutes of a core; quick: 30 s."""
    sizes = QUICK if quick else FULL
    rejections = run_all(STREAMS, sizes.count, sizes.runs, lambda text: print(text, file=sys.stderr))
    parts = [
        "# Bifet et al. 2015, Efficient online evaluation of big data stream classifiers\n",
        "Written by `python -m benchmarks.papers bifet2015`. "
        + machine(f"forests are compiled by numba, the trees are those of river {metadata.version('river')}"),
        scale(sizes),
        table_1(),
        table_2(rejections),
        times(sizes),
        table_3(rejections),
        table_4(rejections),
        looks(rejections, folder),
        noise_filter(rejections),
        figure_2(folder, sizes.figures),
        figure_3(folder, sizes.figures),
        figure_4(folder, sizes.figures),
        table_5(),
    ]
    return "\n".join(parts)


def scale(sizes: Sizes) -> str:
    wide = width_of(50_000, sizes.count)
    return (
        "## The scale\n\n"
        + prose(
            f"{len(STREAMS)} streams as in the paper, by {sizes.runs} runs where it has {PAPER_RUNS}, of "
            f"{FOLDS} folds each. A stream has {sizes.count:,} instances: the first of Covertype, "
            f"Electricity and Poker, which the paper takes whole (581,012, 45,312 and a million), and made "
            f"by river's generators, anew for every run, where the paper's have {PAPER_LENGTH:,} (it says so "
            f"of figure 4 alone). Widths of drifts are scaled like lengths: the 50,000 in the name of a "
            f"stream are {wide:,} here, 50 are {width_of(50, sizes.count)}; drifts stand at each quarter. "
            f"Speeds of hyperplanes and centroids are per instance, and as in the paper: over a stream they "
            f"go a hundredth as far where it is a hundredth as long."
        )
        + "\n"
        + prose(
            f"The paper's learners are random forests with other seeds. Here a learner is an online random "
            f"forest (Saffari et al. 2009) of {TREES} trees, compiled, of some microseconds an instance: "
            f"river's adaptive forest takes about a thousand, and {len(STREAMS) * sizes.runs * 3 * 20:,} "
            f"forests are trained here. It has what the experiment is about: bagging, random splits, and an "
            f'accuracy that depends on the seed. Every (learner, fold) has a seed of its own. "No change" is '
            f"forest a against forest b; noise of .05 and .10 is a against b, the predictions of b disturbed "
            f"by the noise filter: the same algorithm, not the same forest, as with two learners of one job."
        )
    )


def table_1() -> str:
    signs, ranks = sign_test(CLASSIFIER_A, CLASSIFIER_B), wilcoxon(CLASSIFIER_A, CLASSIFIER_B)
    exact = 2 * float(binom.cdf(FOLDS - PAPER_WINS, FOLDS, 0.5))
    rows = [
        ("folds in which A is better", "8", str(signs.wins_a)),
        ("sign test", "rejects, by w = 8", f"p = {signs.p_value:.3f}: {_rejects(signs.p_value)}"),
        ("ranks for A", "53", f"{ranks.rank_sum_a:g}"),
        ("ranks for B", "3", f"{ranks.rank_sum_b:g}"),
        ("Wilcoxon", "rejects, 3 < 8", f"p = {ranks.p_value:.4f}: {_rejects(ranks.p_value)}"),
    ]
    total = ranks.rank_sum_a + ranks.rank_sum_b
    return (
        "## Table 1: two classifiers, ten folds\n\n"
        + table(("", "the paper", "here"), rows)
        + "\n- **Misprints**: "
        + prose(
            f"ten ranks sum to {total:g}, so 53 and 3 cannot both be right. And {PAPER_WINS} wins of {FOLDS} "
            f"have the two-sided p-value {exact:.3f}: at .05 the sign test takes 9. The text below table 2 "
            "says what that means for the paper's rejections."
        )
    )


def times(sizes: Sizes) -> str:
    """Time the machines of `rocsteady prequential` with a learner of river's."""
    stream = stream_of("Electricity", sizes.timed, 0)
    record = stream.batch("UP").pack()
    spent: dict[tuple[str, bool], list[float]] = {
        (method, prequential): [] for method in METHODS for prequential in _MODES
    }
    for _ in range(TURNS):
        for (method, prequential), seconds in spent.items():
            settings = PrequentialSettings(
                (LearnerSpec.parse("hoeffding"),), Folds(method, FOLDS, 1, prequential),
                EvaluatorSettings(measures=("auc", "accuracy")),
            )  # fmt: skip
            machines = [PrequentialFold(settings, 0, fold) for fold in range(FOLDS)]
            start = time.process_time()
            for fold in machines:
                fold.apply(record)
                fold.apply(EndOfInput().pack())
            seconds.append(time.process_time() - start)
    median = {key: float(np.median(seconds)) for key, seconds in spent.items()}
    ratio = {method: median[method, True] / median[method, False] for method in METHODS}
    rows = []
    for method in METHODS:
        theirs = [SECONDS[method, p] for p in _MODES]
        factor = float(np.mean(np.array(theirs[1]) / np.array(theirs[0])))
        rows.append(
            (
                method, *(f"{median[method, p]:.2f}" for p in _MODES), f"{ratio[method]:.2f}",
                *(f"{each[0]:g}" for each in theirs), f"{factor:.2f}",
            )
        )  # fmt: skip
    head = ("method", "not, s", "prequential, s", "ratio", "the paper: not, s", "prequential, s", "ratio")
    holds = all(ratio[method] <= 1.05 for method in ("bootstrap", "split"))
    return (
        "### Times\n\n"
        + table(head, rows)
        + "\n"
        + prose(
            f"Processor time of the machines of {FOLDS} folds of one river Hoeffding tree over "
            f"{sizes.timed:,} instances of Electricity, harness included, medians of {TURNS} turns. The "
            f"paper's are runs of its forests under no change."
        )
        + "\n- **The paper**: prequential takes less time by bootstrap (.92) and split (.26), more by cv.\n"
        "- **Here**: "
        + prose(
            f"{ratio['bootstrap']:.2f} by bootstrap, {ratio['split']:.2f} by split, {ratio['cv']:.2f} by cv. "
            f"That it costs no more by bootstrap and split {verdict(holds)}."
        )
        + "- **Why**: "
        + prose(
            "a fold of the prequential bootstrap reads 63% of the stream and predicts all that it learns; "
            "the other one reads all and predicts 37%. If a prediction cost as much as learning once, and "
            "nothing else cost anything, the ratios would be 1.19 by bootstrap, .20 by split and 1.80 by cv; "
            "if reading were all that costs, .63, .10 and .90. The paper sends instances from machine to "
            "machine, and is nearer to the second; a fold here is handed the stream in packets, and looks "
            "into no more than it uses."
        )
    )


def table_5() -> str:
    labels = np.repeat(np.array([1, 1, 0, 0], np.int8), (40, 30, 5, 25))
    scores = np.repeat(np.array([1.0, 0.0, 1.0, 0.0]), (40, 30, 5, 25))
    settings = EvaluatorSettings(window=AllEvents(), every=EveryEvents(len(labels)))
    row = ModelEvaluator(settings).apply(scores, labels)[-1]
    p0, pm = row.accuracy or 0.0, float(labels.mean())
    values = [
        ("accuracy", ".65", row.accuracy), ("kappa", ".3269", row.kappa), ("MCC", ".3728", row.mcc),
        ("A", ".7024", row.balanced_accuracy), ("G", ".6901", row.g_mean), ("H", ".6780", row.harmonic_mean),
        ("kappa_m, p_m = .70", "-.1667", (p0 - pm) / (1 - pm)),
    ]  # fmt: skip
    rows = [(name, paper, f"{value:.4f}") for name, paper, value in values if value is not None]
    return (
        "## Table 5: 40 and 25 right, 5 and 30 wrong\n\n"
        + table(("", "the paper", "here"), rows)
        + "\n"
        + prose(
            "All values are the evaluator's, except kappa_m. It follows here from p_m = .70, because "
            "the table does not tell the order of the stream."
        )
    )


def _rejects(p: float) -> str:
    return "rejects" if p < ALPHA else "does not reject"
