"""Rows of features, standardised to mean 0 and deviation 1, dense or sparse, block by block.

Far rows move towards the mean.

The greatest distance is `reach` times the root of the number of features, in standard deviations. A farther
row moves towards the mean, to that distance. Otherwise one row of huge values would set the range of all
scores. Apart from far rows, scores are linear in the rows.

Dense rows are standardised whenever kernels read them, so that memory is read once and not written. numpy's
form, a standardised copy of each block and products with it, took 4 times as long: copies cost more than
products.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ...arrays import FloatArray
from ...kernels.compile import entry, reordering, scanning
from .chebyshev import LANES, slopes_by_class

_BLOCK_VALUES = 1 << 16
_LEAST_ROWS, _MOST_ROWS = 128, 2048
"""The least and the greatest number of rows of a block.

A block of some 512 KB stays in the cache between its uses.
"""


class Block(NamedTuple):
    """Some rows: features, dense float64 or CSR, (n, m); whether each row is positive; weights above 0."""

    features: Any
    is_positive: npt.NDArray[np.bool_]
    weights: FloatArray


def blocks_of(
    features: Any, is_positive: npt.NDArray[np.bool_], weights: FloatArray | None
) -> Iterator[Block]:
    """Cut rows into blocks; rows of weight 0 are left out. Numbers become float64 a block at a time."""
    rows, columns = features.shape
    size = min(_MOST_ROWS, max(_LEAST_ROWS, _BLOCK_VALUES // max(1, columns)))
    ones = np.ones(min(size, rows))
    for begin in range(0, rows, size):
        part, positive = features[begin : begin + size], is_positive[begin : begin + size]
        given = ones[: len(positive)] if weights is None else weights[begin : begin + size]
        kept = given > 0
        if not kept.all():
            part, positive, given = part[kept], positive[kept], given[kept]
        if len(given):
            yield Block(part, positive, given)


@dataclass(frozen=True, eq=False)
class Slopes:
    """The slope of an objective by a row's score u = weights . row + offset, as a series in u by class."""

    weights: FloatArray
    offset: float
    of_positives: FloatArray
    of_negatives: FloatArray


@dataclass(frozen=True, eq=False)
class Standardiser:
    """Standardises rows: moves each to mean 0, scales it to deviation 1, and moves far rows towards the mean.

    mean, inverse  (m,): of each feature its mean, and 1 / its deviation; 0 where it is constant
    reach          greatest distance from the mean, in root mean squares of the distance; infinity: no row is
                   too far
    """

    mean: FloatArray
    inverse: FloatArray
    reach: float

    @property
    def radius(self) -> float:
        """The greatest distance of a row from the mean, in standard deviations."""
        return self.reach * float(np.sqrt(np.count_nonzero(self.inverse)))

    def of(self, features: Any) -> DenseRows | SparseRows:
        """Return the standardised rows of a block."""
        return SparseRows(features, self) if sparse.issparse(features) else DenseRows(features, self)


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
    """Fill `scores` with z . weights, z = (row - mean) * inverse * shrinkage, and `shrinkage`, (n,) each.

    limit  greatest squared length of z; shrinkage is below 1 for a row beyond the limit, else 1
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
    """Add to `total`, (m,), the sum of (row - mean) * factor over all rows."""
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
    """Add to `total`, (m,), the sum of (row - mean) * shrinkage * slope over all rows (`slopes_by_class`).

    O(n (m + d)). The loop takes some rows at a time, which stay in the nearest cache from the first use to
    the last.
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


class DenseRows:
    """Rows of an array, which are standardised, and moved inwards if far, whenever they are read."""

    def __init__(self, features: Any, standardiser: Standardiser) -> None:
        self._rows = np.ascontiguousarray(features, np.float64)
        self._by = standardiser

    def scores(self, weights: FloatArray) -> FloatArray:
        """Return the rows times weights, (m,). O(values)."""
        scores, shrinkage = np.empty((2, len(self._rows)))
        by = self._by
        scores_of_rows(self._rows, by.mean, by.inverse, weights, by.radius**2, scores, shrinkage)
        return scores

    def gradient(self, slopes: Slopes, block: Block) -> FloatArray:
        """Return the sum of the rows of the block, each times its weight and slope. O(values + n d)."""
        by, total = self._by, np.zeros(len(slopes.weights))
        add_gradient(
            self._rows, by.mean, by.inverse, slopes.weights, by.radius**2, slopes.offset, block.weights,
            block.is_positive, slopes.of_positives, slopes.of_negatives, total,
        )  # fmt: skip
        return total * by.inverse


class SparseRows:
    """The standardised rows of a CSR matrix.

    A row is the standardised row of zeros plus the contributions of its stored entries.
    """

    def __init__(self, features: Any, standardiser: Standardiser) -> None:
        inverse, columns = standardiser.inverse, features.indices
        self._base = -standardiser.mean * inverse
        scaled = features.data * inverse[columns]
        self._rows = sparse.csr_matrix((scaled, columns, features.indptr), features.shape)
        beside = scaled * (scaled + 2.0 * self._base[columns])
        entries = sparse.csr_matrix((beside, columns, features.indptr), features.shape)
        squares = entries @ np.ones(len(inverse)) + self._base @ self._base
        limit = standardiser.radius**2
        far = squares > limit
        self._shrinkage = np.ones(len(squares))
        self._shrinkage[far] = np.sqrt(limit / squares[far])

    def scores(self, weights: FloatArray) -> FloatArray:
        """See `DenseRows`."""
        return (self._rows @ weights + self._base @ weights) * self._shrinkage

    def gradient(self, slopes: Slopes, block: Block) -> FloatArray:
        """See `DenseRows`."""
        factors = np.empty(len(block.weights))
        slopes_by_class(
            self.scores(slopes.weights), slopes.offset, block.weights, block.is_positive,
            slopes.of_positives, slopes.of_negatives, factors,
        )  # fmt: skip
        factors *= self._shrinkage
        return factors @ self._rows + self._base * factors.sum()
