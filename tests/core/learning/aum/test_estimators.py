"""AumLinearClassifier and AumPenaltyLearner: scikit-learn's checks, what they reach, and how they end."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rocsteady.core.errors import ConfigError, InputError
from rocsteady.core.learning.aum.aum import aum_of_labels
from rocsteady.core.learning.aum.classifier import AumLinearClassifier
from rocsteady.core.learning.aum.descent import (
    DescentSettings,
    Design,
    ErrorLoss,
    Examples,
    LabelLoss,
    descend,
    scaling_of,
)
from rocsteady.core.learning.aum.error_functions import ErrorFunctions
from rocsteady.core.learning.aum.penalty_learner import (
    AumPenaltyLearner,
    fit_by_cross_validation,
    fit_path,
    margin_loss,
    penalty_path,
)
from scipy import optimize, sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

DATA = os.environ.get("ROCSTEADY_DATA")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [AumLinearClassifier(), AumLinearClassifier(rate=False, margin=0.0, line_search="exact")]
)
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def unbalanced() -> tuple[np.ndarray, np.ndarray]:
    features, labels = make_classification(
        2_000, 20, n_informative=6, weights=[0.9], flip_y=0.05, class_sep=0.6, random_state=3
    )
    return features, labels


@pytest.mark.parametrize("line", ["exact", "backtracking"])
def test_a_margin_gives_the_hinge_loss_of_a_free_threshold(
    line: Any, unbalanced: tuple[np.ndarray, np.ndarray]
) -> None:
    features, labels = (array[:600] for array in unbalanced)
    model = AumLinearClassifier(rate=False, margin=2.0, line_search=line, max_iter=300).fit(features, labels)
    assert (np.diff(model.descent_.aum) < 0).all()
    scores = model.decision_function(features)
    positives, negatives = scores[labels == 1], scores[labels == 0]

    def hinge(t: float) -> float:
        return float(np.maximum(t + 2.0 - positives, 0).sum() + np.maximum(negatives - t, 0).sum())

    corners = np.concatenate([positives - 2.0, negatives])
    assert model.descent_.aum[-1] == pytest.approx(min(hinge(t) for t in corners))


def test_aum_of_labels_is_convex_and_the_least_perceptron_loss() -> None:
    rng = np.random.default_rng(8)
    for _ in range(50):
        labels = rng.integers(0, 2, 12)
        one, other = rng.normal(size=(2, 12)).round(int(rng.integers(0, 3)))
        share = rng.random()
        values = [aum_of_labels(labels, s).value for s in (one, other, share * one + (1 - share) * other)]
        assert values[2] <= share * values[0] + (1 - share) * values[1] + 1e-12
        below = [
            np.maximum(t - one[labels == 1], 0).sum() + np.maximum(one[labels == 0] - t, 0).sum() for t in one
        ]
        assert values[0] == pytest.approx(min(below))


@pytest.mark.parametrize("line", ["exact", "backtracking"])
@pytest.mark.parametrize("rate", [False, True])
def test_aum_falls_at_every_step_and_auc_is_that_of_logistic_regression(
    line: Any, rate: bool, unbalanced: tuple[np.ndarray, np.ndarray]
) -> None:
    features, labels = unbalanced
    model = AumLinearClassifier(margin=0.0, line_search=line, rate=rate).fit(features[:1_000], labels[:1_000])
    assert (np.diff(model.descent_.aum) < 0).all()
    scores = model.decision_function(features[:1_000])
    assert scores.std() == pytest.approx(1.0)
    assert aum_of_labels(labels[:1_000], scores, rate=rate).value == pytest.approx(model.descent_.aum[-1])
    peer = make_pipeline(StandardScaler(), LogisticRegression()).fit(features[:1_000], labels[:1_000])
    test = roc_auc_score(labels[1_000:], model.decision_function(features[1_000:]))
    known = roc_auc_score(labels[1_000:], peer.decision_function(features[1_000:]))
    assert test > known - 0.05
    by_default = AumLinearClassifier(line_search=line).fit(features[:1_000], labels[:1_000])
    assert roc_auc_score(labels[1_000:], by_default.decision_function(features[1_000:])) > known - 0.02


def test_sparse_features_are_those_of_the_dense_matrix(unbalanced: tuple[np.ndarray, np.ndarray]) -> None:
    features, labels = unbalanced
    features = np.where(np.abs(features) > 1, features, 0.0)[:500]
    weights = np.random.default_rng(1).integers(0, 4, 500)
    dense = AumLinearClassifier(max_iter=20).fit(features, labels[:500], weights)
    thin = AumLinearClassifier(max_iter=20).fit(sparse.csr_matrix(features), labels[:500], weights)
    np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        thin.decision_function(sparse.csr_matrix(features)), dense.decision_function(features), atol=1e-8
    )


@pytest.mark.parametrize("criterion", ["aum", "auc"])
def test_early_stopping_keeps_the_best_of_what_is_held_out(
    criterion: Any, unbalanced: tuple[np.ndarray, np.ndarray]
) -> None:
    model = AumLinearClassifier(early_stopping=criterion, n_iter_no_change=3, random_state=1).fit(*unbalanced)
    descent = model.descent_
    assert len(descent.valid_aum) == len(descent.valid_auc) == len(descent.aum) == descent.n_iter + 1
    best = np.argmin(descent.valid_aum) if criterion == "aum" else np.argmax(descent.valid_auc)
    assert descent.best == best
    again = clone(model).fit(*unbalanced)
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_separable_data_end_in_words() -> None:
    labels = np.array([0, 0, 0, 1, 1, 1])
    features = np.column_stack([labels * 4 + [0, 1, 2, 0, 1, 2], [3, -1, 2, -3, 1, 0]])
    for margin in (0.0, 1.0):
        model = AumLinearClassifier(margin=margin).fit(features, labels)
        assert model.converged_reason_.startswith("separable: AUM is 0 on the training examples")
        assert model.score(features, labels) == 1.0
        assert model.descent_.aum[-1] == pytest.approx(0.0, abs=1e-12)


def test_the_collapse_to_constant_predictions_is_named() -> None:
    for features in (np.ones((6, 2)), np.array([[0.0], [1.0], [2.0], [0.0], [1.0], [2.0]])):
        model = AumLinearClassifier(margin=0.0).fit(features, [0, 0, 0, 1, 1, 1])
        assert model.converged_reason_.startswith("degenerate: all predictions are equal")
        assert model.coef_.tolist() == [[0.0] * features.shape[1]]
        assert set(model.predict(features)) <= {0, 1}


@pytest.mark.parametrize("is_sparse", [False, True])
def test_classes_that_differ_by_rounding_alone_do_not_differ(is_sparse: bool) -> None:
    """Both classes have the same values in another order, so that sums differ in their last bits."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        values = rng.normal(size=(50, 3))
        features = np.concatenate([values, rng.permutation(values)])
        given = sparse.csr_matrix(features) if is_sparse else features
        model = AumLinearClassifier(margin=0.0).fit(given, np.arange(100) // 50)
        assert model.converged_reason_.startswith("degenerate: all predictions are equal")


def test_copies_of_features_do_not_let_scores_shrink() -> None:
    """Along the difference of two copies all scores are 0, and AUM: weights of length 1 would go there."""
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 200)
    one = rng.normal(size=200) + 0.5 * labels
    features = np.column_stack([one, one, rng.normal(size=200)])
    for seed in range(3):
        model = AumLinearClassifier(margin=0.0, init="random", random_state=seed).fit(features, labels)
        assert np.std(model.decision_function(features)) == pytest.approx(1.0)
        assert 0.5 < model.descent_.aum[-1] < 0.6


