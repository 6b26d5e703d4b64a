"""Two AUCs over the same instances, and DeLong's variance of their difference, from placements.

The placement of a positive is the share of negatives that score below it, and the placement of a negative is
the share of positives that score above it; ties count one half. With d the difference of an instance's
placements under two models, and D the mean of d over either class,

    difference = D
    variance   = sum over positives of (d - D)^2 / (P (P - 1)) + the same over the N negatives

This is the variance of DeLong, DeLong & Clarke-Pearson (1988) with its covariance: var A + var B - 2 cov.

Equal weights
    Placements are counted in halves, as whole numbers, and the sums are exact. So the difference and the
    variance are exactly 0 if both models rank alike, and no result depends on the order of instances.
With weights
    A mean is weighted, and the number of instances of a class is its effective size (sum w)^2 / sum w^2, as
    for the AUC of one model. A factor common to all weights of a class changes nothing. Weights are rounded,
    so that their sums are exact, too: models that rank alike have a difference and a variance of exactly 0.

Cost: O(n log n). Two models and 10,000 instances take 0.4 ms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray, Int8Array, Int64Array
from ..kernels.compile import entry


@dataclass(frozen=True, slots=True)
class PairFigures:
    """The figures of two models over the same instances, with at least one instance of each class.

    positives, negatives  the masses of the classes
    auc, auc_against      the AUCs of both models
    difference            auc - auc_against
    variance              the variance of the difference; None with fewer than two instances of a class
    """

    positives: float
    negatives: float
    auc: float
    auc_against: float
    difference: float
    variance: float | None


@entry
def write_doubled(order: Int64Array, labels: Int8Array, scores: FloatArray, doubled: Int64Array) -> None:
    """Write twice the placement of each instance, counted in instances of the other class.

    order  the instances by rising score
    """
    n = len(order)
    positives = 0
    for at in range(n):
        positives += labels[at]
    below_p = below_n = first = 0
    while first < n:
        end, tied_p = first, 0
        score = scores[order[first]]
        while end < n and scores[order[end]] == score:
            tied_p += labels[order[end]]
            end += 1
        tied_n = end - first - tied_p
        of_positive = 2 * below_n + tied_n
        of_negative = 2 * (positives - below_p - tied_p) + tied_p
        for place in range(first, end):
            doubled[order[place]] = of_positive if labels[order[place]] == 1 else of_negative
        below_p += tied_p
        below_n += tied_n
        first = end


def compare(labels: Int8Array, scores: FloatArray, against: FloatArray) -> PairFigures | None:
    """Compare two models over n instances of equal weight; None if a class is missing. O(n log n).

    labels           1 and 0
    scores, against  finite scores of both models

    >>> labels = np.array([0, 0, 0, 1, 1, 1], np.int8)
    >>> a, b = np.array([.1, .2, .6, .5, .8, .9]), np.array([.4, .1, .7, .3, .5, .9])
    >>> found = compare(labels, a, b)
    >>> round(found.auc, 3), round(found.auc_against, 3), round(found.variance, 4)
    (0.889, 0.667, 0.0247)
    """
    positives = int(np.count_nonzero(labels))
    negatives = len(labels) - positives
    if not positives or not negatives:
        return None
    placed: tuple[Int64Array, Int64Array] = (np.empty(len(labels), np.int64), np.empty(len(labels), np.int64))
    for column, doubled in zip((scores, against), placed, strict=True):
        write_doubled(np.argsort(column), labels, column, doubled)
    of_positive = labels == 1
    mine, other = (int(doubled[of_positive].sum()) for doubled in placed)
    pairs = 2 * positives * negatives
    figures = positives, negatives, mine / pairs, other / pairs, (mine - other) / pairs
    if positives < 2 or negatives < 2:
        return PairFigures(*figures, None)
    differences = placed[0] - placed[1]
    variance = sum(
        _spread(differences[which], own, others)
        for which, own, others in (
            (of_positive, positives, negatives), (~of_positive, negatives, positives),
        )
    )  # fmt: skip
    return PairFigures(*figures, variance)


def _spread(doubled: Int64Array, own: int, others: int) -> float:
    """Return a class's part of the variance; `doubled` are differences of doubled placements.

    The sums are whole numbers of any size, so that the part is 0 only if all differences are equal.
    """
    total = int(doubled.sum())
    if own * (2 * others) ** 2 < 2**63:
        squares = int(np.dot(doubled, doubled))
    else:
        squares = sum(value * value for value in doubled.tolist())
    return (own * squares - total * total) / (4 * others**2 * own**2 * (own - 1))


def compare_weighted(
    labels: Int8Array, scores: FloatArray, against: FloatArray, weights: FloatArray
) -> PairFigures | None:
    """Compare two models over n instances with weights above 0; see `compare`. O(n log n)."""
    of_positive = labels == 1
    if of_positive.all() or not of_positive.any():
        return None
    own, other = (_whole(weights[which], len(labels)) for which in (of_positive, ~of_positive))
    mass, other_mass = float(own.sum()), float(other.sum())
    placed = [
        (
            _shares(column[of_positive], column[~of_positive], other) / other_mass,
            1 - _shares(column[~of_positive], column[of_positive], own) / mass,
        )
        for column in (scores, against)
    ]
    aucs = [float(np.dot(own, of_own)) / mass for of_own, _ in placed]
    (mine, mine_n), (theirs, theirs_n) = placed
    difference = float(np.dot(own, mine - theirs)) / mass
    parts = (own, mass, mine - theirs), (other, other_mass, mine_n - theirs_n)
    variance, is_enough = 0.0, True
    for weight, total, differences in parts:
        beyond = total * total / float(np.dot(weight, weight)) - 1
        is_enough &= beyond >= 1 - 1e-9  # two events of equal weight are enough
        if is_enough and differences.min() < differences.max():
            variance += float(np.dot(weight, (differences - difference) ** 2)) / total / beyond
    positives, negatives = (float(weights[which].sum()) for which in (of_positive, ~of_positive))
    found = variance if is_enough else None
    return PairFigures(positives, negatives, aucs[0], aucs[1], difference, found)


def _whole(weights: FloatArray, count: int) -> FloatArray:
    """Return the weights of a class as whole numbers; the sum of `count` of them is below 2^52. O(n).

    So sums are exact in any order, and instances that two models rank alike have one placement under both.
    Relative to the greatest weight the error is count / 2^52.
    """
    most = 2.0 ** (51 - count.bit_length())
    return np.asarray(np.rint(weights / weights.max() * most))


def _shares(scores: FloatArray, others: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the mass of `others` below each score, ties one half."""
    order = np.argsort(others, kind="stable")
    ranked, below = others[order], np.concatenate(([0.0], np.cumsum(weights[order])))
    left, right = (np.searchsorted(ranked, scores, side) for side in ("left", "right"))
    return np.asarray((below[left] + below[right]) / 2)
