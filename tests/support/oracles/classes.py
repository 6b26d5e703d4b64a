"""Oracles of AUC with more than two classes: every pair of events is looked at, in exact fractions.

An event has a label, a score of each class, and a weight. A(i|j) is the share of pairs of an event of class
i and one of class j in which the event of class i has the higher score of class i; a tie counts one half
(Hand & Till 2001). Without weights every event weighs 1.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple


class ClassesTruth(NamedTuple):
    """The figures of a window; None where a figure has no value.

    aucs       of each class against all others
    pairs      A(i|j) by (i, j), of classes that have events
    variances  of macro, weighted and m; None with fewer than two events of a class that counts
    """

    aucs: list[Any]
    pairs: dict[tuple[int, int], Fraction]
    macro: Any
    weighted: Any
    m: Any
    variances: tuple[Any, Any, Any]

    @property
    def worst_class(self):
        """(AUC, class) of the least AUC, the first of several."""
        known = [(auc, number) for number, auc in enumerate(self.aucs) if auc is not None]
        return min(known, default=None)

    @property
    def worst_pair(self):
        """(mean of both directions, i, j) of the least mean, the first of several."""
        pairs = self.pairs
        return min([((pairs[i, j] + pairs[j, i]) / 2, i, j) for i, j in pairs if i < j], default=None)


def one_hot(labels, classes):
    """For each event, whether it is of each of the classes, whose numbers are the labels."""
    return [[label == number for number in range(classes)] for label in labels]


def classes_truth(members, scores, weights=None):
    """The figures of a window.

    members  for each event, whether it is of each class; where several are true, `m` has no meaning
    scores   for each event, its score of each class
    """
    w = [Fraction(1)] * len(members) if weights is None else [Fraction(each) for each in weights]
    classes = range(len(members[0]) if members else 0)
    of = [[e for e, member in enumerate(members) if member[c]] for c in classes]
    rest = [[e for e, member in enumerate(members) if not member[c]] for c in classes]
    some = [c for c in classes if of[c] and rest[c]]
    aucs = [None] * len(classes)
    placed = {}
    for c in some:
        for e, member in enumerate(members):
            placed[c, e] = _right(e, rest[c], scores, c, w) if member[c] else _right(e, of[c], scores, c, w)
        aucs[c] = _mean([(placed[c, e], w[e]) for e in of[c]])
        for e in rest[c]:
            placed[c, e] = 1 - placed[c, e]
    there = [c for c in classes if of[c]]
    pairs = {
        (i, j): _mean([(_right(e, of[j], scores, i, w), w[e]) for e in of[i]])
        for i in there
        for j in there
        if i != j
    }
    if not some:
        return ClassesTruth(aucs, pairs, None, None, None, (None, None, None))
    mass = [sum(w[e] for e in of[c]) for c in classes]
    whole = sum(mass[c] for c in some)
    shares = {c: mass[c] / whole for c in some}
    weighted = sum(shares[c] * aucs[c] for c in some)
    moves = {e: sum(aucs[c] - weighted for c in some if members[e][c]) for e in range(len(w))}
    return ClassesTruth(
        aucs,
        pairs,
        sum(aucs[c] for c in some) / len(some),
        weighted,
        sum(pairs.values()) / len(pairs),
        (
            _variance_over_rests({c: Fraction(1, len(some)) for c in some}, of, rest, placed, aucs, w),
            _variance_over_rests(shares, of, rest, placed, aucs, w, moves, whole),
            _variance_of_m(of, there, scores, w, pairs),
        ),
    )


def _right(event, others, scores, c, w):
    """The share of the mass of others that has a lower score of class c than an event."""
    right = Fraction(0)
    for other in others:
        difference = scores[event][c] - scores[other][c]
        right += w[other] * (Fraction(1, 2) if difference == 0 else int(difference > 0))
    return right / sum(w[other] for other in others)


def _mean(weighted):
    return sum(value * weight for value, weight in weighted) / sum(weight for _, weight in weighted)


def _beyond(events, w):
    """The effective size of some events, less 1; with unit weights their number less 1."""
    return sum(w[e] for e in events) ** 2 / sum(w[e] ** 2 for e in events) - 1


def _variance_over_rests(shares, of, rest, placed, aucs, w, moves=None, whole=None):
    """The sum over events of the squared change that an event makes to sum shares[c] AUC_c.

    For one class it is DeLong's variance. `moves`: what an event's membership changes in the shares.
    """
    if any(_beyond(side, w) < 1 - 1e-9 for c in shares for side in (of[c], rest[c])):
        return None
    changes = [0.0] * len(w)
    for c, share in shares.items():
        for side in (of[c], rest[c]):
            scale = float(sum(w[e] for e in side) * _beyond(side, w))
            for e in side:
                changes[e] += float(share * (placed[c, e] - aucs[c])) / math.sqrt(scale)
    if moves is not None:
        total = sum(w)
        scale = float(total * _beyond(range(len(w)), w))
        for e, move in moves.items():
            changes[e] += float(move * total / whole) / math.sqrt(scale)
    return sum(float(weight) * change**2 for weight, change in zip(w, changes, strict=True))


def pair_covariances(of, there, scores, w, pairs):
    """The covariances of all A(i|j), by two pairs: sums over classes of those of placements (Xu 2024)."""
    placed = {}
    for i, j in pairs:
        for e in of[i]:
            placed[i, j, e] = _right(e, of[j], scores, i, w)
        for e in of[j]:
            placed[i, j, e] = 1 - _right(e, of[i], scores, i, w)
    found = {}
    for a in pairs:
        for b in pairs:
            covariance = Fraction(0)
            for y in set(a) & set(b):
                products = [((placed[*a, e] - pairs[a]) * (placed[*b, e] - pairs[b]), w[e]) for e in of[y]]
                covariance += _mean(products) / _beyond(of[y], w)
            found[a, b] = covariance
    return found


def _variance_of_m(of, there, scores, w, pairs):
    """The variance of the mean of all A(i|j)."""
    if any(_beyond(of[c], w) < 1 - 1e-9 for c in there):
        return None
    return sum(pair_covariances(of, there, scores, w, pairs).values()) / len(pairs) ** 2
