"""Dense rows, standardised on the fly: their scores and their weighted sum; memory is read once, not written.

numpy's form, a standardised copy of each block and products with it, took 4 times as long: copies cost more
than products.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...arrays import FloatArray
from ...kernels.compile import entry, reordering, scanning
from .chebyshev import LANES, slopes_by_class


@reordering
def scores_of_rows(
    rows: FloatArray,
    mean: FloatArray,
    inverse: FloatArray,
    weights: FloatArray,
    limit: float,
    scores: FloatArray,
    shrinkage: FloatArray,
) -> None:
    """Fill scores and shrinkage, (n,): z . weights of z = (row - mean) * inverse, drawn in, and by how much.

    limit  greatest square of the length of z; a longer one is multiplied by its shrinkage, else by 1
    """
    for i in range(len(rows)):
        score = square = 0.0
        for j in range(len(mean)):
            z = (rows[i, j] - mean[j]) * inverse[j]
            score += z * weights[j]
            square += z * z
        factor = 1.0 if square <= limit else np.sqrt(limit / square)
        scores[i] = score * factor
        shrinkage[i] = factor


@entry
def add_rows(rows: FloatArray, mean: FloatArray, factors: FloatArray, total: FloatArray) -> None:
    """Add to total, (m,), every row less the mean, times its factor."""
    for i in range(len(rows)):
        factor = factors[i]
        for j in range(len(mean)):
            total[j] += factor * (rows[i, j] - mean[j])


@scanning
def add_gradient(
    rows: FloatArray,
    mean: FloatArray,
    inverse: FloatArray,
    weights: FloatArray,
    limit: float,
    offset: float,
    row_weights: FloatArray,
    is_positive: npt.NDArray[np.bool_],
    of_positives: FloatArray,
    of_negatives: FloatArray,
    total: FloatArray,
) -> None:
    """Add to total, (m,), every row less the mean, drawn in, times its slope (`slopes_by_class`).

    O(n (m + d)). Some rows at a time, which stay in the nearest cache from the first use to the last.
    """
    scores, shrinkage, slopes = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    for begin in range(0, len(rows), LANES):
        end = min(begin + LANES, len(rows))
        count = end - begin
        part = rows[begin:end]
        scores_of_rows(part, mean, inverse, weights, limit, scores[:count], shrinkage[:count])
        slopes_by_class(
            scores[:count], offset, row_weights[begin:end], is_positive[begin:end],
            of_positives, of_negatives, slopes[:count],
        )  # fmt: skip
        for i in range(count):
            slopes[i] *= shrinkage[i]
        add_rows(part, mean, slopes[:count], total)
