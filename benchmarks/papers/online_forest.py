"""An online random forest, compiled: what two learners of one algorithm are made of, thousands of times over.

After Saffari et al. 2009, On-line random forests: every tree learns an instance Poisson(1) times. A leaf
watches ceil(sqrt(d)) candidate splits, each of a random feature at the value of an instance that came by, and
takes the best one after GRACE instances if the Gini impurity falls by LEAST_GAIN. The class is the one with
the greatest mean frequency over the leaves that the trees lead to; of equal ones the first.

River's adaptive forest takes a millisecond an instance, this one some microseconds; and unlike trees of
random splits alone it gets better with what it learns, which is what separates cv from split.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rocsteady.core.errors import InputError
from rocsteady.core.kernels.compile import entry, inlined

TREES = 10
MOST_NODES = 255
"""Of a tree."""

GRACE = 50
LEAST_GAIN = 0.005
_POISSON = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(12)])

Codes = npt.NDArray[np.int64]


class _Trees(NamedTuple):
    """Arrays of all trees: t trees, n nodes, k candidates, c classes, and leaves have feature -1.

    feature, threshold    [t, n]: left where the feature is below the threshold
    left                  [t, n]: the child on the left; right of it, the next
    counts                [t, n, c]: instances of each class
    size                  [t]: nodes of a tree
    made                  [t, n]: candidates that a leaf has
    seen                  [t, n]: instances that a leaf has learnt itself
    candidate_feature, candidate_threshold    [t, n, k]
    sides                 [t, n, k, 2, c]: instances on either side of a candidate
    random                [1]: the state of xorshift64*
    """

    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.float64]
    left: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]
    size: npt.NDArray[np.int32]
    made: npt.NDArray[np.int32]
    seen: npt.NDArray[np.int32]
    candidate_feature: npt.NDArray[np.int32]
    candidate_threshold: npt.NDArray[np.float64]
    sides: npt.NDArray[np.int32]
    random: npt.NDArray[np.uint64]


class OnlineForest:
    """A forest for scikit-learn's way (`partial_fit`), and `test_then_train` for a whole stream at once.

    Both come to the same, instance by instance.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._trees: _Trees | None = None

    def test_then_train(self, matrix: Any, codes: Codes, classes: int, weights: Any, tests: Any) -> Codes:
        """Predict each instance that is tested, then learn it so many times; in order.

        matrix  float64[n, d]; codes: int64[n] of classes, below `classes`

        Returns int64[n]: the class, -1 where it was not tested or nothing is learnt yet.
        """
        said = np.full(len(codes), -1)
        trees = self._made(matrix.shape[1], classes)
        _test_then_train(matrix, codes, weights, tests, *trees, np.empty(classes), _POISSON, said)
        return said

    def partial_fit(self, matrix: Any, labels: Any, classes: Any = None) -> OnlineForest:
        """Learn instances one by one; `classes` names all there are, the first time."""
        if classes is not None:
            self.classes_: npt.NDArray[Any] = np.asarray(classes)
        codes = np.array([self.classes_.tolist().index(label) for label in labels.tolist()], np.int64)
        ones, none = np.ones(len(codes), np.int64), np.zeros(len(codes), np.bool_)
        self.test_then_train(matrix, codes, len(self.classes_), ones, none)
        return self

    def predict_proba(self, matrix: Any) -> npt.NDArray[np.float64]:
        """Return the mean frequencies of classes, [n, classes]."""
        trees = self._made(matrix.shape[1], len(self.classes_))
        out = np.empty((len(matrix), len(self.classes_)))
        _frequencies(matrix, *trees[:4], out)
        return out

    def _made(self, features: int, classes: int) -> _Trees:
        if self._trees is None:
            self._trees = _new_trees(features, classes, self._seed)
        if self._trees.counts.shape[2] != classes:
            raise InputError(f"{classes} classes, and the forest was made for {self._trees.counts.shape[2]}")
        return self._trees


def _new_trees(features: int, classes: int, seed: int) -> _Trees:
    nodes, candidates = (TREES, MOST_NODES), (TREES, MOST_NODES, math.ceil(math.sqrt(features)))
    return _Trees(
        np.full(nodes, -1, np.int32), np.zeros(nodes), np.zeros(nodes, np.int32),
        np.zeros((*nodes, classes), np.int32), np.ones(TREES, np.int32), np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int32), np.zeros(candidates, np.int32), np.zeros(candidates),
        np.zeros((*candidates, 2, classes), np.int32),
        np.random.SeedSequence(seed).generate_state(1, np.uint64) | np.uint64(1),
    )  # fmt: skip


