"""The values that follow from the pairs of events that classes rank right: AUCs, their means, the worst."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import FloatArray
from ..kernels.compile import entry, kernel


class Values(NamedTuple):
    """AUCs of n classes.

    aucs           of each class against all others
    pair_aucs      float64[n, n]: A(i|j); NaN for i = j. Empty where events have several labels
    macro, weighted, m
                   means of the AUCs; see `figures`
    worst_class    the class of the least AUC, the first of several
    worst_pair     the classes i < j of the least mean of A(i|j) and A(j|i), the first of several; None: there
                   are no pairs
    worst_pair_auc that mean
    """

    aucs: FloatArray
    pair_aucs: FloatArray
    macro: float
    weighted: float
    m: float
    worst_class: int
    worst_pair: tuple[int, int] | None
    worst_pair_auc: float


@kernel
def sum_of(values: FloatArray) -> float:
    """Return the sum of numbers, from the first to the last."""
    total = 0.0
    for value in values:
        total += value
    return total


@entry
def write_means(aucs: FloatArray, shares: FloatArray, pair_aucs: FloatArray, found: FloatArray) -> None:
    """Write into `found` macro, weighted, m, the worst class, the worst pair (i, j) and its AUC.

    shares     of the classes; their sum is 1
    pair_aucs  float64[0, 0]: there are no pairs, and what is said of them is left as it is
    """
    n = len(aucs)
    macro = sum_of(aucs) / n
    moved = 0.0
    for i in range(n):
        moved += shares[i] * (aucs[i] - macro)
    found[0], found[1], found[3] = macro, macro + moved, np.argmin(aucs)
    if len(pair_aucs) < 2:
        return
    total, least = 0.0, np.inf
    for i in range(n):
        for j in range(i + 1, n):
            mean = (pair_aucs[i, j] + pair_aucs[j, i]) / 2
            total += mean
            if mean < least:
                found[4], found[5], found[6] = i, j, mean
                least = mean
    found[2] = total / (n * (n - 1) / 2)


def values_of(aucs: FloatArray, shares: FloatArray, pair_aucs: FloatArray) -> Values:
    """Return the values of AUCs; see `Values`."""
    found = np.full(7, np.nan)
    write_means(aucs, shares, pair_aucs, found)
    macro, weighted, m, worst, *pair, worst_pair_auc = found.tolist()
    is_paired = len(pair_aucs) > 1
    return Values(
        aucs, pair_aucs, macro, weighted, m, int(worst), (int(pair[0]), int(pair[1])) if is_paired else None,
        worst_pair_auc,
    )  # fmt: skip
