"""The objectives are means over pairs of their polynomial, and derivatives are theirs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial.chebyshev import chebval, chebvander
from rocsteady.core.errors import ConfigError
from rocsteady.core.learning.polynomial.objectives import PairObjective, damped_step, sigmoid_polynomial
from rocsteady.core.measures.step_polynomials import step_polynomial
from scipy.special import expit

RNG = np.random.default_rng(4)
U, V = RNG.uniform(-1, 1, 40), RNG.uniform(-1, 1, 30)
WEIGHTS = RNG.uniform(0.5, 2, 40), RNG.uniform(0.5, 2, 30)
OBJECTIVES = [
    (PairObjective(12), damped_step(12)),
    (PairObjective(12, fit="least_squares"), step_polynomial(12)),
    (PairObjective(7, fit="chebyshev"), step_polynomial(7, "chebyshev")),
    (PairObjective(20, "sigmoid", steepness=9.0), sigmoid_polynomial(20, 9.0)),
]


def over_pairs(polynomial: np.ndarray, u: np.ndarray, v: np.ndarray) -> float:
    """The definition."""
    of_pairs = chebval((u[:, None] - v[None, :]) / 2, polynomial)
    weights = WEIGHTS[0][:, None] * WEIGHTS[1][None, :]
    return float((of_pairs * weights).sum() / weights.sum())


def sums(objective: PairObjective, u: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return weights @ chebvander(u, objective.degree)


@pytest.mark.parametrize(("objective", "polynomial"), OBJECTIVES)
def test_the_value_is_the_mean_over_pairs(objective: PairObjective, polynomial: np.ndarray) -> None:
    found = objective.value(sums(objective, U, WEIGHTS[0]), sums(objective, V, WEIGHTS[1]))
    assert found == pytest.approx(over_pairs(polynomial, U, V), abs=1e-13)


@pytest.mark.parametrize(("objective", "polynomial"), OBJECTIVES)
def test_slopes_are_finite_differences(objective: PairObjective, polynomial: np.ndarray) -> None:
    by_positive, by_negative = objective.slopes(
        sums(objective, U, WEIGHTS[0]), sums(objective, V, WEIGHTS[1])
    )
    step = 1e-6
    for i in range(0, 30, 7):
        moved = step * (np.arange(40) == i), step * (np.arange(30) == i)
        rise = over_pairs(polynomial, U + moved[0], V) - over_pairs(polynomial, U - moved[0], V)
        assert WEIGHTS[0][i] * chebval(U[i], by_positive) == pytest.approx(rise / (2 * step), abs=1e-8)
        rise = over_pairs(polynomial, U, V + moved[1]) - over_pairs(polynomial, U, V - moved[1])
        assert WEIGHTS[1][i] * chebval(V[i], by_negative) == pytest.approx(rise / (2 * step), abs=1e-8)


@pytest.mark.parametrize("degree", [10, 30, 60])
def test_the_damped_step_hardly_leaves_0_to_1(degree: int) -> None:
    z = np.linspace(-1, 1, 20_001)
    damped, plain = chebval(z, damped_step(degree)), chebval(z, step_polynomial(degree, "chebyshev"))
    assert damped.max() < 1.013
    assert damped.min() > -0.013
    assert plain.max() > 1.08
    assert np.diff(damped)[10_000] > 0.58 * np.diff(plain)[10_000]


@pytest.mark.parametrize(("degree", "error"), [(10, 0.008), (30, 0.0092), (60, 0.0097)])
def test_the_soft_step_is_near_the_sigmoid_at_two_thirds_of_the_degree(degree: int, error: float) -> None:
    z = np.linspace(-1, 1, 20_001)
    steepness = 2 * degree / 3
    assert np.abs(chebval(z, sigmoid_polynomial(degree, steepness)) - expit(steepness * z)).max() < error
    assert PairObjective(degree, "sigmoid").pairs == pytest.approx(
        PairObjective(degree, "sigmoid", steepness=steepness).pairs
    )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"kind": "auc"}, "objective='auc': give one of polynomial, sigmoid"),
        ({"fit": "lower"}, "fit='lower': give one of damped, least_squares, chebyshev"),
        (
            {"kind": "sigmoid", "steepness": 31.0},
            "steepness=31.0: give a number above 0, up to the degree, 30",
        ),
        ({"kind": "sigmoid", "steepness": 0.0}, "steepness=0.0: give a number above 0"),
        ({"degree": 1}, "degree=1: give a whole number from 2 to 128"),
    ],
)
def test_what_cannot_be_is_named(given: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        PairObjective(**given)