@inlined
def _draw(random: Any) -> float:
    """Return a number in [0, 1)."""
    x = random[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    random[0] = x
    return float((x * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(11)) * 2.0**-53


@inlined
def _leaf(matrix: Any, row: int, tree: int, feature: Any, threshold: Any, left: Any) -> int:
    node = 0
    while feature[tree, node] >= 0:
        above = matrix[row, feature[tree, node]] >= threshold[tree, node]
        node = left[tree, node] + (1 if above else 0)
    return node


@inlined
def _vote(matrix: Any, row: int, feature: Any, threshold: Any, left: Any, counts: Any, out: Any) -> None:
    """Write the mean frequencies of classes for an instance; 0 where no tree has learnt anything."""
    classes = counts.shape[2]
    for c in range(classes):
        out[c] = 0.0
    for tree in range(counts.shape[0]):
        node = _leaf(matrix, row, tree, feature, threshold, left)
        total = 0
        for c in range(classes):
            total += counts[tree, node, c]
        if total > 0:
            for c in range(classes):
                out[c] += counts[tree, node, c] / total
    for c in range(classes):
        out[c] /= counts.shape[0]


@inlined
def _impurity(masses: Any) -> float:
    """Return the Gini impurity times the number of instances."""
    total, squares = 0.0, 0.0
    for c in range(len(masses)):
        total += masses[c]
        squares += float(masses[c]) * masses[c]
    return total - squares / total if total > 0.0 else 0.0


@inlined
def _split(
    tree: int, node: int, feature: Any, threshold: Any, left: Any, counts: Any, size: Any, made: Any,
    candidate_feature: Any, candidate_threshold: Any, sides: Any,
) -> None:  # fmt: skip
    """Make the best candidate of a leaf its split, if it is good enough and there is room."""
    if size[tree] + 2 > feature.shape[1]:
        return
    best, chosen = LEAST_GAIN, -1
    for k in range(made[tree, node]):
        below, above = sides[tree, node, k, 0], sides[tree, node, k, 1]
        both, smaller, squares = 0.0, 0.0, 0.0
        for c in range(counts.shape[2]):
            both += below[c] + above[c]
            smaller += below[c]
            squares += float(below[c] + above[c]) ** 2
        if smaller == 0.0 or smaller == both:
            continue
        gain = (both - squares / both - _impurity(below) - _impurity(above)) / both
        if gain >= best:
            best, chosen = gain, k
    if chosen < 0:
        return
    child = size[tree]
    size[tree] += 2
    feature[tree, node] = candidate_feature[tree, node, chosen]
    threshold[tree, node] = candidate_threshold[tree, node, chosen]
    left[tree, node] = child
    for c in range(counts.shape[2]):
        counts[tree, child, c] = sides[tree, node, chosen, 0, c]
        counts[tree, child + 1, c] = sides[tree, node, chosen, 1, c]


@inlined
def _learn(
    matrix: Any, row: int, code: int, feature: Any, threshold: Any, left: Any, counts: Any, size: Any,
    made: Any, seen: Any, candidate_feature: Any, candidate_threshold: Any, sides: Any, random: Any,
    poisson: Any,
) -> None:  # fmt: skip
    """Learn an instance once."""
    for tree in range(counts.shape[0]):
        chance, times = _draw(random), 0
        while times < len(poisson) and chance >= poisson[times]:
            times += 1
        if times == 0:
            continue
        node = _leaf(matrix, row, tree, feature, threshold, left)
        k = made[tree, node]
        if k < candidate_feature.shape[2]:
            drawn = int(_draw(random) * matrix.shape[1])
            candidate_feature[tree, node, k] = drawn
            candidate_threshold[tree, node, k] = matrix[row, drawn]
            made[tree, node] += 1
        counts[tree, node, code] += times
        for k in range(made[tree, node]):
            above = matrix[row, candidate_feature[tree, node, k]] >= candidate_threshold[tree, node, k]
            sides[tree, node, k, 1 if above else 0, code] += times
        seen[tree, node] += 1
        if seen[tree, node] % GRACE == 0:
            _split(
                tree, node, feature, threshold, left, counts, size, made, candidate_feature,
                candidate_threshold, sides,
            )  # fmt: skip


@entry
def _test_then_train(
    matrix: Any, codes: Any, weights: Any, tests: Any, feature: Any, threshold: Any, left: Any, counts: Any,
    size: Any, made: Any, seen: Any, candidate_feature: Any, candidate_threshold: Any, sides: Any,
    random: Any, votes: Any, poisson: Any, said: Any,
) -> None:  # fmt: skip
    for row in range(len(codes)):
        if tests[row]:
            _vote(matrix, row, feature, threshold, left, counts, votes)
            greatest = 0.0
            for c in range(len(votes)):
                if votes[c] > greatest:
                    greatest = votes[c]
                    said[row] = c
        for _ in range(weights[row]):
            _learn(
                matrix, row, codes[row], feature, threshold, left, counts, size, made, seen,
                candidate_feature, candidate_threshold, sides, random, poisson,
            )  # fmt: skip


@entry
def _frequencies(matrix: Any, feature: Any, threshold: Any, left: Any, counts: Any, out: Any) -> None:
    for row in range(len(matrix)):
        _vote(matrix, row, feature, threshold, left, counts, out[row])
