"""Chebyshev polynomials of many scores at once: their values, and series of them by class.

Loops run over scores within degrees, so that they are compiled to vectors without any leave to reorder
additions; blocks of some thousand scores stay in the cache.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .events import FloatArray
from .kernels import entry, scanning

_LANES = 256


@entry
def chebyshev_values(u: FloatArray, values: FloatArray) -> None:
    """Fill values, (d + 1, n), with T_0 ... T_d of n scores u in [-1, 1]. O(d n)."""
    count = len(u)
    for i in range(count):
        values[0, i] = 1.0
        values[1, i] = u[i]
    for degree in range(2, len(values)):
        for i in range(count):
            values[degree, i] = 2.0 * u[i] * values[degree - 1, i] - values[degree - 2, i]


@scanning
def series_by_class(
    u: FloatArray,
    is_positive: npt.NDArray[np.bool_],
    of_positives: FloatArray,
    of_negatives: FloatArray,
    values: FloatArray,
) -> None:
    """Fill values with the series of each score's class, by Clenshaw's recurrence. O(d n).

    u             n scores in [-1, 1]
    of_positives  coefficients of T_0, T_1, ...; of_negatives as many
    """
    last, before = np.empty(_LANES), np.empty(_LANES)
    for begin in range(0, len(u), _LANES):
        count = min(_LANES, len(u) - begin)
        last[:] = 0.0
        before[:] = 0.0
        for degree in range(len(of_positives) - 1, 0, -1):
            positive, negative = of_positives[degree], of_negatives[degree]
            for i in range(count):
                term = positive if is_positive[begin + i] else negative
                before[i] = 2.0 * u[begin + i] * last[i] - before[i] + term
            last, before = before, last
        for i in range(count):
            term = of_positives[0] if is_positive[begin + i] else of_negatives[0]
            values[begin + i] = u[begin + i] * last[i] - before[i] + term


@scanning
def moments_of_mixtures(
    sums: FloatArray, of_first: FloatArray, of_second: FloatArray, constants: FloatArray, moments: FloatArray
) -> None:
    """Fill moments, (n, d + 1), with sums of T_0 ... T_d(f), f = p a + q b + c, for n mixtures (p, q, c).

    sums  (d + 1, d + 1): of T_r(a) T_s(b); looked at where r + s <= d

    The sums of T_{k+1}(f) T_r(a) T_s(b) follow from those for k and k - 1, since T_{k+1}(f) = 2 f T_k(f) -
    T_{k-1}(f), and 2 a T_r(a) = T_{r+1}(a) + T_{|r-1|}(a). At each k they are wanted for r + s <= d - k.
    O(n d^3).
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
