"""A fit from scans alone is one from all rows at hand: sums, line search, gradient, parts, weights."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.polynomial.chebyshev import chebval, chebvander
from rocsteady.core.arrays import FloatArray
from rocsteady.core.errors import ConfigError, InputError
from rocsteady.core.learning.polynomial.chebyshev import moments_of_mixtures, slopes_by_class
from rocsteady.core.learning.polynomial.fit import FitSettings, PolynomialAucModel, begin
from rocsteady.core.learning.polynomial.line import Line
from rocsteady.core.learning.polynomial.objectives import PairObjective
from rocsteady.core.learning.polynomial.passes import (
    FeatureSums,
    GradientSums,
    GradientTask,
    LineSums,
    LineTask,
    Span,
    checked_rows,
    turned,
)
from rocsteady.core.learning.polynomial.standardised_rows import Slopes, Standardiser
from scipy import sparse
from sklearn.metrics import roc_auc_score

DEGREE = 9


def rows(n: int = 300, m: int = 4, seed: int = 1, apart: float = 1.0) -> tuple[FloatArray, Any, FloatArray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    features = rng.normal(size=(n, m)) * np.geomspace(0.1, 100, m) + 7
    features[:, 0] += 0.1 * apart * labels
    features[:, 1] += 0.5 * apart * labels * features[:, 1].std()
    return features, labels, rng.integers(1, 4, n).astype(float)


def fitted(
    features: Any, labels: Any, weights: Any = None, parts: int = 1, start: Any = None, **settings: Any
) -> PolynomialAucModel:
    state = begin(FitSettings(**settings), start)
    while state.is_running:
        total = state.new_sums()
        for part in np.array_split(np.arange(len(labels)), parts):
            sums = state.new_sums()
            given = None if weights is None else weights[part]
            sums.add(*checked_rows(features[part], labels[part], given))
            total.merge(sums)  # type: ignore[arg-type]
        state = pickle.loads(pickle.dumps(state.after(total)))  # as it travels to workers
    return state.model()


def scanned(sums: Any, features: Any, labels: Any) -> Any:
    sums.add(features, labels, None)
    return sums


def close(a: PolynomialAucModel, b: PolynomialAucModel, digits: float) -> None:
    scale = np.abs(a.coef).max()
    np.testing.assert_allclose(b.coef / scale, a.coef / scale, atol=digits)
    assert b.intercept == pytest.approx(a.intercept, rel=digits, abs=digits)
    assert (b.stop_reason, b.classes) == (a.stop_reason, a.classes)


def line_task(features: FloatArray, seed: int = 2, reach: float = 1.0) -> LineTask:
    rng = np.random.default_rng(seed)
    m = features.shape[1]
    standardiser = Standardiser(features.mean(axis=0), 1 / features.std(axis=0), reach)
    shares = np.array([0.01, 0.1, 0.5])
    return LineTask(standardiser, (0, 1), DEGREE, rng.normal(size=m), rng.normal(size=m), shares)


def scaled(scores: FloatArray, span: Span) -> FloatArray:
    return (scores - span.middle) / span.half


def drawn_in(task: LineTask, features: FloatArray) -> FloatArray:
    """Standardised rows, none farther than the radius; the definition."""
    z = (features - task.standardiser.mean) * task.standardiser.inverse
    far = np.sqrt((z**2).sum(axis=1)) / task.standardiser.radius
    return z / np.maximum(1, far)[:, None]


def test_moments_of_classes_are_those_of_their_rows() -> None:
    features, labels, weights = rows()
    features[:, 3] = 0.1  # constant, and no binary fraction
    total = FeatureSums()
    for part in np.array_split(np.arange(300), 11):
        sums = FeatureSums()
        sums.add(features[part], labels[part], weights[part])
        total.merge(sums)
    assert total.rows == 300
    for label in (0, 1):
        chosen = labels == label
        moments = total.classes[label]
        mean = np.average(features[chosen], axis=0, weights=weights[chosen])
        assert moments.weight == weights[chosen].sum()
        np.testing.assert_allclose(moments.mean, mean, rtol=1e-13)
        squares = weights[chosen] @ (features[chosen] - mean) ** 2
        np.testing.assert_allclose(moments.squares, squares, rtol=1e-12, atol=1e-25)
    np.testing.assert_array_equal([total.low, total.high], [features.min(axis=0), features.max(axis=0)])


@pytest.mark.parametrize("parts", [1, 7])
@pytest.mark.parametrize("reach", [0.8, np.inf])
def test_line_sums_are_sums_of_products_by_spans_found_on_the_way(parts: int, reach: float) -> None:
    features, labels, weights = rows()
    features = features[np.argsort(features[:, 2])]  # spans grow all the time
    task = line_task(features, reach=reach)
    total = LineSums(task)
    for part in np.array_split(np.arange(300), parts):
        sums = LineSums(task)
        for few in np.array_split(part, 5):
            sums.add(features[few], labels[few], weights[few])
        total.merge(sums)
    z = drawn_in(task, features)
    vectors = []
    for span, vector in zip(total.spans, (task.weights, task.direction), strict=True):
        scores = z @ vector
        assert (span.low, span.high) == pytest.approx((scores.min(), scores.max()), abs=1e-12)
        vectors.append(chebvander((scores - span.middle) / span.half, DEGREE))
    for positive in (0, 1):
        chosen = labels == positive
        wanted = (vectors[0][chosen] * weights[chosen, None]).T @ vectors[1][chosen]
        np.testing.assert_allclose(total.sums[positive], wanted, atol=1e-11)
        scores = z[chosen] @ task.weights
        assert tuple(total.ranges[positive]) == pytest.approx((scores.min(), scores.max()), abs=1e-12)


def test_polynomials_of_a_wider_span_are_series_of_those_of_the_narrower() -> None:
    old, new = Span(-0.2, 0.9), Span(-3.0, 1.0)
    v = np.linspace(-1, 1, 50)
    u = (old.middle + old.half * v - new.middle) / new.half
    matrix = turned(old, new, DEGREE)
    np.testing.assert_allclose(chebvander(v, DEGREE) @ matrix.T, chebvander(u, DEGREE), atol=1e-14)
    assert not np.triu(matrix, 1).any()
    assert np.abs(turned(Span(1.0, 1.0), Span(0.0, 3.0), DEGREE)[:, 1:]).max() < 1e-14


@pytest.mark.parametrize("degree", [2, 3, 9, 30])
def test_moments_of_mixtures_are_those_of_their_scores(degree: int) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.uniform(-1, 1, (2, 60))
    weights = rng.uniform(0.5, 2, 60)
    sums = (chebvander(a, degree) * weights[:, None]).T @ chebvander(b, degree)
    order = np.arange(degree + 1)
    sums[order[:, None] + order > degree] = np.nan  # they are not looked at
    mixtures = np.array([[1.0, 0.0, 0.0], [0.7, 0.3, 0.0], [0.2, 0.6, -0.2], [0.0, 1.0, 0.0]])
    moments = np.empty((4, degree + 1))
    moments_of_mixtures(sums, *mixtures.T.copy(), moments)
    for found, (p, q, c) in zip(moments, mixtures, strict=True):
        np.testing.assert_allclose(found, weights @ chebvander(p * a + q * b + c, degree), atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_the_line_search_finds_what_a_search_over_the_rows_finds(seed: int) -> None:
    features, labels, weights = rows(seed=seed)
    task = line_task(features, seed=seed + 100)
    sums = LineSums(task)
    for part in np.array_split(np.arange(300), 4):
        sums.add(features[part], labels[part], weights[part])
    pairs = PairObjective(DEGREE)
    line = Line(sums)
    found = line.search(pairs, stays=False)
    z = drawn_in(task, features)
    assert sums.spans is not None
    a, b = scaled(z @ task.weights, sums.spans[0]), scaled(z @ task.direction, sums.spans[1])

    def scores(alpha: float) -> FloatArray:
        p, q, c = (each[0] for each in line.mixtures(np.array([alpha])))
        return p * a + q * b + c

    def objective(alpha: float) -> float:
        values = chebvander(scores(alpha), DEGREE) * weights[:, None]
        return float(pairs.value(values[labels == 1].sum(axis=0), values[labels == 0].sum(axis=0)))

    grid = np.concatenate([np.linspace(0, 1, 301), np.geomspace(1e-4, 1, 200)])
    assert max(np.abs(scores(alpha)).max() for alpha in grid) <= 1 + 1e-12
    heights = [objective(alpha) for alpha in grid]
    assert found.before == pytest.approx(heights[0], abs=1e-12)
    assert found.after == pytest.approx(objective(found.alpha), abs=1e-12)
    assert found.after > max(heights) - 1e-9
    assert line.search(pairs, stays=True) == (found.before, found.before, 0.0)


def test_a_small_step_costs_no_range() -> None:
    features, labels, weights = rows(seed=3)
    task = line_task(features)
    sums = LineSums(task)
    sums.add(features, labels, weights)
    line = Line(sums)
    z = drawn_in(task, features)
    alphas = np.geomspace(1e-4, 3e-3, 9)
    for alpha, p, q, c in zip(alphas, *line.mixtures(alphas), strict=True):
        assert sums.spans is not None
        a, b = scaled(z @ task.weights, sums.spans[0]), scaled(z @ task.direction, sums.spans[1])
        kept, widened = np.ptp((1 - alpha) * a + alpha * b), np.ptp(p * a + q * b + c)
        assert 2 - widened < 0.3 * (2 - kept)  # but for what lies between two shares


def test_the_gradient_is_a_finite_difference_of_the_mean_over_pairs() -> None:
    features, labels, weights = rows(120)
    line = line_task(features)
    z = drawn_in(line, features)
    pairs = PairObjective(DEGREE)
    w = line.weights / np.abs(z @ line.weights).max() / 1.5
    offset = 0.05

    def objective(w: FloatArray) -> float:
        u = z @ w + offset
        p, n = u[labels == 1], u[labels == 0]
        mass = weights[labels == 1][:, None] * weights[labels == 0]
        by_degree = [
            pairs.pairs[r, s] * np.outer(chebvander(p, DEGREE)[:, r], chebvander(n, DEGREE)[:, s])
            for r in range(DEGREE + 1)
            for s in range(DEGREE + 1 - r)
        ]
        return float((np.sum(by_degree, axis=0) * mass).sum() / mass.sum())

    values = chebvander(z @ w + offset, DEGREE) * weights[:, None]
    slopes = pairs.slopes(values[labels == 1].sum(axis=0), values[labels == 0].sum(axis=0))
    task = GradientTask(line.standardiser, (0, 1), Slopes(w, offset, *slopes))
    for given in (features, sparse.csr_matrix(features)):
        total = GradientSums(task)
        for part in np.array_split(np.arange(120), 3):
            sums = GradientSums(task)
            sums.add(*checked_rows(given[part], labels[part], weights[part]))
            total.merge(sums)
        for j in range(4):
            step = 1e-6 * (np.arange(4) == j)
            rise = (objective(w + step) - objective(w - step)) / 2e-6
            assert total.gradient[j] == pytest.approx(rise, abs=1e-8)


SETTINGS: list[dict[str, Any]] = [
    {},
    {"direction": "gradient"},
    {"reach": None},
    {"objective": "sigmoid"},
    {"degree": 12, "step_fit": "least_squares"},
]


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS)
def test_parts_make_no_difference(settings: dict[str, Any]) -> None:
    given = rows(1000, 6)
    close(fitted(*given, **settings), fitted(*given, parts=13, **settings), 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS)
def test_weights_are_repetitions_and_sparse_rows_are_rows(settings: dict[str, Any]) -> None:
    features, labels, weights = rows(400, 5)
    features[np.abs(features) < 7] = 0
    whole = fitted(features, labels, weights, **settings)
    again = np.repeat(np.arange(400), weights.astype(int))
    close(whole, fitted(features[again], labels[again], **settings), 1e-8)
    close(whole, fitted(sparse.csr_matrix(features), labels, weights, parts=3, **settings), 1e-8)
    beside = np.concatenate([features, features[:50] * 3]), np.concatenate([labels, labels[:50] * 0 + 5])
    close(whole, fitted(*beside, np.concatenate([weights, np.zeros(50)]), **settings), 1e-12)


def test_auc_rises_above_its_start_and_above_that_of_any_feature() -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 4000)
    noise = rng.normal(size=(4000, 1))
    features = np.hstack([noise + 0.4 * labels[:, None], noise, rng.normal(size=(4000, 3))])
    model = fitted(features, labels)
    found = roc_auc_score(labels, features @ model.coef)
    start = roc_auc_score(
        labels, features @ (features[labels == 1].mean(axis=0) - features[labels == 0].mean(axis=0))
    )
    assert start < 0.75
    assert found > 0.999  # the noise is subtracted
    assert model.history[-1].after > model.history[0].before + 0.2
    assert all(step.after >= step.before - 1e-12 for step in model.history)
    assert model.scans <= 2 * len(model.history)


@pytest.mark.slow
def test_far_rows_do_not_set_the_scale() -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 4000)
    features = rng.standard_t(1.3, (4000, 3)) + np.array([0.5, 1.0, 0.0]) * labels[:, None]
    near, far = (
        roc_auc_score(labels, features @ fitted(features, labels, reach=r).coef) for r in (1.0, None)
    )
    assert near > far + 0.02


def test_one_goes_on_from_a_model() -> None:
    features, labels, _ = rows(1000, 6)
    whole = fitted(features, labels)
    few = fitted(features, labels, max_iter=2)
    on = fitted(features, labels, start=few.coef)
    assert few.auc <= on.auc + 1e-6
    assert on.auc == pytest.approx(whole.auc, abs=1e-3)
    assert fitted(features, labels, start=whole.coef).iterations <= whole.iterations
    close(fitted(features, labels, start=0 * whole.coef), whole, 1e-12)
    with pytest.raises(InputError, match="rows of 6 features, and a model of 3 to start from"):
        fitted(features, labels, start=np.ones(3))


def test_separated_classes_end_the_fit() -> None:
    features, labels, _ = rows(apart=60.0)
    model = fitted(features, labels)
    assert model.stop_reason == "separated"
    assert roc_auc_score(labels, features @ model.coef) == 1.0
    right = (features @ model.coef + model.intercept > 0) == labels
    assert right.mean() > 0.97


def test_a_fit_may_end_after_no_iteration() -> None:
    model = fitted(*rows(), max_iter=0)
    assert (model.iterations, model.scans, model.stop_reason) == (0, 2, "iterations")
    assert np.isfinite(model.coef).all()


def test_class_means_that_coincide_are_no_obstacle() -> None:
    features = np.array([[-1.0, 2], [1, -2], [3, 1], [-3, -1]] * 5)
    model = fitted(features, np.array([0, 0, 1, 1] * 5))
    assert np.isfinite(model.coef).all()
    assert model.coef.any()


def test_one_feature_and_constant_ones() -> None:
    features, labels, _ = rows(200, 2)
    features[:, 1] = 0.1
    model = fitted(features, labels)
    assert model.coef[1] == 0
    assert model.coef[0] > 0
    assert model.stop_reason == "tolerance"


def test_probabilities_agree_with_frequencies() -> None:
    rng = np.random.default_rng(6)
    features = rng.normal(size=(20_000, 3))
    odds = features @ [1.5, -1.0, 0.2] - 1.0
    labels = (rng.random(20_000) < 1 / (1 + np.exp(-odds))).astype(int)
    model = fitted(features, labels, degree=40)
    found = features @ model.coef + model.intercept
    assert np.corrcoef(found, odds)[0, 1] > 0.999
    np.testing.assert_allclose(model.scores(features), found)
    np.testing.assert_allclose(model.scores(sparse.csr_matrix(features)), found)
    assert model.scores(features[0]) == pytest.approx(found[0])
    with pytest.raises(InputError, match=r"features of shape \(2,\) for a model of"):
        model.scores([1.0, 2.0])
    with pytest.raises(InputError, match="features are not numbers"):
        model.scores("text")
    assert np.polyfit(odds, found, 1) == pytest.approx([1, 0], abs=0.15)


@pytest.mark.parametrize(
    ("features", "labels", "sentence"),
    [
        (np.ones((0, 2)), [], "there are no rows: AUC needs at least one of each class"),
        (np.eye(3), [1, 1, 1], r"labels of one class \(1\): AUC is of pairs"),
        (np.eye(3), ["a", "b", "c"], "labels of three classes, 'a', 'b', 'c': AUC is of two"),
        (np.ones((4, 2)), [0, 1, 0, 1], "every feature is constant, all 2 of them"),
        ([[1.0, np.nan], [2, 3]], [0, 1], "feature 1 has the value nan: a feature is a finite number"),
        ([[1.0, 2], [np.inf, 3]], [0, 1], "feature 0 has the value inf"),
        ([["x", "y"], ["z", "u"]], [0, 1], "features are not numbers: .*; encode text as numbers before"),
        (np.ones((2, 0)), [0, 1], r"features of shape \(2, 0\): give at least 1 feature"),
        (np.eye(3), [0, 1, np.nan], r"labels\[2\] is nan: leave rows without a label out"),
        (np.eye(3), np.array([0, 1, "x"], object), "labels cannot be compared: .*; give two of one type"),
    ],
)
def test_what_cannot_be_fitted_is_said(features: Any, labels: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        fitted(np.asarray(features), np.asarray(labels))
    if np.asarray(features).dtype.kind == "f" and len(labels) == len(features) > 0:
        with pytest.raises(InputError, match=sentence):
            fitted(sparse.csr_matrix(np.asarray(features)), np.asarray(labels))


@pytest.mark.parametrize("weights", [[1, -1, 1], [1, np.nan, 1], [1, np.inf, 1]])
def test_weights_that_cannot_be_are_said(weights: list[float]) -> None:
    with pytest.raises(InputError, match=r"weights\[1\] is .*: a weight is a finite number, 0 or above"):
        checked_rows(np.eye(3), [0, 1, 0], weights)
    with pytest.raises(InputError, match=r"weights of shape \(2,\): give one for each of 3 rows"):
        checked_rows(np.eye(3), [0, 1, 0], [1, 2])
    with pytest.raises(InputError, match=r"features of shape \(3, 3\) and labels of shape \(2,\): give"):
        checked_rows(np.eye(3), [0, 1], None)


def test_scans_of_other_rows_are_told() -> None:
    features, labels, _ = rows()
    state = begin(FitSettings())
    sums: Any = state.new_sums()
    sums.add(features, labels, None)
    state = state.after(sums)
    less: Any = state.new_sums()
    less.add(features[:299], labels[:299], None)
    with pytest.raises(InputError, match="scan 2 gave 299 rows, and the first one 300"):
        state.after(less)
    with pytest.raises(InputError, match="a label is 2, and the first scan had 0 and 1 alone"):
        state.new_sums().add(features, labels + 1, None)
    whole = features.copy()
    features[5, 2] = np.nan
    with pytest.raises(InputError, match="features are no finite numbers in this scan"):
        state.new_sums().add(features, labels, None)
    state = state.after(scanned(state.new_sums(), whole, labels))
    gradient = scanned(state.new_sums(), features, labels)
    with pytest.raises(InputError, match="features are no finite numbers in this scan"):
        state.after(gradient)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"max_iter": -1}, "max_iter=-1: give a whole number, 0 or above"),
        ({"max_iter": 2.5}, "max_iter=2.5: give a whole number"),
        ({"tol": -1e-3}, "tol=-0.001: give a finite number, 0 or above"),
        ({"tol": float("nan")}, "tol=nan: give a finite number"),
        ({"direction": "newton"}, "direction='newton': give one of conjugate, gradient"),
        ({"reach": 0.0}, "reach=0.0: give a number above 0, or None"),
        ({"degree": 500}, "degree=500: give a whole number from 2 to 128"),
    ],
)
def test_a_setting_that_cannot_be_is_named(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        begin(FitSettings(**given))


def test_the_series_of_each_class_are_evaluated_at_its_scores() -> None:
    rng = np.random.default_rng(8)
    u, is_positive = rng.uniform(-1, 1, 700), rng.random(700) < 0.5
    first, second = rng.normal(size=(2, 6))
    weights, slopes = rng.uniform(1, 2, 700), np.empty(700)
    slopes_by_class(u - 0.1, 0.1, weights, is_positive, first, second, slopes)
    wanted = weights * np.where(is_positive, chebval(u, first), chebval(u, second))
    np.testing.assert_allclose(slopes, wanted, atol=1e-13)
