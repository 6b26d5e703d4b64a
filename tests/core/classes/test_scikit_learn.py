"""Every row of a window against scikit-learn, which computes it anew from the events in the window."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.classes.evaluator import MulticlassEvaluator

from tests.support.thorough import few, others_slow

metrics = pytest.importorskip("sklearn.metrics")

KINDS = ("tied", "random", "sorted", "one class", "absent class", "late class")
WINDOWS = {
    "last:25": rs.LastEvents(25),
    "last:30s": rs.LastDuration("30s"),
    "fading": rs.Fading(12),
    "all": rs.AllEvents(),
}


def stream(kind, classes, events=50):
    """Return labels, and scores that are probabilities in 2^-20ths: their sums are 1 exactly."""
    rng = np.random.default_rng(classes)
    labels = rng.integers(0, classes, events)
    if kind == "one class":
        labels[:20] = 1
    elif kind == "absent class":
        labels[labels == classes - 1] = 0
    elif kind == "late class":
        labels[:30][labels[:30] == 0] = 1
    scores = np.exp(rng.normal(size=(events, classes)) + 1.5 * (labels[:, np.newaxis] == np.arange(classes)))
    steps = 2 * classes if kind == "tied" else 2**20
    scores = np.floor(scores / scores.sum(axis=1, keepdims=True) * steps)
    scores[:, -1] += steps - scores.sum(axis=1)
    if kind == "sorted":
        scores = scores[np.argsort(scores[:, 0])]
    return labels, scores / steps


def held(window, n, times):
    """Return the numbers of the events that a window holds after n events, and their weights."""
    numbers = np.arange(n)
    if isinstance(window, rs.LastEvents):
        numbers = numbers[-25:]
    elif isinstance(window, rs.LastDuration):
        numbers = numbers[times[:n] > times[n - 1] - 30]
    weights = np.exp2((numbers - (n - 1)) / 12) if isinstance(window, rs.Fading) else np.ones(len(numbers))
    return numbers, weights


def ranked_right(scores, own, rest, weights):
    """Return the share of the pairs of two groups that a score ranks right, by looking at every pair."""
    a, b = scores[own][:, np.newaxis], scores[rest]
    right = weights[own] @ ((a > b) + (a == b) / 2) @ weights[rest]
    return right / (weights[own].sum() * weights[rest].sum())


def theirs(labels, scores, weights):
    """Return macro, weighted and M, by pairs of events and by scikit-learn, where it has them; else None."""
    some = np.unique(labels)
    if len(some) < 2:
        return None, None, None
    aucs = [ranked_right(scores[:, c], labels == c, labels != c, weights) for c in some]
    shares = [weights[labels == c].sum() for c in some]
    found = [float(np.mean(aucs)), float(np.average(aucs, weights=shares))]
    if (weights != 1).any():
        return *found, None
    pairs = [
        ranked_right(scores[:, i], labels == i, labels == j, weights) for i in some for j in some if i != j
    ]
    if len(some) == scores.shape[1] > 2 and len(labels) % 5 == 0:
        for kind, average, mine in (
            ("ovr", "macro", found[0]),
            ("ovr", "weighted", found[1]),
            ("ovo", "macro", float(np.mean(pairs))),
        ):
            same = metrics.roc_auc_score(labels, scores, multi_class=kind, average=average)
            assert mine == pytest.approx(same, abs=1e-12)
    return *found, float(np.mean(pairs))


@pytest.mark.parametrize(
    ("kind", "classes", "window", "intervals"),
    others_slow(product(few(2, KINDS), [2, 3, 10], WINDOWS, [True, False])),
)
def test_every_prefix_is_that_of_pairs_and_of_scikit_learn(kind, classes, window, intervals):
    labels, scores = stream(kind, classes)
    times = np.cumsum(np.random.default_rng(1).integers(0, 4, len(labels)))
    names = [f"c{number}" for number in range(classes)]
    ev = MulticlassEvaluator(
        names, window=WINDOWS[window], every=rs.EveryEvents(1), class_rows=False, intervals=intervals
    )
    rows = ev.update(np.array(names)[labels], scores, times=times)
    assert len(rows) == len(labels)
    for n, means in enumerate(rows.columns.means, 1):
        numbers, weights = held(WINDOWS[window], n, times)
        expected = theirs(labels[numbers], scores[numbers], weights)
        assert (means.auc_macro is None) == (expected[0] is None)
        if expected[0] is not None:
            assert means.auc_macro == pytest.approx(expected[0], abs=1e-12)
            assert means.auc_weighted == pytest.approx(expected[1], abs=1e-12)
        if expected[2] is not None:
            assert means.auc_m == pytest.approx(expected[2], abs=1e-12)


@pytest.mark.parametrize(("classes", "window"), others_slow(product([1, 2, 4], WINDOWS)))
def test_every_prefix_of_several_labels_is_that_of_scikit_learn(classes, window):
    _, scores = stream("tied", max(2, classes))
    scores = scores[:, :classes]
    rng = np.random.default_rng(classes)
    members = rng.random(scores.shape) < 0.2 + 0.6 * scores
    members[:8] = False
    times = np.cumsum(rng.integers(0, 4, len(scores)))
    ev = MulticlassEvaluator(
        [f"c{number}" for number in range(classes)], window=WINDOWS[window], every=rs.EveryEvents(1),
        multi_label=True, class_rows=False,
    )  # fmt: skip
    rows = ev.update(members, scores, times=times)
    for n, means in enumerate(rows.columns.means, 1):
        numbers, weights = held(WINDOWS[window], n, times)
        of, given = members[numbers], scores[numbers]
        some = np.flatnonzero(of.any(axis=0) & ~of.all(axis=0))
        assert (means.auc_macro is None) == (not len(some))
        if len(some):
            for average, value in (("macro", means.auc_macro), ("weighted", means.auc_weighted)):
                same = metrics.roc_auc_score(
                    of[:, some], given[:, some], average=average, sample_weight=weights
                )
                assert value == pytest.approx(same, abs=1e-12)
