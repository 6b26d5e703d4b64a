"""Line search from the scores of a model to the scores of a direction, without the data.

The sums of a scan (LineSums) give the objective at every point of the line. Between points at which the range
of scores was measured, the objective is an analytic function of the point, so that interpolation at some
nodes is exact to the last digits (Calders & Jaroszewicz 2007: the line search takes 2 (d + 1)^2 sums, and no
data).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from ...arrays import FloatArray
from ...measures.step_polynomials import nodes_and_transform
from .chebyshev import moments_of_mixtures
from .objectives import PairObjective
from .passes import LineSums

_GRID = -np.cos(np.linspace(0.0, np.pi, 513))
"""Points at which a derivative is evaluated to find its zeros; the points are denser near the ends."""

_LAST = 1 - 1e-9
"""The greatest alpha; greater values are clipped, since at 1 the share of the direction is infinite."""

_FEW_NODES = 10
"""Nodes of a short piece of the line, on which the objective is nearly a parabola."""

_ROUNDING_RAISED = 30.0
"""Limit on how much widening may multiply rounding errors. With 3,000 a fit takes fewer iterations, to the
same AUC; sums of parts of the data then differ by 5e-9, with 30 by 1e-10.
"""


class Iteration(NamedTuple):
    """A line search: the objective at its beginning and at its maximum, and the alpha of the maximum.

    The first iteration of a fit is its start.
    """

    before: float
    after: float
    alpha: float


class Line:
    """The line from the scores a of a model to the scores b of a direction; a scan has gathered its sums.

    A point of the line is alpha, from 0 to 1, and has the scores (1 - alpha) a + alpha b. Since a and b fill
    [-1, 1], these scores stay in [-1, 1], but need not fill it. So the scores at each point are moved and
    widened until they nearly fill [-1, 1]. Without widening, even the smallest step would lose a part of the
    range, and the search would end where a gradient still leads upwards.

    The scan measured the range of scores at some shares of the direction. Between two of these shares the
    range is bounded by interpolation, since the maximum of linear functions is convex. Widening by a factor e
    multiplies rounding errors by up to T_d(2 e - 1), so e is limited to values for which these errors stay
    small.
    """

    def __init__(self, sums: LineSums) -> None:
        self._sums = sums.sums
        self._first, self._second = sums.spans
        self._shares = np.concatenate([[0.0], sums.task.shares])
        self._lows = np.concatenate([[self._first.low], sums.lows])
        self._highs = np.concatenate([[self._first.high], sums.highs])
        self._widest = math.cosh(math.acosh(_ROUNDING_RAISED) / sums.task.degree)

    def _breaks(self) -> FloatArray:
        """Return alphas from 0 to 1, ascending; between two of them mixtures are analytic in alpha."""
        first, second, widest = self._first.half, self._second.half, self._widest
        halves = (self._highs - self._lows) / 2
        slopes = np.append(np.diff(halves) / np.diff(self._shares), second)
        with np.errstate(divide="ignore", invalid="ignore"):
            capped = (widest * (halves - slopes * self._shares) - first) / (second - widest * slopes)
        inside = (capped > self._shares) & (capped < np.append(self._shares[1:], np.inf))
        shares = np.unique(np.concatenate([self._shares, capped[inside]]))
        alphas = shares * second / (first + shares * second)
        return np.append(alphas[alphas < _LAST], 1.0)

    def mixtures(self, alphas: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return p, q and c at n points: the scores p a + q b + c lie in [-1, 1] for every row."""
        first, second = self._first, self._second
        if not first.half or not second.half:
            return 1 - alphas, alphas, np.zeros_like(alphas)
        alphas = np.minimum(alphas, _LAST)
        shares = alphas / (1 - alphas) * (first.half / second.half)
        beyond = np.maximum(0.0, shares - self._shares[-1])
        low = np.interp(shares, self._shares, self._lows) + beyond * second.low
        high = np.interp(shares, self._shares, self._highs) + beyond * second.high
        half = first.half + shares * second.half
        with np.errstate(divide="ignore"):
            wider = np.clip(2 * half / (high - low), 1.0, self._widest)
        apart = first.middle + shares * second.middle - (low + high) / 2
        return wider * (1 - alphas), wider * alphas, wider * apart / half

    def moments(self, alphas: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return sums of T_0 ... T_d of the scores at n points, for negatives and for positives. O(n d^3)."""
        mixtures = self.mixtures(alphas)
        moments = np.empty((2, len(alphas), self._sums.shape[1]))
        for sums, found in zip(self._sums, moments, strict=True):
            moments_of_mixtures(sums, *mixtures, found)
        return moments[0], moments[1]

    def _values(self, pairs: PairObjective, alphas: FloatArray) -> FloatArray:
        negatives, positives = self.moments(alphas)
        return pairs.value(positives, negatives)

    def search(self, pairs: PairObjective, stays: bool) -> Iteration:
        """Return the point of the line with the greatest objective; with `stays`, return the point alpha = 0.

        O(d^4).
        """
        before = float(self._values(pairs, np.zeros(1))[0])
        if not self._first.half:  # the model gives all rows the same score
            return Iteration(before, float(self._values(pairs, np.ones(1))[0]), 1.0)
        if stays or not self._second.half:
            return Iteration(before, before, 0.0)
        breaks = self._breaks()
        few = min(_FEW_NODES, pairs.degree + 1)
        counts = [few if length < 1 / 8 else pairs.degree + 1 for length in np.diff(breaks)]
        pieces = list(zip(breaks[:-1], breaks[1:], map(nodes_and_transform, counts), strict=True))
        nodes = [low + (high - low) * (each + 1) / 2 for low, high, (each, _) in pieces]
        values = np.split(self._values(pairs, np.concatenate(nodes)), np.cumsum(counts)[:-1])
        tops = [
            low + (high - low) * (_tops(transform @ heights) + 1) / 2
            for (low, high, (_, transform)), heights in zip(pieces, values, strict=True)
        ]
        alphas = np.concatenate([*tops, breaks[1:]])
        heights = self._values(pairs, alphas)
        best = int(np.argmax(heights))
        if not heights[best] > before:
            return Iteration(before, before, 0.0)
        return Iteration(before, float(heights[best]), float(alphas[best]))


def _tops(series: FloatArray) -> FloatArray:
    """Return the maxima of a Chebyshev series within (-1, 1), as exact as the slope of the series allows."""
    slope = chebyshev.chebder(series)
    slopes = chebyshev.chebval(_GRID, slope)
    tops = np.flatnonzero((slopes[:-1] > 0) & (slopes[1:] <= 0))
    low, high = _GRID[tops], _GRID[tops + 1]
    for _ in range(60):
        middle = low + (high - low) / 2
        rises = chebyshev.chebval(middle, slope) > 0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    return low
