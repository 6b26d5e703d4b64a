"""The online learner ranks about as well as logistic regression, follows drift, and keeps a bounded state."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np
import pytest
from numpy.polynomial.chebyshev import chebvander
from river import datasets, linear_model, preprocessing
from river.datasets import synth
from rocsteady.core.errors import ConfigError, InputError
from rocsteady.core.learning.polynomial.learner import PolynomialAucLearner
from rocsteady.core.learning.polynomial.objectives import PairObjective
from sklearn.metrics import roc_auc_score


def auc_of(model: Any, instances: Iterable[Any]) -> float:
    """Test, then train; AUC of the later three quarters."""
    labels, scores = [], []
    for x, y in instances:
        labels.append(bool(y))
        scores.append(model.predict_proba_one(x).get(True, 0.5))
        model.learn_one(x, y)
    first = len(labels) // 4
    return float(roc_auc_score(labels[first:], scores[first:]))


def phishing() -> list[Any]:
    return list(datasets.Phishing())


def sea() -> list[Any]:
    return list(islice(synth.SEA(variant=1, noise=0.1, seed=1), 2000))


def skewed(n: int = 3000, change: int | None = None, positives: float = 0.03) -> list[Any]:
    rng = np.random.default_rng(5)
    labels = rng.random(n) < positives
    noise = rng.normal(size=n)
    a, b, c = noise + 1.5 * labels, noise, rng.lognormal(size=n)
    if change is not None:
        a[change:] = noise[change:] - 1.5 * labels[change:]
    rows = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    return [({"a": x, "b": y, "c": z}, bool(label)) for (x, y, z), label in zip(rows, labels, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("stream", [phishing, sea, skewed])
def test_it_ranks_about_as_well_as_logistic_regression(stream: Any) -> None:
    instances = stream()
    theirs = auc_of(preprocessing.StandardScaler() | linear_model.LogisticRegression(), instances)
    ours = auc_of(PolynomialAucLearner(), instances)
    assert ours > 0.85
    assert ours > theirs - 0.02


def test_it_follows_drift() -> None:
    learner = PolynomialAucLearner(half_life=300)
    instances = skewed(5000, change=2000, positives=0.2)
    auc_of(learner, instances[:2000])
    assert learner.weights["a"] > 0.5 > -0.5 > learner.weights["b"]
    auc_of(learner, instances[2000:3500])
    assert auc_of(learner, instances[3500:]) > 0.85
    assert learner.weights["a"] < -0.5 < 0.5 < learner.weights["b"]


def test_its_slope_is_the_gradient_of_the_mean_over_pairs_with_the_other_class() -> None:
    pairs = PairObjective(9).pairs
    rng = np.random.default_rng(1)
    others = chebvander(rng.uniform(-1, 1, 50), 9).sum(axis=0)
    learner = PolynomialAucLearner(9)
    for label in (0, 1):
        for u in (-0.9, 0.1, 0.6):
            learner._sums[1 - label] = others
            learner._sums[label] = others[0]  # classes weigh alike: a share of one half
            learner._weights, learner._squares = np.zeros(2), np.zeros(2)
            learner._columns = {"a": 0, "b": 1}
            learner._go_up(label, np.array([3.0, -4.0]), np.arccos(u))

            def mean(score: float, label: int = label) -> float:
                values = chebvander(np.array([score]), 9)[0]
                found = values @ pairs @ others if label else others @ pairs @ values
                return float(found / others[0])

            slope = 2 * (mean(u + 1e-6) - mean(u - 1e-6)) / 2e-6
            np.testing.assert_allclose(learner._squares, (np.array([3.0, -4.0]) * slope) ** 2, rtol=1e-6)
            assert np.sign(learner._weights[0]) == np.sign(slope)


def test_text_is_one_column_a_value_and_missing_numbers_are_means() -> None:
    rng = np.random.default_rng(3)
    instances = []
    for _ in range(1500):
        word, number = str(rng.choice(["x", "y", "z"])), float(rng.normal())
        label = bool(rng.random() < 1 / (1 + np.exp(-3 * (word == "z") + 1.5 - number)))
        x: dict[str, Any] = {"word": word, "number": number}
        if rng.random() < 0.2:
            x["number"] = rng.choice([None, float("nan")])
        if rng.random() < 0.1:
            del x["number"]
        instances.append((x, label))
    learner = PolynomialAucLearner()
    assert auc_of(learner, instances) > 0.78
    assert set(learner.weights) == {"word=x", "word=y", "word=z", "number"}
    assert learner.weights["word=z"] > 0.2 > learner.weights["word=x"]
    assert learner.weights["number"] > 0.2
    middle = learner.predict_proba_one({"word": "x"})[True]
    up, down = (learner.predict_proba_one({"word": "x", "number": v})[True] for v in (1.0, -1.0))
    assert down < middle < up


def test_its_state_is_bounded_and_what_is_left_out_is_counted() -> None:
    learner = PolynomialAucLearner(max_features=5)
    for i in range(300):
        learner.learn_one({f"f{i % 10}": float(i), "text": str(i)}, i % 2)
    assert len(learner.weights) == 5
    assert learner.ignored > 300
    before = len(pickle.dumps(learner))
    for i in range(300):
        learner.learn_one({f"f{i % 10}": float(i), "text": str(i)}, i % 2)
    assert len(pickle.dumps(learner)) < before + 100


def test_it_can_be_pickled_in_the_middle() -> None:
    instances = phishing()[:400]
    whole, first = PolynomialAucLearner(), PolynomialAucLearner()
    for x, y in instances[:200]:
        whole.learn_one(x, y)
        first.learn_one(x, y)
    second = pickle.loads(pickle.dumps(first))
    for x, y in instances[200:]:
        assert second.predict_proba_one(x) == whole.predict_proba_one(x)
        whole.learn_one(x, y)
        second.learn_one(x, y)
    assert second.weights == whole.weights


def test_before_it_has_learnt_and_with_one_class() -> None:
    learner = PolynomialAucLearner()
    assert learner.predict_proba_one({"a": 1.0}) == {False: 0.5, True: 0.5}
    for value in range(5):
        learner.learn_one({"a": value}, True)
    assert learner.predict_proba_one({"a": 1.0})[True] == pytest.approx(6 / 7, abs=0.01)
    assert learner.predict_one({"a": 1.0}) is True
    for _ in range(5):
        learner.learn_one({"a": 7.0}, False)
    assert sum(learner.predict_proba_one({}).values()) == pytest.approx(1)


def test_constant_features_and_scores_of_any_size_leave_it_finite() -> None:
    learner = PolynomialAucLearner()
    for i in range(100):
        learner.learn_one({"constant": 3.0, "huge": 5e149 * (i % 3), "tiny": 1e-150 * (i % 2)}, i % 2)
    assert np.isfinite(list(learner.weights.values())).all()
    assert learner.weights["constant"] == 0
    low, high = (learner.predict_proba_one({"tiny": v})[True] for v in (0.0, 1e-150))
    assert low < high


@pytest.mark.parametrize(
    ("x", "y", "sentence"),
    [
        ({"a": 1.0}, 2, "the label is 2: give True or False, 1 or 0, 1 or -1"),
        ({"a": 1.0}, "yes", "the label is 'yes': give True or False"),
        ({"a": float("inf")}, 1, "feature 'a' is inf; give a finite number, or text"),
        ({"a": [1]}, 1, r"feature 'a' is \[1\]; give a finite number, or text"),
    ],
)
def test_what_cannot_be_learnt_is_said(x: Any, y: Any, sentence: str) -> None:
    learner = PolynomialAucLearner()
    with pytest.raises(InputError, match=sentence):
        learner.learn_one(x, y)
    assert learner.predict_proba_one({"a": 1.0}) == {False: 0.5, True: 0.5}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"half_life": 0.5}, "half_life=0.5: give a number of instances, 1 or more"),
        ({"step": 0.0}, "step=0.0: give a number above 0"),
        ({"max_features": 0}, "max_features=0: give a whole number, 1 or more"),
        ({"degree": 1}, "degree=1: give a whole number from 2 to 128"),
        ({"step_fit": "upper"}, "step_fit='upper': give one of damped"),
    ],
)
def test_a_setting_that_cannot_be_is_named(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        PolynomialAucLearner(**given)


def test_an_instance_that_is_refused_leaves_nothing_behind() -> None:
    learner = PolynomialAucLearner()
    with pytest.raises(InputError, match="feature 'b'"):
        learner.learn_one({"a": 1.0, "b": [1]}, True)
    assert learner.weights == {}
