"""Values that follow from the pairs of events that classes rank right.

AUCs, their means, and the worst AUCs.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from ..arrays import FloatArray, Int64Array
from ..kernels.compile import Integer, entry, kernel

FIGURES: Final = 8
"""How many numbers `write_means` writes in a line."""


class Values(NamedTuple):
    """AUCs of n classes.

    aucs           the AUC of each class against all others
    pair_aucs      float64[n, n]: A(i|j); NaN for i = j. Empty where events have several labels
    macro, weighted, m
                   means of the AUCs; see `figures`
    worst_class    the class of the least AUC, the first if several are equal
    worst_class_auc
                   that AUC
    worst_pair     the classes i < j of the least mean of A(i|j) and A(j|i), the first if several are equal;
                   None: there are no pairs
    worst_pair_auc that mean
    """

    aucs: FloatArray
    pair_aucs: FloatArray
    macro: float
    weighted: float
    m: float
    worst_class: int
    worst_class_auc: float
    worst_pair: tuple[int, int] | None
    worst_pair_auc: float


@kernel
def _write(
    aucs: FloatArray, shares: FloatArray, pair_aucs: FloatArray, n: Integer, found: FloatArray, row: Integer
) -> None:
    macro = 0.0
    for i in range(n):
        macro += aucs[i]
    macro /= n
    moved, worst = 0.0, 0
    for i in range(n):
        moved += shares[i] * (aucs[i] - macro)
        if aucs[i] < aucs[worst]:
            worst = i
    found[row, 0], found[row, 1], found[row, 3], found[row, 4] = macro, macro + moved, worst, aucs[worst]
    if len(pair_aucs) < 2:
        return
    total, least = 0.0, np.inf
    for i in range(n):
        for j in range(i + 1, n):
            mean = (pair_aucs[i, j] + pair_aucs[j, i]) / 2
            total += mean
            if mean < least:
                found[row, 5], found[row, 6], found[row, 7] = i, j, mean
                least = mean
    found[row, 2] = total / (n * (n - 1) / 2)


@entry
def write_means(aucs: FloatArray, shares: FloatArray, pair_aucs: FloatArray, found: FloatArray) -> None:
    """Write into `found` macro, weighted, m, the worst class and its AUC, the worst pair (i, j) and its AUC.

    shares     the shares of the classes; their sum is 1
    pair_aucs  float64[0, 0]: there are no pairs, and the numbers about pairs in `found` do not change
    found      float64[1, FIGURES]
    """
    _write(aucs, shares, pair_aucs, len(aucs), found, 0)


@kernel
def write_means_now(
    counts: Int64Array,
    pairs: Int64Array,
    aucs: FloatArray,
    pair_aucs: FloatArray,
    shares: FloatArray,
    found: FloatArray,
    row: Integer,
) -> None:
    """Write the numbers of `write_means`, for events that count 1 each, into a line of `found`.

    O(classes^2).

    counts  the events of each class; classes without events are left out, and the other
            classes numbered again
    pairs   twice the pairs of an event of class i and one of class j that the score of class i ranks right
    aucs, pair_aucs, shares
            scratch space, filled with AUCs and shares of the classes that have events
    found   NaN if fewer than two classes have events; otherwise as `write_means`, followed by the events of
            each class
    """
    events, n = 0, 0
    for i in range(len(counts)):
        events += counts[i]
        n += counts[i] > 0
        found[row, FIGURES + i] = counts[i]
    if n < 2:
        return
    at = 0
    for i in range(len(counts)):
        if counts[i] == 0:
            continue
        right, other = np.int64(0), 0
        for j in range(len(counts)):
            if counts[j] == 0:
                continue
            if i != j:
                right += pairs[i, j]
                pair_aucs[at, other] = pairs[i, j] / (2.0 * counts[i] * counts[j])
            other += 1
        aucs[at] = right / (2.0 * counts[i] * (events - counts[i]))
        shares[at] = counts[i] / events
        at += 1
    _write(aucs, shares, pair_aucs, n, found, row)


def values_of(aucs: FloatArray, shares: FloatArray, pair_aucs: FloatArray) -> Values:
    """Return the `Values` of AUCs."""
    found = np.full((1, FIGURES), np.nan)
    write_means(aucs, shares, pair_aucs, found)
    return _of_line(found[0], aucs, pair_aucs)


def values_of_line(found: FloatArray) -> Values | None:
    """Return the values of a line that `write_means_now` wrote, without arrays.

    None if the means have no value.
    """
    return None if math.isnan(found[0]) else _of_line(found, np.empty(0), np.empty((0, 0)))


def _of_line(found: FloatArray, aucs: FloatArray, pair_aucs: FloatArray) -> Values:
    macro, weighted, m, worst, worst_auc, i, j, pair_auc = found[:FIGURES].tolist()
    pair = None if math.isnan(i) else (int(i), int(j))
    return Values(aucs, pair_aucs, macro, weighted, m, int(worst), worst_auc, pair, pair_auc)
