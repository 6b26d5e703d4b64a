"""AUCs with more than two classes against pairs of events in fractions, scikit-learn, and binary rows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from rocsteady.core.classes.figures import Scan, figures_of_labels, figures_of_window
from rocsteady.core.classes.population import Population
from rocsteady.core.evaluator.evaluator import ModelEvaluator

from tests.support.oracles.classes import classes_truth, one_hot
from tests.support.thorough import few

STREAMS = ("random", "tied", "sorted", "one class", "absent class", "few", "constant", "perfect")


def stream(kind, seed, events=40, classes=4):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, events)
    scores = rng.normal(size=(events, classes)) + (labels[:, np.newaxis] == np.arange(classes))
    if kind == "tied":
        scores = np.round(scores)
    elif kind == "sorted":
        scores, labels = np.sort(scores, axis=0), np.sort(labels)
    elif kind == "one class":
        labels[:] = 2
    elif kind == "absent class":
        labels[labels == 1] = 0
    elif kind == "few":
        labels[:] = 0
        labels[[3, 9]] = 1, 2
    elif kind == "constant":
        scores[:] = 0.25
    elif kind == "perfect":
        scores = (labels[:, np.newaxis] == np.arange(classes)) + rng.uniform(0, 0.5, (events, classes))
    return labels, scores


def assert_same(found, truth, classes):
    """Compare the figures of a window with those of the oracle."""
    if truth.macro is None:
        assert found is None
        return
    values = found.values
    known = [number for number in range(classes) if truth.aucs[number] is not None]
    assert found.classes.tolist() == known
    assert values.aucs == pytest.approx([float(truth.aucs[number]) for number in known], abs=1e-13)
    assert values.macro == pytest.approx(float(truth.macro), abs=1e-13)
    assert values.weighted == pytest.approx(float(truth.weighted), abs=1e-13)
    assert float(truth.aucs[known[values.worst_class]]) == pytest.approx(
        float(truth.worst_class[0]), abs=1e-13
    )
    variances = truth.variances
    if len(values.pair_aucs):
        for (i, j), auc in truth.pairs.items():
            assert values.pair_aucs[known.index(i), known.index(j)] == pytest.approx(float(auc), abs=1e-13)
        assert values.m == pytest.approx(float(truth.m), abs=1e-13)
        assert values.worst_pair_auc == pytest.approx(float(truth.worst_pair[0]), abs=1e-13)
        i, j = (known[place] for place in values.worst_pair)
        assert float(truth.pairs[i, j] + truth.pairs[j, i]) / 2 == pytest.approx(values.worst_pair_auc)
    else:
        variances = variances[:2]
    for place, variance in enumerate(variances):
        if variance is None:
            assert found.variances is None
        else:
            assert found.variances[place] == pytest.approx(float(variance), rel=1e-9, abs=1e-18)
            assert (found.variances[place] == 0) == (float(variance) == 0)


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("seed", few(1, range(5)))
def test_figures_are_those_of_all_pairs_of_events(kind, seed):
    labels, scores = stream(kind, seed)
    truth = classes_truth(one_hot(labels, 4), scores.tolist())
    assert_same(figures_of_window(labels, scores), truth, 4)


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("scale", [1.0, 1e-290, 1e290])
def test_weighted_figures_are_those_of_all_pairs_of_events(kind, scale):
    labels, scores = stream(kind, 3, 24, 3)
    weights = np.random.default_rng(1).integers(1, 9, len(labels)) * scale
    truth = classes_truth(one_hot(labels, 3), scores.tolist(), [Fraction(weight) for weight in weights])
    assert_same(figures_of_window(labels, scores, weights), truth, 3)


def spread_scores(kind, seed, events):
    """Return scores, some of which defeat tables of equal slots."""
    scores = np.random.default_rng(seed).random((events, 3))
    if kind == "steep":
        return scores**60
    if kind == "both ends":
        return np.where(scores < 0.5, -1e300, 1e300) * scores**9 * 1e8
    if kind == "least numbers":
        return np.floor(scores * 300) * 5e-324
    if kind == "outliers":
        return np.where(scores > 0.99, scores * 1e200, scores)
    return np.round(scores, 2) if kind == "tied" else scores


@pytest.mark.parametrize("kind", ["even", "tied", "steep", "both ends", "least numbers", "outliers"])
@pytest.mark.parametrize("events", [40, 290, 1300])
@pytest.mark.parametrize("shares", [(0.5, 0.3, 0.2), (0.01, 0.01, 0.98)])
def test_counted_events_have_the_figures_of_a_scan_of_all_orders_to_the_last_bit(kind, events, shares):
    labels = np.random.default_rng(events).choice(3, events, p=shares)
    labels[:6] = 0, 1, 2, 0, 1, 2
    scores = spread_scores(kind, events, events)
    assert np.isfinite(scores).all()
    found = figures_of_window(labels, scores)
    population = Population(labels, 3, None, None)
    scan, pairs = Scan(population), np.zeros((3, 3), np.int64)
    means = np.stack([np.full(3, 1 / 3), population.masses / events])
    aucs = [scan.weigh(scores[:, own], own, np.ones(3), means[:, own], pairs[own], True) for own in range(3)]
    assert found.values.aucs.tolist() == aucs
    assert (
        found.values.pair_aucs == pairs / (2.0 * population.masses[:, np.newaxis] * population.masses)
    ).all()
    scan.add_shares(found.values)
    assert found.variances.tolist() == [*scan.variances(), scan.variance_of_m()]


@pytest.mark.parametrize("kind", ["random", "tied", "absent class"])
def test_a_silent_class_that_faded_keeps_its_figures(kind):
    labels, scores = stream(kind, 5, 30, 3)
    ages = np.arange(30)[::-1] / 7
    ages[labels == 0] += 150
    truth = classes_truth(one_hot(labels, 3), scores.tolist(), [Fraction(2.0**-age) for age in ages])
    assert_same(figures_of_window(labels, scores, None, ages), truth, 3)
    ages[labels == 0] += 5_000
    found = figures_of_window(labels, scores, None, ages)
    for (i, j), auc in truth.pairs.items():
        place = [found.classes.tolist().index(each) for each in (i, j)]
        assert found.values.pair_aucs[tuple(place)] == pytest.approx(float(auc), abs=1e-13)
    assert np.isfinite(found.variances).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", few(2, range(6)))
def test_figures_of_several_labels_are_those_of_all_pairs_of_events(seed, weighted):
    rng = np.random.default_rng(seed)
    members = rng.random((30, 5)) < [0.5, 0.2, 0.9, 0, 1]
    scores = np.round(rng.normal(size=(30, 5)) + members, 1)
    weights = rng.integers(1, 5, 30) / 2 if weighted else None
    truth = classes_truth(members.tolist(), scores.tolist(), None if weights is None else weights.tolist())
    assert_same(figures_of_labels(members, scores, weights), truth, 5)


@pytest.mark.parametrize("kind", ["random", "tied"])
def test_figures_are_those_of_scikit_learn(kind):
    metrics = pytest.importorskip("sklearn.metrics")
    labels, scores = stream(kind, 2, 300, 5)
    scores = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    if kind == "tied":
        scores = np.round(scores * 8)
        scores[:, -1] += 32 - scores.sum(axis=1)
        scores /= 32
    values = figures_of_window(labels, scores).values
    for average, value in (("macro", values.macro), ("weighted", values.weighted)):
        theirs = metrics.roc_auc_score(labels, scores, multi_class="ovr", average=average)
        assert value == pytest.approx(theirs, abs=1e-12)
    theirs = metrics.roc_auc_score(labels, scores, multi_class="ovo", average="macro")
    assert values.m == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("kind", ["random", "tied", "few", "constant"])
@pytest.mark.parametrize("seed", few(2, range(6)))
def test_two_classes_are_the_binary_row_to_the_last_bit(kind, seed):
    rng = np.random.default_rng(seed)
    labels = (rng.random(200) < 0.3).astype(np.int64)
    p = rng.integers(0, 2**20, 200) / 2**20
    if kind == "tied":
        p = np.round(p * 8) / 8
    elif kind == "few":
        labels[:] = 0
        labels[[4, 7]] = 1
    elif kind == "constant":
        p[:] = 0.25
    ev = ModelEvaluator()
    ev.update(labels, p)
    row = ev.measures()
    found = figures_of_window(labels, np.column_stack([1 - p, p]))
    values = found.values
    assert {values.macro, values.weighted, values.m, *values.aucs} == {row.auc}
    half_width = (row.auc_high - row.auc) if row.auc_high < 1 else row.auc - row.auc_low
    assert np.sqrt(found.variances) * 1.959963984540054 == pytest.approx(half_width, rel=1e-12)


def test_the_variance_of_one_class_is_that_of_its_binary_row():
    rng = np.random.default_rng(4)
    members = rng.random((300, 1)) < 0.4
    scores = np.round(rng.normal(size=(300, 1)) + members, 1)
    ev = ModelEvaluator()
    ev.update(members[:, 0], scores[:, 0])
    row, found = ev.measures(), figures_of_labels(members, scores)
    assert {found.values.macro, found.values.weighted} == {row.auc}
    half_widths = np.sqrt(found.variances[:2]) * 1.959963984540054
    assert half_widths == pytest.approx(row.auc_high - row.auc, rel=1e-12)
