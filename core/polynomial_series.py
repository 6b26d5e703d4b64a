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
