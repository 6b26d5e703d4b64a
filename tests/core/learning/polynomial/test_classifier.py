"""The classifier is an estimator of scikit-learn, ranks as well as others, and needs no array in memory."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from rocsteady.core.errors import ConfigError, InputError
from rocsteady.core.learning.polynomial.classifier import PolynomialAucClassifier
from rocsteady.core.learning.polynomial.fit import FitSettings, begin
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

ESTIMATORS = [
    PolynomialAucClassifier(8, max_iter=4),
    pytest.param(PolynomialAucClassifier(), marks=pytest.mark.slow),
    pytest.param(PolynomialAucClassifier(objective="sigmoid", direction="gradient"), marks=pytest.mark.slow),
    pytest.param(PolynomialAucClassifier(12, step_fit="least_squares", reach=None), marks=pytest.mark.slow),
]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_it_is_an_estimator(estimator: PolynomialAucClassifier) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        results = check_estimator(estimator, on_fail=None)
    assert [result["check_name"] for result in results if result["status"] == "failed"] == []
    assert sum(result["status"] == "passed" for result in results) > 50


def data(n: int = 3000, seed: int = 1, positives: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    return make_classification(  # type: ignore[no-any-return]
        n, 12, n_informative=5, weights=[1 - positives], class_sep=0.6, random_state=seed
    )


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_it_ranks_as_well_as_logistic_regression(seed: int) -> None:
    X, y = data(seed=seed)
    ours = cross_val_score(PolynomialAucClassifier(), X, y, scoring="roc_auc", cv=4).mean()
    theirs = make_pipeline(StandardScaler(), LogisticRegression())
    assert ours > cross_val_score(theirs, X, y, scoring="roc_auc", cv=4).mean() - 0.01


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["polynomial", "sigmoid"])
def test_breast_cancer(objective: Any) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = PolynomialAucClassifier(objective=objective)
    scores = cross_validate(model, X, y, scoring=("roc_auc", "accuracy"), cv=3)
    assert scores["test_roc_auc"].mean() > 0.985
    assert scores["test_accuracy"].mean() > 0.93


def test_what_it_knows_after_a_fit() -> None:
    X, y = data()
    names = np.where(y == 1, "yes", "no")
    model = PolynomialAucClassifier().fit(X, names)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.coef_.shape == (1, 12)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, X @ model.coef_[0] + model.intercept_)
    assert roc_auc_score(y, scores) == pytest.approx(model.auc_, abs=0.02)
    assert model.predict(X).tolist() == np.where(scores > 0, "yes", "no").tolist()
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert probability[:, 1].mean() == pytest.approx(y.mean(), abs=0.02)
    assert model.n_scans_ == 2 * model.n_iter_
    assert len(model.history_) == model.n_iter_
    assert model.stop_reason_ == "tolerance"


@pytest.mark.slow
def test_numbers_of_32_bits_and_sparse_rows_give_the_same_model() -> None:
    X, y = data()
    X = np.where(np.abs(X) < 0.5, 0, X).astype(np.float32)
    whole = PolynomialAucClassifier().fit(X.astype(float), y)
    for given in (X, sparse.csr_matrix(X), sparse.csc_array(X.astype(float))):
        model = PolynomialAucClassifier().fit(given, y)
        np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(model.predict(given), whole.predict(X))


@pytest.mark.slow
def test_batches_give_the_model_of_the_array() -> None:
    X, y = data()
    weights = np.random.default_rng(1).uniform(0.5, 2, len(y))
    scans = 0

    def batches() -> Iterator[Any]:
        nonlocal scans
        scans += 1
        for part in np.array_split(np.arange(len(y)), 23):
            yield X[part], y[part], weights[part]

    whole = PolynomialAucClassifier().fit(X, y, weights)
    model = PolynomialAucClassifier().fit_batches(batches)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(model.intercept_, whole.intercept_, rtol=1e-9)
    assert scans == model.n_scans_ == whole.n_scans_
    assert model.n_features_in_ == 12


def test_batches_must_begin_anew_for_every_scan() -> None:
    X, y = data(200)
    with pytest.raises(InputError, match="batches is a list: give a function that returns the batches anew"):
        PolynomialAucClassifier().fit_batches([(X, y)])  # type: ignore[arg-type]
    once = iter([(X, y)])
    with pytest.raises(InputError, match="scan 2 gave 0 rows, and the first one 200: every scan must give"):
        PolynomialAucClassifier().fit_batches(lambda: once)
    with pytest.raises(InputError, match="there are no rows"):
        PolynomialAucClassifier().fit_batches(list)
    with pytest.raises(
        InputError, match=r"batches\(\) returned None: give a function that returns an iterable"
    ):
        PolynomialAucClassifier().fit_batches(lambda: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(InputError, match=r"batches\(\) gave array.*: give \(X, y\) or \(X, y, weights\)"):
        PolynomialAucClassifier().fit_batches(lambda: [np.zeros(2)])  # type: ignore[arg-type, list-item]
    with pytest.raises(InputError, match="labels are lists of unlike lengths"):
        PolynomialAucClassifier().fit_batches(lambda: [(X[:2], [[0], [1, 2]])])


@pytest.mark.slow
def test_a_warm_start_goes_on() -> None:
    X, y = data()
    cold = PolynomialAucClassifier().fit(X, y)
    model = PolynomialAucClassifier(max_iter=1, warm_start=True)
    objectives = [model.fit(X, y).auc_ for _ in range(8)]
    assert objectives[-1] > objectives[0] + 0.001
    assert objectives[-1] == pytest.approx(cold.auc_, abs=0.003)
    more = PolynomialAucClassifier(max_iter=1).fit(X, y)
    assert more.fit(X, y).auc_ == objectives[0]


def test_a_chunk_after_the_other_follows_a_stream() -> None:
    model = PolynomialAucClassifier(max_iter=3, warm_start=True)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(500, 3))
        y = (rng.random(500) < 1 / (1 + np.exp(-2 * X[:, 0] - seed * X[:, 1]))).astype(int)
        model.fit(X, y)
        assert roc_auc_score(y, X @ [2, seed, 0]) - roc_auc_score(y, model.decision_function(X)) < 0.01


@pytest.mark.slow
def test_a_grid_of_parameters() -> None:
    X, y = data(600)
    search = GridSearchCV(
        PolynomialAucClassifier(max_iter=5),
        {"degree": [10, 20], "objective": ["polynomial", "sigmoid"]},
        cv=2,
    ).fit(X, y)
    assert set(search.best_params_) == {"degree", "objective"}
    assert clone(PolynomialAucClassifier(reach=2.0)).get_params()["reach"] == 2.0


@pytest.mark.slow
def test_a_model_from_elsewhere_becomes_an_estimator() -> None:
    X, y = data()
    state = begin(FitSettings())
    while state.is_running:
        sums: Any = state.new_sums()
        sums.add(X, y, None)
        state = state.after(sums)
    made, fitted = PolynomialAucClassifier.of(state.model()), PolynomialAucClassifier().fit(X, y)
    np.testing.assert_allclose(made.predict_proba(X), fitted.predict_proba(X))
    assert (made.n_iter_, made.stop_reason_) == (fitted.n_iter_, fitted.stop_reason_)


@pytest.mark.parametrize(
    ("X", "y", "sentence"),
    [
        (np.eye(4), [1, 1, 1, 1], "labels of one class"),
        (
            np.eye(4),
            [1, 2, 3, 1],
            "Only binary classification is supported. The type of the target is multiclass",
        ),
        (np.full((4, 2), np.nan), [0, 1, 0, 1], "contains NaN"),
        (np.ones((4, 2)), [0, 1, 0, 1], "every feature is constant, all 2 of them"),
        (np.ones((0, 2)), [], "0 sample"),
    ],
)
def test_what_cannot_be_fitted_is_said(X: Any, y: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        PolynomialAucClassifier().fit(X, y)


def test_parameters_are_checked_when_fitting() -> None:
    X, y = data(100)
    with pytest.raises(ConfigError, match="degree=1: give a whole number"):
        PolynomialAucClassifier(1).fit(X, y)
    with pytest.raises(ConfigError, match="steepness=-1: give a number above 0, or None"):
        PolynomialAucClassifier(steepness=-1).fit(X, y)
    with pytest.raises(ConfigError, match="step_fit='best': give one of damped"):
        PolynomialAucClassifier(step_fit="best").fit(X, y)  # type: ignore[arg-type]
    with pytest.raises(NotFittedError):
        PolynomialAucClassifier().predict(X)
    with pytest.raises(InputError, match="model is a str: give a PolynomialAucModel"):
        PolynomialAucClassifier.of("x")  # type: ignore[arg-type]


def test_without_scikit_learn_a_sentence_says_how_to_get_it() -> None:
    program = (
        "import sys\n"
        "sys.modules['sklearn'] = sys.modules['sklearn.base'] = None\n"
        "from rocsteady.core.errors import MissingPackageError\n"
        "try:\n"
        "    import rocsteady.core.learning.polynomial.classifier\n"
        "except MissingPackageError as error:\n"
        "    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == (
        "PolynomialAucClassifier needs the package scikit-learn, which is not installed here; "
        "in a checkout of rocsteady, run: pip install '.[learn]'\n"
    )
