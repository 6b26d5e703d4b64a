"""Learners of this package as bytes: they go on as they would have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from rocsteady.core.errors import CorruptBytesError, ForeignBytesError, InputError
from rocsteady.core.learning.aum.learner import AumLearner
from rocsteady.core.learning.polynomial.learner import PolynomialAucLearner

Learner = AumLearner | PolynomialAucLearner


def instance(i: int) -> dict[str, Any]:
    return {"x": float(i % 5), "colour": "ab"[i % 2]}


def taught(learner: Any, count: int) -> Any:
    for i in range(count):
        learner.learn_one(instance(i), i % 3 == 0)
    return learner


def new(name: str) -> Learner:
    return AumLearner(8, 4) if name == "aum" else PolynomialAucLearner(4, step_fit="chebyshev")


def rich(i: int, rng: np.random.Generator) -> dict[str, Any]:
    """An instance with numbers that are missing, and texts that come and go."""
    made = {"x": float(rng.normal()), "y": float(rng.normal() * 1e6), "text": f"{i // 7}", "\udc80": "\n"}
    return {name: value for name, value in made.items() if rng.random() < 0.8}


@pytest.mark.parametrize("labels", [(False, True), (0, 1), ("a", "b", "c"), (1, True, 2.5)])
def test_at_every_prefix_aum_goes_on_to_the_last_bit(labels: tuple[Any, ...]) -> None:
    rng = np.random.default_rng(len(labels))
    events = [(rich(i, rng), labels[rng.integers(len(labels))]) for i in range(60)]
    kept, whole = AumLearner(12, 3, 0.5), AumLearner(12, 3, 0.5)
    for x, y in events:
        data = kept.to_bytes()
        kept = AumLearner.from_bytes(data)
        assert kept.to_bytes() == data
        assert repr(kept.predict_proba_one(x)) == repr(whole.predict_proba_one(x))
        kept.learn_one(x, y)
        whole.learn_one(x, y)


@pytest.mark.parametrize("step_fit", ["damped", "least_squares", "chebyshev"])
def test_at_every_prefix_polynomial_goes_on_to_the_last_bit(step_fit: Any) -> None:
    rng = np.random.default_rng(3)
    events = [(rich(i, rng), bool(rng.random() < 0.4)) for i in range(60)]
    settings: dict[str, Any] = {"degree": 8, "half_life": 20.0, "step_fit": step_fit, "max_features": 6}
    kept, whole = PolynomialAucLearner(**settings), PolynomialAucLearner(**settings)
    for x, y in events:
        data = kept.to_bytes()
        kept = PolynomialAucLearner.from_bytes(data)
        assert kept.to_bytes() == data
        assert kept.predict_proba_one(x) == whole.predict_proba_one(x)
        kept.learn_one(x, y)
        whole.learn_one(x, y)
    assert (kept.weights, kept.ignored) == (whole.weights, whole.ignored)
    assert kept.ignored > 0


def test_a_state_says_what_it_is() -> None:
    aum, polynomial = (taught(new(name), 9).to_bytes() for name in ("aum", "polynomial"))
    with pytest.raises(ForeignBytesError, match="are not the state of an AumLearner"):
        AumLearner.from_bytes(polynomial)
    with pytest.raises(ForeignBytesError, match="are not the state of a PolynomialAucLearner"):
        PolynomialAucLearner.from_bytes(aum)
    with pytest.raises(CorruptBytesError, match="fails its checksum"):
        AumLearner.from_bytes(aum[:-1] + bytes([aum[-1] ^ 1]))


def test_a_class_that_no_state_can_keep_is_named() -> None:
    learner = AumLearner(4, 2)
    for label in (np.int64(1), math.inf):
        learner.learn_one({"x": 1.0}, label)
    with pytest.raises(InputError, match="the class inf cannot be kept in a state: give text, a number"):
        learner.to_bytes()