def test_weights_are_repetitions(unbalanced: tuple[np.ndarray, np.ndarray]) -> None:
    features, labels = (array[:200] for array in unbalanced)
    times = np.random.default_rng(0).integers(0, 3, 200)
    weighted = AumLinearClassifier(max_iter=10).fit(features, labels, times)
    repeated = AumLinearClassifier(max_iter=10).fit(np.repeat(features, times, 0), np.repeat(labels, times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"line_search": "golden"}, "line_search='golden'; there are 'backtracking', 'exact'"),
        ({"early_stopping": "f1"}, "early_stopping='f1'"),
        ({"init": "zeros"}, "init='zeros'"),
        ({"max_iter": -1}, "max_iter=-1; give a whole number from 0 on"),
        ({"max_iter": True}, "max_iter=True"),
        ({"margin": -1.0}, "margin=-1.0; give a number from 0 on"),
        ({"tol": 1.0}, "tol=1.0; give a number from 0 on, below 1"),
        ({"validation_fraction": "a"}, "validation_fraction='a'"),
        ({"validation_fraction": 0.0}, "validation_fraction=0 holds nothing out"),
        ({"rate": "x"}, "rate='x'; there are True, False"),
    ],
)
def test_settings_that_are_wrong_are_named(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        AumLinearClassifier(**settings).fit([[0.0], [1.0]], [0, 1])


def test_classes_that_are_wrong_are_named() -> None:
    for labels, words in (([1, 1, 1], "y has 1 class"), ([0, 1, 2], "y has 3 classes")):
        with pytest.raises(InputError, match=words):
            AumLinearClassifier().fit([[0.0], [1.0], [2.0]], labels)
    with pytest.raises(InputError, match="the positive class has 1; give more, or early_stopping=None"):
        AumLinearClassifier(early_stopping="auc").fit([[0.0], [1.0], [2.0]], [0, 0, 1])


def test_the_gradient_of_weights_is_that_of_differences() -> None:
    rng = np.random.default_rng(5)
    features, labels = rng.normal(size=(40, 3)) * [1, 100, 0.01] + [0, 5, 0], rng.integers(0, 2, 40)
    scaling = scaling_of(features)
    for given in (features, sparse.csr_matrix(features)):
        design = Design(given, scaling)
        assert len(design) == 40
        loss = LabelLoss(labels.astype(np.int8), np.empty(0), rate=False)
        weights = rng.normal(size=3)
        gradient = design.gradient(loss.aum(design.predictions(weights)).gradient)
        for i in range(3):
            ends = [
                loss.aum(design.predictions(weights + sign * 1e-7 * (np.arange(3) == i))).value
                for sign in (-1, 1)
            ]
            assert gradient[i] == pytest.approx((ends[1] - ends[0]) / 2e-7, rel=1e-4, abs=1e-4)


def test_tied_examples_of_one_class_move_as_one() -> None:
    labels, scores = np.array([1, 1, 0, 1, 0, 0], np.int8), np.array([0.0, 0.0, 0.0, 1.0, 1.0, -1.0])
    weights = np.array([1.0, 2.0, 1.0, 1.0, 2.0, 1.0])
    found = LabelLoss(labels, weights, rate=False).aum(scores)
    for group in ([0, 1], [2], [3], [4], [5]):
        moved = [
            aum_of_labels(labels, scores + sign / 8 * np.isin(np.arange(6), group), weights).value
            for sign in (-1, 1)
        ]
        here = aum_of_labels(labels, scores, weights).value
        assert found.left[group].sum() == pytest.approx((here - moved[0]) * 8)
        assert found.right[group].sum() == pytest.approx((moved[1] - here) * 8)
        assert np.ptp(found.left[group] / weights[group]) == pytest.approx(0.0)


def intervals() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    features = rng.normal(size=(150, 6))
    centre = features @ np.array([2.0, -1.0, 0, 0, 0, 0]) + 0.5
    low = np.where(rng.random(150) < 0.3, -np.inf, centre - rng.exponential(1.0, 150))
    high = np.where(rng.random(150) < 0.3, np.inf, centre + rng.exponential(1.0, 150))
    return features, low, high, rng.permutation(np.arange(150) % 4)


def test_interval_regression_is_the_minimum() -> None:
    features, low, high, _ = intervals()
    penalties = penalty_path(features, low, high, 1.0, 5)
    fits = fit_path(features, low, high, penalties, 1.0, max_iter=5_000, tol=1e-12)
    assert np.abs(fits[0].weights).max() < 1e-3  # the greatest penalty is where the first one enters
    assert fits[1].weights.any()
    for fit in fits:

        def objective(both: np.ndarray, penalty: float = fit.penalty) -> float:  # weights as two parts >= 0
            weights = both[:6] - both[6:12]
            predictions = features @ weights + both[12]
            return margin_loss(predictions, low, high, 1.0)[0] + penalty * both[:12].sum()

        mine = objective(
            np.concatenate([np.maximum(fit.weights, 0), np.maximum(-fit.weights, 0), [fit.intercept]])
        )
        bounds = [(0, None)] * 12 + [(None, None)]
        other = optimize.minimize(objective, np.zeros(13), bounds=bounds, method="L-BFGS-B", tol=1e-12)
        assert mine <= other.fun + 1e-6


def test_interval_regression_of_few_examples_converges() -> None:
    features = np.array(
        [[5.0, -5.0], [-5.0, 5.0], [0.1, 0.1]]
    )  # across (1, 1, 1), where power iterations begin
    low, high = np.array([3.0, -np.inf, -1.0]), np.array([np.inf, -3.0, 1.0])
    fit = fit_path(features, low, high, np.zeros(1), 0.5, max_iter=2_000, tol=1e-12)[0]
    predictions = features @ fit.weights + fit.intercept
    assert margin_loss(predictions, low, high, 0.5)[0] < 1e-6


def test_interval_regression_by_cross_validation_finds_the_features() -> None:
    features, low, high, folds = intervals()
    low[:5], high[:5] = -np.inf, np.inf  # they say nothing
    fit = fit_by_cross_validation(features, low, high, folds)
    assert np.abs(fit.weights[:2]).min() > 5 * np.abs(fit.weights[2:]).max()
    predictions = features @ fit.weights + fit.intercept
    assert ((predictions >= low) & (predictions <= high)).mean() > 0.9


def changepoints(n: int = 120) -> tuple[np.ndarray, ErrorFunctions]:
    """Examples with a range of good predictions that two of five features tell, and errors that come back."""
    rng = np.random.default_rng(11)
    features = rng.normal(size=(n, 5))
    centre = features[:, 0] - 2 * features[:, 1] + 0.7 * rng.normal(size=n)
    rows = []
    for i, c in enumerate(centre):
        rows += [(i, c - 1, 0, -1), (i, c + 1, 1, 0)]
        if i % 5 == 0:
            rows += [(i, c + 2, -1, 0), (i, c + 3, 1, 0)]
    return features, ErrorFunctions.of_breakpoints(*zip(*rows, strict=True), range(n))


@pytest.mark.parametrize("line", ["exact", "backtracking"])
@pytest.mark.parametrize("init", ["intervals", "random"])
def test_penalties_are_learnt(line: Any, init: Any) -> None:
    features, errors = changepoints()
    train, test = np.arange(80), np.arange(80, 120)
    model = AumPenaltyLearner(line_search=line, init=init, early_stopping="aum", random_state=2)
    model.fit(features[train], errors.take(train))
    assert len(model.descents_) == 3
    assert all(descent.aum[-1] < descent.aum[0] for descent in model.descents_)
    before = errors.take(test).aum(features[test] @ model.initial_coef_).value
    predictions = model.predict(features[test])
    assert errors.take(test).aum(predictions).value < max(before, 20.0)
    assert model.score(features[test], errors.take(test)) == errors.take(test).roc(predictions).auc
    np.testing.assert_allclose(model.predict_penalty(features[test]), np.exp(-predictions))
    held = AumPenaltyLearner(early_stopping="auc").fit(features, errors, validation=test)
    assert len(held.descents_) == 1
    assert held.descents_[0].valid_aum[0] == pytest.approx(
        errors.take(test).aum(features[test] @ held.initial_coef_).value
    )


def test_the_intercept_is_where_training_errors_are_fewest() -> None:
    features, errors = changepoints()
    model = AumPenaltyLearner(early_stopping=None, max_iter=5).fit(features, errors)
    predictions = model.predict(features)
    least = min(errors.errors(predictions + c).sum() for c in np.linspace(-3, 3, 121))
    assert errors.errors(predictions).sum() <= least


def test_penalty_learners_name_what_is_wrong() -> None:
    features, errors = changepoints(20)
    for given, words in (
        ((features[:5], errors), "X has 5 rows and there are 20 error functions"),
        ((features, [1, 2]), "errors is of type list"),
        ((features, ErrorFunctions.of_breakpoints([], [], [], [], range(20))), "no example has a breakpoint"),
    ):
        with pytest.raises(InputError, match=words):
            AumPenaltyLearner().fit(*given)
    with pytest.raises(ValueError, match="NaN"):
        AumPenaltyLearner().fit(np.full((20, 2), np.nan), errors)
    for held in ([], range(20)):
        with pytest.raises(InputError, match=f"holds out {len(held)} of 20 examples"):
            AumPenaltyLearner().fit(features, errors, validation=held)
    with pytest.raises(InputError, match=r"validation\[1\] is 20: give indices from 0 to 19, each once"):
        AumPenaltyLearner().fit(features, errors, validation=[0, 20])
    with pytest.raises(InputError, match="there are 20 examples for n_splits=11; give at least 22"):
        AumPenaltyLearner(n_splits=11).fit(features, errors)
    with pytest.raises(ConfigError, match="cv=1"):
        AumPenaltyLearner(cv=1).fit(features, errors)


def test_error_functions_without_slope_are_stationary() -> None:
    """Two examples whose AUM does not change with small moves: the gradient is 0 where AUM is not."""
    errors = ErrorFunctions.of_breakpoints(
        [0, 0, 0, 1, 1, 1], [0, 2, 9, -9, 1, 3], [1, 0, 0, 1, 0, 0], [0, -1, 0, 0, -1, 0], range(2)
    )
    design = Design(np.array([[1.0], [1.0]]), scaling_of(np.array([[1.0], [1.0]])))
    found = descend(Examples(design, ErrorLoss(errors, rate=False)), np.ones(1), DescentSettings())
    assert found.reason.startswith(("degenerate", "stationary"))


@pytest.mark.slow
def test_real_penalties_are_learnt() -> None:
    """On profiles left out, by cross-validation, AUM falls and AUC rises against the start."""
    if DATA is None:
        pytest.skip("ROCSTEADY_DATA is not set; export it to the folder with the files aum_neuroblastoma_*")
    with gzip.open(Path(DATA) / "aum_neuroblastoma_features.csv.gz", "rt") as file:
        next(file)
        rows = [line.rstrip("\n").split(",") for line in file]
    names, features = [row[0] for row in rows], np.array([row[1:] for row in rows], float)
    with gzip.open(Path(DATA) / "aum_neuroblastoma_errors.csv.gz", "rt") as file:
        head = next(file).rstrip("\n").split(",")
        table = [line.rstrip("\n").split(",") for line in file]
    column = {name: [row[i] for row in table] for i, name in enumerate(head)}
    example = [f"{a}.{b}" for a, b in zip(column["profile.id"], column["chromosome"], strict=True)]
    numbers = (np.array(column[name], float) for name in ("min.log.lambda", "fp", "fn"))
    errors = ErrorFunctions.of_penalties(example, *numbers, names=names)
    ends = []
    for fold in range(5):
        test = np.flatnonzero([int(name.split(".")[0]) % 5 == fold for name in names])
        train = np.setdiff1d(np.arange(len(names)), test)
        model = AumPenaltyLearner(cv=2, random_state=fold).fit(features[train], errors.take(train))
        held = errors.take(test)
        both = (features[test] @ model.initial_coef_, model.predict(features[test]))
        ends += [(held.aum(predictions).value, held.roc(predictions).auc) for predictions in both]
    (start_aum, start_auc), (aum, auc) = (np.mean(ends[i::2], axis=0) for i in (0, 1))
    assert aum < start_aum
    assert auc > start_auc


def test_breast_cancer_by_default() -> None:
    features, labels = load_breast_cancer(return_X_y=True)
    model = AumLinearClassifier().fit(features[::2], labels[::2])
    assert roc_auc_score(labels[1::2], model.decision_function(features[1::2])) > 0.98
    assert model.score(features[1::2], labels[1::2]) > 0.93


def test_the_intercept_is_where_classes_are_best_predicted_whatever_the_margin() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(200, 1))
    y = x[:, 0] > 0.1
    for margin in (0.0, 1.0, 100.0):
        assert AumLinearClassifier(margin=margin, max_iter=0).fit(x, y).score(x, y) == 1.0


def test_sparse_features_far_from_0_keep_their_deviation() -> None:
    x = np.random.default_rng(6).normal(size=(100, 2)) + 1e9
    np.testing.assert_allclose(scaling_of(sparse.csr_matrix(x)).scale, x.std(axis=0), rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_the_unit_of_weights_changes_no_rates(unit: float) -> None:
    labels, scores = [1, 0, 1, 0], [0.0, 1.0, 2.0, -1.0]
    weighted = aum_of_labels(labels, scores, np.full(4, unit), rate=True)
    assert weighted.value == pytest.approx(aum_of_labels(labels, scores, rate=True).value)


def test_features_whose_squares_overflow_are_named() -> None:
    with pytest.raises(InputError, match="feature 0 has a value of size 1e\\+300"):
        AumLinearClassifier().fit([[1e300], [0.0]], [0, 1])
