"""Rows of features with mean 0 and deviation 1, dense or sparse, block by block; far ones drawn nearer.

Scores are linear in the rows, but for the drawing in: a row farther from the mean than `reach` times the root
of the number of features, in standard deviations, is moved along its line to the mean until it is not. One
row of huge values would otherwise set the range of all scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .events import FloatArray

_BLOCK_VALUES = 1 << 16
_LEAST_ROWS, _MOST_ROWS = 128, 2048
"""A block of some 512 KB stays in the cache between its uses."""


def is_sparse(features: Any) -> bool:
    """Return whether features are a sparse matrix or array of scipy."""
    return bool(sparse.issparse(features))


class Block(NamedTuple):
    """Some rows: features, dense float64 or CSR, (n, m); whether each is positive; weights above 0."""

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
        if weights is None:
            yield Block(part, positive, ones[: len(positive)])
            continue
        given = weights[begin : begin + size]
        kept = given > 0
        if not kept.all():
            part, positive, given = part[kept], positive[kept], given[kept]
        if len(given):
            yield Block(part, positive, given)


@dataclass(frozen=True, eq=False)
class Standardiser:
    """Turns rows into standardised ones.

    mean, inverse  (m,): of each feature its mean, and 1 / its deviation; 0 where it is constant
    reach          greatest distance from the mean, in root mean squares of the distance; infinity: any
    """

    mean: FloatArray
    inverse: FloatArray
    reach: float

    @property
    def radius(self) -> float:
        """The greatest distance of a row from the mean, in standard deviations."""
        return self.reach * float(np.sqrt(np.count_nonzero(self.inverse)))

    def of(self, features: Any) -> StandardisedRows:
        """Return the rows of a block, standardised. O(values)."""
        if is_sparse(features):
            base = -self.mean * self.inverse
            scaled = features.data * self.inverse[features.indices]
            rows = sparse.csr_matrix((scaled, features.indices, features.indptr), features.shape)
            norms = None
            if np.isfinite(self.reach):
                beside = scaled * (scaled + 2.0 * base[features.indices])
                squares = sparse.csr_matrix((beside, features.indices, features.indptr), features.shape)
                norms = np.maximum(0.0, squares @ np.ones(len(base)) + base @ base)
            return StandardisedRows(rows, base, self._shrinkage(norms))
        dense = (features - self.mean) * self.inverse
        norms = np.einsum("ij,ij->i", dense, dense) if np.isfinite(self.reach) else None
        return StandardisedRows(dense, None, self._shrinkage(norms))

    def _shrinkage(self, squares: FloatArray | None) -> FloatArray | None:
        """Return by what each row is multiplied, from its squared distance; None where all stay."""
        if squares is None or not len(squares):
            return None
        limit = self.radius**2
        if squares.max() <= limit:
            return None
        return np.sqrt(limit / np.maximum(squares, limit))


@dataclass(frozen=True, eq=False)
class StandardisedRows:
    """Rows, each (base + row) * shrinkage; base is what a sparse row has where it has no entry."""

    rows: Any
    base: FloatArray | None
    shrinkage: FloatArray | None

    def scores(self, weights: FloatArray) -> FloatArray:
        """Return the rows times weights, (m,) or (m, k). O(values)."""
        scores: FloatArray = self.rows @ weights
        if self.base is not None:
            scores += self.base @ weights
        if self.shrinkage is not None:
            scores *= self.shrinkage if scores.ndim == 1 else self.shrinkage[:, np.newaxis]
        return scores

    def weighted_sum(self, factors: FloatArray) -> FloatArray:
        """Return the sum of the rows, each times its factor. O(values)."""
        if self.shrinkage is not None:
            factors = factors * self.shrinkage
        total: FloatArray = factors @ self.rows
        if self.base is not None:
            total = total + self.base * factors.sum()
        return total
