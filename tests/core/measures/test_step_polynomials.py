"""Polynomials near the step: how near, on which side, and what they make of differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial import Chebyshev
from numpy.polynomial.chebyshev import chebval, chebval2d
from rocsteady.core.errors import ConfigError
from rocsteady.core.measures.step_polynomials import FITS, MOST_DEGREE, pair_coefficients, step_polynomial
from scipy.integrate import quad

DEGREES = (2, 3, 4, 5, 10, 20, 29, 30, 64, MOST_DEGREE)


@pytest.mark.parametrize("degree", DEGREES)
def test_upper_and_lower_lie_on_their_sides_of_the_step(degree):
    z = np.concatenate(
        [np.linspace(-1, 1, 50_001), np.geomspace(1e-12, 1, 500), -np.geomspace(1e-12, 1, 500)]
    )
    upper, lower = (chebval(z, step_polynomial(degree, fit)) for fit in ("upper", "lower"))
    assert (upper - (z >= 0)).min() > -1e-13
    assert ((z > 0) - lower).min() > -1e-13


@pytest.mark.parametrize("degree", DEGREES)
def test_the_width_between_them_falls_as_the_degree_grows(degree):
    upper, lower = (Chebyshev(step_polynomial(degree, fit)).integ() for fit in ("upper", "lower"))
    width = ((upper(1) - upper(-1)) - (lower(1) - lower(-1))) / 2
    assert 0 < width < np.pi / (degree - 1)


@pytest.mark.parametrize("degree", [2, 3, 10, 31])
def test_no_polynomial_has_less_squared_error(degree):
    found = step_polynomial(degree, "least_squares")

    def along(order: int) -> float:  # the residual is at a right angle to every T_k
        def product(z: float) -> float:
            return float((chebval(z, found) - (z > 0)) * chebval(z, np.eye(degree + 1)[order]))

        return quad(product, -1, 0, limit=200)[0] + quad(product, 0, 1, limit=200)[0]

    for order in range(degree + 1):
        assert along(order) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("degree", [2, 3, 10, 31])
def test_the_chebyshev_fit_is_the_series_cut_off(degree):
    angles = (np.arange(200_000) + 0.5) * (np.pi / 200_000)
    for order, found in enumerate(step_polynomial(degree, "chebyshev")):
        mean = np.mean((np.cos(angles) > 0) * np.cos(order * angles))
        assert found == pytest.approx(mean if order == 0 else 2 * mean, abs=1e-5)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("degree", DEGREES)
def test_pairs_are_the_polynomial_of_half_the_difference(fit, degree):
    polynomial = step_polynomial(degree, fit)
    pairs = pair_coefficients(polynomial)
    x, y = np.random.default_rng(1).uniform(-1, 1, (2, 500))
    np.testing.assert_allclose(chebval2d(x, y, pairs), chebval((x - y) / 2, polynomial), atol=1e-12)
    order = np.arange(degree + 1)
    assert not pairs[order[:, None] + order[None, :] > degree].any()


@pytest.mark.parametrize("degree", [1, MOST_DEGREE + 1, 2.5, True, "30", None])
def test_a_degree_that_cannot_be_is_named(degree):
    with pytest.raises(ConfigError, match=f"degree={degree!r}: give a whole number from 2 to 128"):
        step_polynomial(degree)


def test_a_fit_that_cannot_be_is_named():
    with pytest.raises(ConfigError, match="fit='best': give one of least_squares, chebyshev, lower, upper"):
        step_polynomial(10, "best")
