"""Objectives over pairs of a positive and a negative, as polynomials of the difference of their scores.

Scores u lie in [-1, 1]. A is the matrix of `pair_coefficients`. The mean over pairs of p((u+ - u-) / 2) is P
A N. P[r] is the mean of T_r(u+) over the positives, N[s] the mean of T_s(u-) over the negatives. The
derivatives by every score follow (Calders & Jaroszewicz 2007).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import expit

from ...arrays import FloatArray
from ...errors import ConfigError
from ...measures.step_polynomials import (
    checked_degree,
    nodes_and_transform,
    pair_coefficients,
    step_polynomial,
)
from ..learner_settings import is_number

Objective = Literal["polynomial", "sigmoid"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
PairFit = Literal["damped", "least_squares", "chebyshev"]
PAIR_FITS: tuple[PairFit, ...] = get_args(PairFit)


def sigmoid_polynomial(degree: int, steepness: float) -> FloatArray:
    """Return d + 1 Chebyshev coefficients of a polynomial near 1 / (1 + exp(-steepness z)) on [-1, 1].

    The polynomial equals the sigmoid at the zeros of T_{d+1}; its error falls as (pi / s + sqrt(1 + (pi /
    s)^2))^-d,
    s the steepness: .009 at d = 30, s = 20. Raises ConfigError.

    >>> sigmoid_polynomial(3, 1.0).round(4).tolist()
    [0.5, 0.2356, 0.0, -0.0047]
    """
    checked_degree(degree)
    if not is_number(steepness) or not 0.0 < steepness <= degree:
        raise ConfigError(
            f"steepness={steepness!r}: give a number above 0, up to the degree, {degree}; beyond, no "
            "polynomial of that degree is near the sigmoid"
        )
    nodes, transform = nodes_and_transform(degree + 1)
    coefficients: FloatArray = transform @ expit(steepness * nodes)
    coefficients[2::2] = 0.0  # the sigmoid less 1/2 is odd
    coefficients[0] = 0.5
    return coefficients


def damped_step(degree: int) -> FloatArray:
    """Return d + 1 Chebyshev coefficients of the step, with Lanczos's sigma factors.

    A truncated series is up to .09 above 1 and below 0 beside the jump. A maximiser exploits this: on nearly
    separable data it moves pairs there, and AUC falls while the objective rises above 1. With these factors
    the series is at most .012 above 1 and below 0, and has three fifths of the slope at 0. Jackson's factors,
    with no value above 1, have less slope and less AUC on test data; so has a polynomial below the step
    ("lower").

    >>> damped_step(3).round(4).tolist()
    [0.5, 0.5732, 0.0, -0.0637]
    """
    sigmas: FloatArray = np.sinc(np.arange(degree + 1) / (degree + 1))
    return step_polynomial(degree, "chebyshev") * sigmas


@dataclass(frozen=True)
class PairObjective:
    """The mean of a polynomial over pairs of a positive and a negative, from means over each class.

    degree     d of the polynomial
    kind       "polynomial" near the step of AUC, "sigmoid" for soft AUC
    fit        of the step: "damped" (`damped_step`), or "least_squares", "chebyshev" (`step_polynomial`)
    steepness  of the sigmoid, where z = 1 is a difference of scores of 2; None: two thirds of the degree

    Raises ConfigError.
    """

    degree: int = 30
    kind: Objective = "polynomial"
    fit: PairFit = "damped"
    steepness: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in OBJECTIVES:
            raise ConfigError(f"objective={self.kind!r}: give one of {', '.join(OBJECTIVES)}")
        if self.fit not in PAIR_FITS:
            raise ConfigError(f"step_fit={self.fit!r}: give one of {', '.join(PAIR_FITS)}")
        if self.steepness is not None and not (is_number(self.steepness) and self.steepness > 0):
            raise ConfigError(f"steepness={self.steepness!r}: give a number above 0, or None")
        _ = self.pairs

    @property
    def pairs(self) -> FloatArray:
        """The matrix A of `pair_coefficients`, (d + 1, d + 1)."""
        return _pairs(self.degree, self.kind, self.fit, self.steepness)

    def value(self, positives: FloatArray, negatives: FloatArray) -> FloatArray:
        """Return the mean over pairs, from the sums of T_0 ... T_d over each class, (..., d + 1). O(d^2)."""
        by_positive, by_negative = positives / positives[..., :1], negatives / negatives[..., :1]
        mean: FloatArray = np.einsum("...r,rs,...s->...", by_positive, self.pairs, by_negative)
        return mean

    def slopes(self, positives: FloatArray, negatives: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return two series: the derivatives by the score of a positive and of a negative, each of weight 1.

        positives, negatives  sums of T_0 ... T_d over each class

        Each series has d coefficients, of T_0 ... T_{d-1}. O(d^2).
        """
        by_positive = chebyshev.chebder(self.pairs @ (negatives / negatives[0]) / positives[0])
        by_negative = chebyshev.chebder((positives / positives[0]) @ self.pairs / negatives[0])
        return by_positive, by_negative


@functools.cache
def _pairs(degree: int, kind: Objective, fit: PairFit, steepness: float | None) -> FloatArray:
    checked_degree(degree)
    if kind == "sigmoid":
        polynomial = sigmoid_polynomial(degree, 2 * degree / 3 if steepness is None else steepness)
    else:
        polynomial = damped_step(degree) if fit == "damped" else step_polynomial(degree, fit)
    pairs = pair_coefficients(polynomial)
    pairs.flags.writeable = False
    return pairs
