"""Polynomials in place of the step of AUC, and their coefficients over pairs of scores.

AUC counts pairs by step(z) = 0, 1/2, 1 for z below, at and above 0. With a polynomial p of degree d in place
of the step, the sum over pairs of p(difference) follows from sums over each class alone (Calders &
Jaroszewicz 2007). All coefficients here are of Chebyshev polynomials T_0 ... T_d on [-1, 1]: coefficients of
powers of z reach 10^10 at degree 30, and their terms cancel.
"""

from __future__ import annotations

import functools
from typing import Literal, get_args

import numpy as np
from numpy.polynomial import legendre

from ..arrays import FloatArray
from ..errors import ConfigError

Fit = Literal["least_squares", "chebyshev", "lower", "upper"]
FITS: tuple[Fit, ...] = get_args(Fit)

LEAST_DEGREE = 2
MOST_DEGREE = 128
"""The greatest degree. Rounding in the pairs' coefficients stays below 1e-13; bounds narrow only by 1/d."""


def checked_degree(degree: object) -> int:
    """Return a degree from 2 to 128. Raises ConfigError for any other value."""
    if isinstance(degree, bool) or not isinstance(degree, int) or not LEAST_DEGREE <= degree <= MOST_DEGREE:
        raise ConfigError(
            f"degree={degree!r}: give a whole number from {LEAST_DEGREE} to {MOST_DEGREE}; 20 to 30 is usual"
        )
    return degree


@functools.cache
def step_polynomial(degree: int, fit: Fit = "least_squares") -> FloatArray:
    """Return d + 1 Chebyshev coefficients of a polynomial near the step on [-1, 1].

    least_squares  the least mean squared error over [-1, 1] (the step's Legendre series, cut off).
    chebyshev      the same, weighted by 1 / sqrt(1 - z^2) (the step's Chebyshev series, cut off).
    upper, lower   at or above, at or below the step everywhere on [-1, 1]; of degree d - 1 for an odd d.

    The first two polynomials are 1/2 at 0, and off by 1/2 beside 0, like every continuous function. So they
    give no error bound. The two one-sided polynomials give a bound: the distance between them is about 3 / d
    on average. O(d^3) once.

    Raises ConfigError.

    >>> step_polynomial(3, "chebyshev").round(4).tolist()
    [0.5, 0.6366, 0.0, -0.2122]
    """
    checked_degree(degree)
    if fit not in FITS:
        raise ConfigError(f"fit={fit!r}: give one of {', '.join(FITS)}")
    if fit == "chebyshev":
        coefficients = _chebyshev_series(degree)
    elif fit == "least_squares":
        coefficients = _legendre_series(degree)
    else:
        coefficients = np.zeros(degree + 1)
        even = degree - degree % 2
        coefficients[: even + 1] = _upper(even)
        if fit == "lower":  # 1 - upper(-z)
            coefficients[::2] *= -1.0
            coefficients[0] += 1.0
    coefficients.flags.writeable = False
    return coefficients


def pair_coefficients(polynomial: FloatArray) -> FloatArray:
    """Return A, (d + 1, d + 1): p((x - y) / 2) = sum over r, s of A[r, s] T_r(x) T_s(y) on [-1, 1]^2.

    polynomial  d + 1 Chebyshev coefficients

    A[r, s] is zero where r + s > d. O(d^3).

    >>> pair_coefficients(np.array([0.5, 1.0])).round(9).tolist()  # p(z) = 1/2 + z
    [[0.5, -0.5], [0.5, 0.0]]
    """
    count = len(polynomial)
    nodes, transform = nodes_and_transform(count)
    values = np.polynomial.chebyshev.chebval((nodes[:, None] - nodes[None, :]) / 2, polynomial)
    pairs = transform @ values @ transform.T
    degrees = np.arange(count)
    pairs[degrees[:, None] + degrees[None, :] >= count] = 0.0
    result: FloatArray = np.where(np.abs(pairs) < _ROUNDING, 0.0, pairs)
    return result


_ROUNDING = 1e-16


def nodes_and_transform(count: int) -> tuple[FloatArray, FloatArray]:
    """Return the zeros of T_count, and the matrix that takes values there to Chebyshev coefficients."""
    angles = (np.arange(count) + 0.5) * (np.pi / count)
    transform = np.cos(np.outer(np.arange(count), angles)) * (2 / count)
    transform[0] /= 2
    return np.cos(angles), transform


def _chebyshev_series(degree: int) -> FloatArray:
    coefficients = np.zeros(degree + 1)
    coefficients[0] = 0.5
    odd = np.arange(1, degree + 1, 2)
    coefficients[odd] = 2 / (np.pi * odd) * np.where(odd % 4 == 1, 1.0, -1.0)
    return coefficients


def _legendre_series(degree: int) -> FloatArray:
    """Return the step's series: (P_{k-1}(0) - P_{k+1}(0)) / 2 of P_k for odd k, in the Chebyshev basis."""
    at_zero = np.asarray(legendre.legval(np.zeros(1), np.eye(degree + 2)), float)[:, 0]
    series = np.zeros(degree + 1)
    series[0] = 0.5
    odd = np.arange(1, degree + 1, 2)
    series[odd] = (at_zero[odd - 1] - at_zero[odd + 1]) / 2
    nodes, transform = nodes_and_transform(degree + 1)
    coefficients: FloatArray = transform @ legendre.legval(nodes, series)
    return coefficients


def _upper(degree: int) -> FloatArray:
    """Return the polynomial of an even degree that is 0 at nodes below 0, 1 at all others, and turns there.

    The nodes are those of the Chebyshev rule, Gauss or Lobatto, that has a node at 0. Between two nodes of
    equal value the polynomial turns once more, by Rolle's theorem. With these turns the derivative has all
    its possible zeros, so that the polynomial nowhere crosses the step (Markov's and Stieltjes' argument).
    As functions of the angle, the nodes are equidistant, so the equations are well-conditioned.
    """
    half = degree // 2 + 1
    if half % 2:
        angles = (np.arange(half) + 0.5) * (np.pi / half)
        turns = np.delete(angles, half // 2)
    else:
        angles = np.arange(half + 1) * (np.pi / half)
        turns = np.delete(angles, [0, half // 2, half])
    orders = np.arange(degree + 1)
    equations = np.concatenate(
        [np.cos(np.outer(angles, orders)), np.sin(np.outer(turns, orders)) * (orders / (degree + 1))]
    )
    # cosines descend, so that nodes at or above 0 come first
    ones = np.arange(len(angles)) <= (len(angles) // 2)
    return np.linalg.solve(equations, np.concatenate([ones.astype(float), np.zeros(len(turns))]))
