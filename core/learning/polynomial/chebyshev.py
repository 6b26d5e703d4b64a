"""Chebyshev polynomials of many scores at once: their values, and series of them by class.

The inner loops run over scores, so that they compile to vector code without reordering additions. Blocks of
some thousand scores stay in the cache.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...arrays import FloatArray
from ...kernels.compile import entry, scanning

LANES = 64
"""Scores of a block."""


@scanning
def chebyshev_values(
    scores: FloatArray, middle: float, half: float, weights: FloatArray, values: FloatArray
) -> None:
    """Fill values, (d + 1, n), with w T_0(u) ... w T_d(u) of n scores, u = (score - middle) / half. O(d n).

    u is 0 if `half` is 0; u is within [-1, 1]. The weight enters the recurrence at its start, which takes no
    extra time.
    """
    count = len(scores)
    twice = np.zeros(count)
    for i in range(count):
        if half > 0.0:
            twice[i] = 2.0 * min(1.0, max(-1.0, (scores[i] - middle) / half))
        values[0, i] = weights[i]
        values[1, i] = weights[i] * twice[i] / 2.0
    for degree in range(2, len(values)):
        for i in range(count):
            values[degree, i] = twice[i] * values[degree - 1, i] - values[degree - 2, i]


@entry
def widen_ranges(
    first: FloatArray, second: FloatArray, shares: FloatArray, lows: FloatArray, highs: FloatArray
) -> None:
    """Widen k ranges [low, high] until each holds first + share * second for all n rows. O(n k)."""
    for i in range(len(first)):
        for k in range(len(shares)):
            mixed = first[i] + shares[k] * second[i]
            lows[k] = min(lows[k], mixed)
            highs[k] = max(highs[k], mixed)


@scanning
def slopes_by_class(
    scores: FloatArray,
    offset: float,
    weights: FloatArray,
    is_positive: npt.NDArray[np.bool_],
    of_positives: FloatArray,
    of_negatives: FloatArray,
    slopes: FloatArray,
) -> None:
    """Fill `slopes` with the weight of each row times the series of its class, by Clenshaw's recurrence.

    O(d n).

    scores        of n rows; u = score + offset, within [-1, 1]
    of_positives  coefficients of T_0, T_1, ... for positives; of_negatives has as many for negatives
    """
    u, twice, share = np.zeros(LANES), np.zeros(LANES), np.zeros(LANES)
    last, before = np.zeros(LANES), np.zeros(LANES)
    for begin in range(0, len(scores), LANES):
        count = min(LANES, len(scores) - begin)
        for i in range(count):
            u[i] = min(1.0, max(-1.0, scores[begin + i] + offset))
            share[i] = 1.0 if is_positive[begin + i] else 0.0
        for i in range(LANES):
            twice[i] = 2.0 * u[i]
            last[i] = before[i] = 0.0
        for degree in range(len(of_positives) - 1, -1, -1):
            negative = of_negatives[degree]
            more = of_positives[degree] - negative
            factor = twice if degree else u
            for i in range(LANES):  # a fixed length compiles to vector code without a remainder loop
                before[i] = factor[i] * last[i] - before[i] + (negative + more * share[i])
            last, before = before, last
        for i in range(count):
            slopes[begin + i] = weights[begin + i] * last[i]


@scanning
def moments_of_mixtures(
    sums: FloatArray, of_first: FloatArray, of_second: FloatArray, constants: FloatArray, moments: FloatArray
) -> None:
    """Fill `moments`, (n, d + 1), with sums of T_0 ... T_d(f), f = p a + q b + c, for n mixtures (p, q, c).

    sums  (d + 1, d + 1): sums of T_r(a) T_s(b); only those with r + s <= d are read

    The sums of T_{k+1}(f) T_r(a) T_s(b) follow from the sums for k and k - 1. Two recurrences give them:
    T_{k+1}(f) = 2 f T_k(f) - T_{k-1}(f), and 2 a T_r(a) = T_{r+1}(a) + T_{|r-1|}(a). Each k needs the sums
    with r + s <= d - k. O(n d^3).
    """
    count = len(sums)
    before, now, after = np.empty((count, count)), np.empty((count, count)), np.empty((count, count))
    for mixture in range(len(of_first)):
        p, q, twice = of_first[mixture], of_second[mixture], 2.0 * constants[mixture]
        for r in range(count):
            for s in range(count - r):
                before[r, s] = 0.0
                now[r, s] = sums[r, s]
        moments[mixture, 0] = now[0, 0]
        for k in range(1, count):
            for r in range(count - k):
                lower = abs(r - 1)
                after[r, 0] = p * (now[r + 1, 0] + now[lower, 0]) + 2.0 * q * now[r, 1] + twice * now[r, 0]
                after[r, 0] -= before[r, 0]
                for s in range(1, count - k - r):
                    along = p * (now[r + 1, s] + now[lower, s]) + q * (now[r, s + 1] + now[r, s - 1])
                    after[r, s] = along + twice * now[r, s] - before[r, s]
                if k == 1:  # T_1(f) is f, not 2 f
                    for s in range(count - k - r):
                        after[r, s] *= 0.5
            before, now, after = now, after, before
            moments[mixture, k] = now[0, 0]
