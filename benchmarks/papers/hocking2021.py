"""Hocking & Hillman 2021 again: AUM and AUC of changepoint problems, unbalanced classes, computation time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rocsteady.core.arrays import FloatArray
from rocsteady.core.learning.aum.aum import aum, aum_of_labels
from rocsteady.core.learning.aum.descent import (
    Criterion,
    Descent,
    DescentSettings,
    Design,
    ErrorLoss,
    Examples,
    descend,
    scaling_of,
)
from rocsteady.core.learning.aum.error_functions import ErrorFunctions
from rocsteady.core.learning.aum.penalty_learner import fit_by_cross_validation

from .drawing import Line, Panel, draw, machine, prose, table, verdict
from .hocking2021_data import Classes, Problems, classes, neuroblastoma, unbalanced
from .hocking2021_losses import contenders, logistic, squared_hinge, squared_hinge_of_pairs

LOOPING = ("4.2", "513.3")
"""The two problems of the slides whose AUC is 2 where their predictions differ by 5."""

PATIENCE = 50


class Sizes(NamedTuple):
    """How much is measured."""

    folds: int
    starts: int
    steps: int
    shares: tuple[float, ...]
    seeds: int
    times: tuple[int, ...]
    pairs: int  # examples at the most for the loss of all pairs
    turns: int


FULL = Sizes(
    5, 4, 300, (0.01, 0.02, 0.05, 0.1, 0.2, 0.5), 5, (100, 1000, 10_000, 100_000, 1_000_000), 10_000, 7
)
QUICK = Sizes(2, 1, 20, (0.05, 0.5), 2, (100, 1000), 1000, 3)


class Trial(NamedTuple):
    """AUM and AUC of problems left out: of the start, of the least validation AUM, of the greatest AUC."""

    fold: str
    aum: tuple[float, float, float]
    auc: tuple[float, float, float]


def report(folder: Path, quick: bool = False) -> str:
    """Measure, write the pictures into the folder and return the text. Some minutes; quick: seconds."""
    sizes = QUICK if quick else FULL
    problems = neuroblastoma()
    parts = [
        "# Hocking & Hillman 2021, Optimizing ROC curves with a sort-based surrogate loss\n",
        "Written by `python -m benchmarks.papers hocking2021`. AUM is `rocsteady.aum`, the learners are "
        "those of `rocsteady.AumPenaltyLearner` and `rocsteady.AumLinearClassifier`. "
        + machine("AUM is compiled by numba, the other losses are numpy's"),
        _scale(problems, sizes),
        looping_curve(problems, folder),
        learning_curves(problems, sizes, folder),
        changepoints(problems, sizes, folder),
        unbalanced_classes(sizes, folder, quick),
        computation_time(sizes, folder),
    ]
    return "\n".join(parts)


def _scale(problems: Problems, sizes: Sizes) -> str:
    return prose(
        f"""Scale: one changepoint data set, neuroblastoma ({len(problems.errors):,} problems,
        {problems.features.shape[1]} features), where the paper has five, so that its five panels are folds by
        profile and by chromosome here; {sizes.starts} starts each, as there. Of the unbalanced classes
        {sizes.seeds} draws, from scikit-learn's digits (8 x 8 pixels, in place of the zip codes' 16 x 16) and
        from covtype and electricity."""
    )


# ------------------------------------------------------------------------------------- a looping curve


def looping_curve(problems: Problems, folder: Path) -> str:
    pair = problems.errors.take([problems.errors.names.index(name) for name in LOOPING])
    differences = np.linspace(3.0, 8.0, 501)
    curves = [pair.roc([0.0, d]) for d in differences]
    auc = np.array([curve.auc for curve in curves], float)
    area = np.array([curve.aum for curve in curves])
    at_5 = pair.roc([0.0, 5.0])
    zero = auc[area == 0.0]
    panels = [
        Panel("Two problems", "difference of predictions", "", [Line("AUM", differences, area)]),
        Panel("Their ROC curve", "difference of predictions", "", [Line("AUC", differences, auc)]),
    ]
    return (
        f"## A curve that loops\n\n{draw(folder / 'hocking2021-1.svg', panels)}\n"
        "- **The paper**: two labelled problems have AUC 2 where their predictions differ by 5; AUM = 0 "
        "implies AUC = 1.\n"
        f"- **Here**: problems {' and '.join(LOOPING)} have AUC {at_5.auc:g} and AUM {at_5.aum:.3f} there, "
        f"which {verdict(at_5.auc == 2.0)}. AUM is 0 at {len(zero)} of {len(differences)} differences, and "
        f"AUC is 1 at {int((zero == 1.0).sum())} of those. The greatest AUC is {auc.max():g}, with AUM "
        f"{area[auc.argmax()]:.3f}: to maximise AUC would be to go there.\n"
        "- **Why they differ**: the slides leave out one exception. Where FP begins and FN ends at one "
        "threshold, AUM is 0 and AUC is below 1 (1/2 for two equal predictions of both classes).\n"
    )


# --------------------------------------------------------------------------------------- learning curves


class Split(NamedTuple):
    """Problems to descend on, to stop by, and left out; scaled by the first."""

    train: Examples
    valid: Examples
    test: Examples
    start: FloatArray


def split(problems: Problems, left_out: np.ndarray, seed: int, only_kept: bool = True) -> Split:
    """Cut the rest at random, two thirds to descend on; start from the interval regression of that part.

    only_kept  leave out the features that the regression does, as AumPenaltyLearner

    A start that has seen the validation problems looks better on them than it is, and is not left.
    """
    rng = np.random.default_rng(seed)
    rest = rng.permutation(np.flatnonzero(~left_out))
    train, valid = np.split(rest, [2 * len(rest) // 3])
    features = problems.features
    low, high = problems.errors.take(train).target_intervals()
    matrix = Design(features[train], scaling_of(features[train])).matrix
    start = fit_by_cross_validation(matrix, low, high, np.arange(len(train)) % 4).weights
    if only_kept:
        features, start = features[:, start != 0], start[start != 0]
    scaling = scaling_of(features[train])
    train_part, valid_part, test_part = (
        Examples(Design(features[rows], scaling), ErrorLoss(problems.errors.take(rows), rate=False))
        for rows in (train, valid, np.flatnonzero(left_out))
    )
    return Split(train_part, valid_part, test_part, start)


def descent(given: Split, criterion: Criterion, steps: int, start: FloatArray | None = None) -> Descent:
    settings = DescentSettings(
        line_search="exact", max_iter=steps, tol=1e-6, early_stopping=criterion, n_iter_no_change=PATIENCE
    )
    return descend(given.train, given.start if start is None else start, settings, given.valid)


def measured(examples: Examples, weights: FloatArray) -> tuple[float, float]:
    predictions = examples.design.predictions(weights)
    auc = examples.loss.roc(predictions).auc
    return examples.loss.aum(predictions).value, np.nan if auc is None else auc


def learning_curves(problems: Problems, sizes: Sizes, folder: Path) -> str:
    by_profile = _fold_of(problems.profiles, sizes.folds)
    given = split(problems, by_profile == 0, 0)
    predictions_curve = _on_predictions(problems, sizes.steps)
    rng = np.random.default_rng(1)
    whole = split(problems, by_profile == 0, 0, only_kept=False)
    random = rng.normal(size=len(whole.start)) / np.sqrt(len(whole.start))
    runs = {
        "from the interval regression": descent(given, "aum", sizes.steps),
        "from random weights": descent(whole, "aum", sizes.steps, random),
    }
    aum_panel = Panel("Linear model: AUM", "step", "AUM", log_y=True)
    auc_panel = Panel("Linear model: AUC", "step", "validation AUC")
    said = []
    for name, run in runs.items():
        steps = np.arange(len(run.aum))
        aum_panel.lines.append(Line(f"{name}, train", steps, run.aum))
        aum_panel.lines.append(Line(f"{name}, validation", steps, run.valid_aum, dashed=True))
        auc_panel.lines.append(Line(name, steps, run.valid_auc))
        said.append(
            f"{name} training AUM falls from {run.aum[0]:.2f} to {run.aum[-1]:.2f}, validation AUM from "
            f"{run.valid_aum[0]:.2f} to {min(run.valid_aum):.2f}, validation AUC rises from "
            f"{run.valid_auc[0]:.4f} to {max(run.valid_auc):.4f}"
        )
    area, auc = predictions_curve
    first = Panel("Predictions themselves: AUM", "step", "AUM", [Line("AUM", np.arange(len(area)), area)])
    second = Panel("Predictions themselves: AUC", "step", "AUC", [Line("AUC", np.arange(len(auc)), auc)])
    return (
        f"## Learning curves\n\n{draw(folder / 'hocking2021-2.svg', [first, second, aum_panel, auc_panel])}\n"
        "- **The paper**: gradient descent of AUM raises the training AUC, on the vector of predictions from "
        "those with the fewest errors, and on the weights of a linear model from a regularised convex loss.\n"
        f"- **Here**: on predictions that start at the middles of the intervals with the fewest errors, "
        f"moved by normal noise, AUM falls from {area[0]:.2f} to {area[-1]:.2f} and AUC goes from "
        f"{auc[0]:.4f} to {auc[-1]:.4f}, which {verdict(auc[-1] >= auc[0] and area[-1] <= area[0])}; "
        f"{'; '.join(said)}.\n"
        "- **Why they differ**: without noise nothing can be gained here, because predictions with the "
        "fewest errors have AUC 1. Steps of the linear model are found along the gradient, not by a "
        "fixed rate.\n"
    )


def _on_predictions(problems: Problems, steps: int) -> tuple[list[float], list[float]]:
    """Descend AUM by 200 predictions, fixed steps; return AUM and AUC after each."""
    rng = np.random.default_rng(2)
    errors = problems.errors.take(rng.permutation(len(problems.errors))[:200])
    low, high = (np.clip(end, -10.0, 10.0) for end in errors.target_intervals())
    f = (low + high) / 2.0 + 3.0 * rng.normal(size=len(errors))
    area, auc = [], []
    for _ in range(steps + 1):
        here = errors.aum(f)
        area.append(here.value)
        auc.append(errors.roc(f).auc or np.nan)
        f = f - 0.02 * here.gradient
    return area, auc


# ----------------------------------------------------------------------------- AUM against AUC, left out


def _fold_of(groups: np.ndarray, folds: int, seed: int = 1) -> np.ndarray:
    """Return a fold for each, the same within a group."""
    names, index = np.unique(groups, return_inverse=True)
    return (np.random.default_rng(seed).permutation(len(names)) % folds)[index]


def changepoints(problems: Problems, sizes: Sizes, folder: Path) -> str:
    by_profile = _fold_of(problems.profiles, sizes.folds)
    folds = {f"profiles {k + 1}": by_profile == k for k in range(sizes.folds)}
    chromosomes = np.unique(problems.chromosomes).tolist()[: 1 if sizes is QUICK else None]
    folds |= {f"chromosome {name}": problems.chromosomes == name for name in chromosomes}
    trials = [
        _trial(problems, name, out, seed, sizes.steps)
        for name, out in folds.items()
        for seed in range(sizes.starts)
    ]
    rows = []
    for name in folds:
        mine = [trial for trial in trials if trial.fold == name]
        area = np.mean([trial.aum for trial in mine], axis=0)
        auc = np.mean([trial.auc for trial in mine], axis=0)
        rows.append((name, *(f"{each:.3f}" for each in area), *(f"{each:.5f}" for each in auc)))
    area, auc = (np.array([getattr(trial, what) for trial in trials]) for what in ("aum", "auc"))
    means, areas = auc.mean(axis=0), area.mean(axis=0)
    rows.append(("mean", *(f"{each:.3f}" for each in areas), *(f"{each:.5f}" for each in means)))
    of_profiles = np.array([trial.fold.startswith("profiles") for trial in trials])
    by_fold = [values.reshape(len(folds), sizes.starts, 3).mean(axis=1) for values in (area, auc)]
    panels = [_ends("Test AUM", "AUM", by_fold[0]), _ends("Test AUC", "AUC", by_fold[1])]
    won = [_won(area, auc, i) for i in (1, 2)]
    good = bool((areas[1:] < areas[0]).all() and (means[1:] > means[0]).all())
    of = {"profiles": of_profiles, "chromosomes": ~of_profiles}
    apart = "; ".join(
        f"{name} left out: AUM {_path(area[rows].mean(axis=0), 3)}, AUC {_path(auc[rows].mean(axis=0), 5)}"
        for name, rows in of.items()
    )
    head = ("left out", "AUM: start", "min valid AUM", "max valid AUC",
            "AUC: start", "min valid AUM", "max valid AUC")  # fmt: skip
    return (
        f"## Changepoint problems: AUM and AUC of those left out\n\n"
        f"{draw(folder / 'hocking2021-3.svg', panels)}\n{table(head, rows)}\n"
        f"Means of {sizes.starts} starts: random two thirds of the rest to descend on, the others to stop "
        "by.\n\n"
        "- **The paper**: descending AUM from the interval regression, with early stopping by validation AUM "
        "or AUC, gives a lower test AUM and a higher test AUC than the regression, in most of five "
        "problems.\n"
        f"- **Here**: over all folds and starts test AUM goes from {_path(areas, 3)}, test AUC from "
        f"{_path(means, 5)}, which {verdict(good)} ({apart}). Stopped by validation "
        f"AUM: {won[0]}; by validation AUC: {won[1]}.\n"
        "- **Why they differ**: on most folds of this data set, hardly anything is better than the "
        "regression; on the other folds the descent gains most. Here the regression has not seen the "
        "validation problems, in the paper it has. Features that the regression leaves out stay out; "
        "with all features the descent gained less. Of steps with equal validation AUC the first is "
        "kept, so stopping by AUC changes the weights less.\n"
    )


def _path(ends: FloatArray, digits: int) -> str:
    """Say from where to where the two descents went."""
    start, of_aum, of_auc = (f"{each:.{digits}f}" for each in ends)
    return f"{start} to {of_aum} and {of_auc}"


def _won(area: FloatArray, auc: FloatArray, i: int) -> str:
    """Say how often the end of a descent is better than its start."""
    lower, same_area = (area[:, i] < area[:, 0]).sum(), (area[:, i] == area[:, 0]).sum()
    higher, same_auc = (auc[:, i] > auc[:, 0]).sum(), (auc[:, i] == auc[:, 0]).sum()
    return (
        f"{lower} of {len(area)} have a lower AUM ({same_area} the same), {higher} a higher AUC ({same_auc} "
        "the same)"
    )


def _trial(problems: Problems, name: str, left_out: np.ndarray, seed: int, steps: int) -> Trial:
    given = split(problems, left_out, seed)
    ends = [given.start, *(descent(given, each, steps).weights for each in ("aum", "auc"))]  # type: ignore[arg-type]
    both = [measured(given.test, weights) for weights in ends]
    areas, aucs = zip(*both, strict=True)
    return Trial(name, areas, aucs)


def _ends(title: str, what: str, by_fold: FloatArray) -> Panel:
    """Draw start and ends of every fold, profiles first."""
    order = np.arange(1, len(by_fold) + 1)
    names = ("interval regression", "min valid AUM", "max valid AUC")
    lines = [Line(name, order, by_fold[:, i], dashed=i == 0, marker=True) for i, name in enumerate(names)]
    return Panel(title, "fold, in the table's order", what, lines)


# ------------------------------------------------------------------------------------ unbalanced classes


def unbalanced_classes(sizes: Sizes, folder: Path, quick: bool) -> str:
    results: dict[str, dict[str, np.ndarray]] = {}
    for given in classes(quick):
        for share in sizes.shares:
            for seed in range(sizes.seeds):
                for name, auc in _test_aucs(given, share, seed, sizes.steps).items():
                    of_data = results.setdefault(given.name, {})
                    aucs = of_data.setdefault(name, np.zeros((len(sizes.shares), sizes.seeds)))
                    aucs[sizes.shares.index(share), seed] = auc
    percent = [100 * share for share in sizes.shares]
    panels, rows = [], []
    for data, by_name in results.items():
        panel = Panel(data, "positives, %", "test AUC", log_x=True)
        for name, aucs in by_name.items():
            panel.lines.append(Line(name, percent, aucs.mean(axis=1), marker=True))
            cells = (f"{row.mean():.3f} ± {row.std():.3f}" for row in aucs)
            rows.append((data, name, *cells))
        panels.append(panel)
    mean = {
        name: np.mean([by_name[name] for by_name in results.values()])
        for name in next(iter(results.values()))
    }
    ahead = {
        (a, b): sum(int((of[a].mean(axis=1) > of[b].mean(axis=1)).sum()) for of in results.values())
        for a, b in (("AUM.count", "AUM.rate"), ("AUM.count", "squared hinge, all pairs"),
                     ("AUM.rate, margin 1", "AUM.count"), ("AUM.count", "logistic"))
    }  # fmt: skip
    cells = len(results) * len(sizes.shares)
    head = ("data", "loss", *(f"{each:g}%" for each in percent))
    in_means = ", ".join(f"{name} {value:.4f}" for name, value in mean.items())
    best = max(value for name, value in mean.items() if not name.startswith("AUM"))
    return (
        f"## Unbalanced classes\n\n{draw(folder / 'hocking2021-4.svg', panels)}\n{table(head, rows)}\n"
        "Test AUC on balanced examples, mean and standard deviation of draws. All are linear models by the "
        "same descent from the difference of the classes' means, stopped by the AUC of a random half of the "
        "training examples.\n\n"
        "- **The paper**: AUM is competitive with logistic regression (identity and balanced weights) and "
        "the squared hinge of all pairs at 1% to 50% positives; AUM of rates is not as useful as AUM "
        "of counts.\n"
        f"- **Here**: mean test AUC of all cells: {in_means}. That AUM is competitive (within .01 of the "
        f"best other in the mean) {verdict(mean['AUM.count'] > best - 0.01)} for counts and "
        f"{verdict(mean['AUM.rate, margin 1'] > best - 0.01)} for rates with a margin. Counts are ahead of "
        f"rates in {ahead['AUM.count', 'AUM.rate']} of {cells} cells, of the squared hinge of all pairs in "
        f"{ahead['AUM.count', 'squared hinge, all pairs']}, of logistic regression in "
        f"{ahead['AUM.count', 'logistic']}; rates with a margin are ahead of counts in "
        f"{ahead['AUM.rate, margin 1', 'AUM.count']}.\n"
        "- **Why they differ**: AUM of binary labels is the perceptron's loss with a free threshold, which "
        "ties cost nothing; with a margin it is the hinge loss, and of rates a balanced one. The paper's "
        "AUM has no margin and relies on stopping early.\n"
    )


def _test_aucs(given: Classes, share: float, seed: int, steps: int) -> dict[str, float]:
    train, valid, test = unbalanced(given, share, seed)
    scaling = scaling_of(given.features[train])
    design, held, tested = (Design(given.features[rows], scaling) for rows in (train, valid, test))
    settings = DescentSettings(max_iter=steps, n_iter_no_change=PATIENCE)
    labels = given.labels
    found = {}
    by_valid = contenders(labels[valid])
    for name, loss in contenders(labels[train]).items():
        start = -design.gradient(loss.aum(np.zeros(len(train))).gradient)
        start /= loss.spread(design.predictions(start))[1] or 1.0
        weights = descend(Examples(design, loss), start, settings, Examples(held, by_valid[name])).weights
        auc = ErrorFunctions.of_labels(labels[test]).roc(tested.predictions(weights)).auc
        found[name] = np.nan if auc is None else auc
    return found


# -------------------------------------------------------------------------------------- computation time


def computation_time(sizes: Sizes, folder: Path) -> str:
    rng = np.random.default_rng(3)
    names = ("logistic", "squared hinge, each example", "AUM by a sort", "AUM by selection",
             "squared hinge, all pairs")  # fmt: skip
    spent: dict[str, list[float]] = {name: [] for name in names}
    for n in sizes.times:
        labels = (rng.random(n) < 0.5).astype(np.int8)
        f = rng.normal(size=n) + labels
        example, zeros, fp, fn = np.arange(n), np.zeros(n), 1.0 - labels, -1.0 * labels
        works: dict[str, Callable[[], object]] = {
            "logistic": lambda f=f, y=labels: logistic(f, y),
            "squared hinge, each example": lambda f=f, y=labels: squared_hinge(f, y),
            "AUM by a sort": lambda f=f, e=example, v=zeros, a=fp, b=fn: aum(f, e, v, a, b),
            "AUM by selection": lambda f=f, y=labels: aum_of_labels(y, f),
        }
        if n <= sizes.pairs:
            works["squared hinge, all pairs"] = lambda f=f, y=labels: squared_hinge_of_pairs(f, y)
        for name, seconds in _in_turns(works, sizes.turns).items():
            spent[name].append(seconds)
    panel = Panel("A loss and its gradient", "examples", "seconds", log_x=True, log_y=True)
    rows = []
    for name, seconds in spent.items():
        panel.lines.append(Line(name, sizes.times[: len(seconds)], seconds, marker=True))
        growth = np.diff(np.log(seconds[-2:]))[0] / np.diff(np.log(sizes.times[: len(seconds)][-2:]))[0]
        cells = [f"{s / b:.2f}" for s, b in zip(seconds, spent["logistic"], strict=False)]
        rows.append((name, *cells, *["-"] * (len(sizes.times) - len(cells)), f"n^{growth:.2f}"))
    sort = np.array(spent["AUM by a sort"]) / spent["logistic"]
    at_pairs = len(spent["squared hinge, all pairs"]) - 1
    pairs = spent["squared hinge, all pairs"][-1] / spent["AUM by a sort"][at_pairs]
    return (
        f"## Computation time\n\n{draw(folder / 'hocking2021-5.svg', [panel])}\n"
        + table(("loss and gradient", *(f"{n:,}" for n in sizes.times), "growth in the last step"), rows)
        + "\nTimes of the logistic loss at as many examples; medians of turns.\n\n"
        "- **The paper**: AUM, O(n log n), takes about as long as the losses of O(n), logistic and squared "
        "hinge of each example; the squared hinge of all pairs grows with n^2.\n"
        f"- **Here**: AUM by a sort takes {sort.min():.1f} to {sort.max():.1f} times the logistic loss, "
        f"which {verdict(bool(sort[-1] < 10))} (within a factor of 10 at {sizes.times[-1]:,}); all pairs "
        f"take {pairs:.0f} times as long as AUM at {sizes.times[at_pairs]:,}.\n"
        "- **Why they differ**: for binary labels AUM needs no sort, because FP and FN cross at a score "
        "that can be selected in O(n). The sort is needed for error functions of any form.\n"
    )


def _in_turns(works: dict[str, Callable[[], object]], turns: int) -> dict[str, float]:
    spent: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        work()
    for _ in range(turns):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            spent[name].append(time.perf_counter() - start)
    return {name: float(np.median(each)) for name, each in spent.items()}
