"""Polynomial AUC of sums: the estimate, its interval and the rounding of the sums."""

from __future__ import annotations

import functools
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray
from .polynomial_sums import MOST_TERMS, add_chebyshev, mean_over_pairs
from .step_polynomials import pair_coefficients, step_polynomial


class PolynomialEstimate(NamedTuple):
    """AUC by a polynomial near the step, ties near one half; low <= AUC of the events <= high is certified.

    bound is the greatest possible error of auc: its greater distance to low and high. In practice the error
    is much smaller: bounds hold for the worst scores with the same sums. All are None if a class has no
    events.
    """

    auc: float | None
    bound: float | None
    low: float | None
    high: float | None


NO_ESTIMATE = PolynomialEstimate(None, None, None, None)


class Sums(NamedTuple):
    """Exact sums of negatives and of positives, as whole numbers of Python.

    counts  number of events of each class
    sums    (2, d + 1), of w T_r(u), in units of 2^-(42 + 64); the first of each class is its mass
    """

    counts: tuple[int, int]
    sums: npt.NDArray[Any]

    @classmethod
    def none(cls, degree: int) -> Sums:
        """Return the sums of no events."""
        return cls((0, 0), np.full((2, degree + 1), 0, object))

    def plus(self, other: Sums, sign: int = 1) -> Sums:
        """Return the sums of the events of both, or with `sign` -1 of these events without the other's."""
        counts = self.counts[0] + sign * other.counts[0], self.counts[1] + sign * other.counts[1]
        return Sums(counts, self.sums + sign * other.sums)

    def contradiction(self) -> str | None:
        """Say why no events can have these sums. None: some events could."""
        for name, count, sums in zip(("negatives", "positives"), self.counts, self.sums, strict=True):
            mass, *others = sums.tolist()
            if count < 0:
                return f"there would be {count} {name}"
            if mass < 0 or (mass > 0) != (count > 0):
                than = "" if mass == 0 else "more than " if mass > 0 else "less than "
                return f"{count} {name} would weigh {than}nothing"
            if max(map(abs, others)) > mass + (mass >> 36):  # |T_r| <= 1, up to rounding
                return f"{count} {name} would have sums that no events have"
        return None

    def means(self) -> FloatArray:
        """Return the mean of T_r over each class, (2, d + 1); each rounded once."""
        return np.array([[value / sums[0] for value in sums] for sums in self.sums], np.float64)

    def shifted(self) -> tuple[int, list[int]]:
        """Return the greatest power of two that divides all sums, and the sums divided by it."""
        values = self.sums.ravel().tolist()
        bits = functools.reduce(int.__or__, values)
        shift = (bits & -bits).bit_length() - 1 if bits else 0
        return shift, [value >> shift for value in values]


def polynomial_auc_of(scores: FloatArray, negatives: FloatArray, positives: FloatArray) -> PolynomialEstimate:
    """Return the estimate of degree 30 on the interval of the scores themselves. O(entries).

    scores                distinct, finite, ascending
    negatives, positives  masses at each, in any two scales; one per score, not all 0

    All fields are None if there are fewer than two scores, which span no interval.
    """
    if len(scores) < 2:
        return NO_ESTIMATE
    low, high = float(scores[0]), float(scores[-1])
    means = np.empty((2, DEFAULT_DEGREE + 1))
    off = 0.0
    for label, masses in enumerate((negatives, positives)):
        held = np.flatnonzero(masses)
        weights = np.ldexp(masses[held], -int(np.frexp(masses.max())[1]))
        labels = np.zeros(len(held), np.int8)
        sums = [0] * (DEFAULT_DEGREE + 1)
        for start in range(0, len(held), MOST_TERMS):
            part = slice(start, start + MOST_TERMS)
            terms = np.zeros((2, DEFAULT_DEGREE + 1), np.int64)
            add_chebyshev(labels[part], scores[held[part]], weights[part], low, high, terms)
            sums = [total + term for total, term in zip(sums, terms[0].tolist(), strict=True)]
        means[label] = [value / sums[0] for value in sums]
        off = max(off, len(held) / sums[0])  # each term by half a unit, in units of the mass
    return estimated(DEFAULT_DEGREE, "least_squares", means, off)


def estimated(degree: int, fit: NearFit, means: FloatArray, off: float) -> PolynomialEstimate:
    """Return the estimate from means of T_r, (2, d + 1).

    off  greatest error of each mean from rounding to units

    The bounds are moved outwards by `_rounding`, the greatest error of all roundings together.
    """
    negatives, positives = means
    auc, low, high = (
        float(mean_over_pairs(pairs, positives, negatives)) for pairs in _pairs(degree, fit)[:3]
    )
    rounding = _rounding(degree, fit, off)
    low, high = max(0.0, low - rounding), min(1.0, high + rounding)
    auc = min(max(auc, low), high)
    return PolynomialEstimate(auc, max(high - auc, auc - low), low, high)


_POLYNOMIALS_OFF = 1e-12
"""More than the one-sided polynomials dip through the step, and their coefficients over pairs are off by."""


def _rounding(degree: int, fit: NearFit, off: float) -> float:
    """Return the greatest error of a mean over pairs.

    The recurrence adds up errors of 3 * 2^-53 a step, each of which grows at most as fast as the number of
    steps since: 3/2 d^2 2^-53. Means are off by that and by `off`; so are both factors of a product, each
    with another of at most 1, and sum |A| of them. The sum over pairs is of d numbers, of d numbers each.
    """
    mean_off = off + 2.0 * degree**2 * 2.0**-53
    largest = _pairs(degree, fit)[3]
    return largest * (mean_off * (2.0 + mean_off) + (2 * degree + 8) * 2.0**-53) + _POLYNOMIALS_OFF


@functools.cache
def _pairs(degree: int, fit: NearFit) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Return coefficients over pairs of polynomials near, below and above the step; the most of sum |A|."""
    near, lower, upper = (
        pair_coefficients(step_polynomial(degree, which)) for which in (fit, "lower", "upper")
    )
    return near, lower, upper, max(float(np.abs(pairs).sum()) for pairs in (near, lower, upper))


NearFit = Literal["least_squares", "chebyshev"]


NEAR_FITS: tuple[NearFit, ...] = get_args(NearFit)


DEFAULT_DEGREE = 30
