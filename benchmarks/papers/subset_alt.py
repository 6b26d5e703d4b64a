"""SubsetAlt of Tatti 2021, section 6.1: vertices that stand for the hull, in O((log n) / epsilon).

The bound. Let a node v of |v| leaves begin behind o(v) leaves. It is expanded only if
y(w) > (1 + epsilon) y(u), where u and w are vertices of its own part of the hull and y counts the positives
below: so |v| >= y(w) - y(u) > epsilon y(u) >= epsilon (o(v) - 1). Let b = 4/3. A child has at most 1/b of its
parent's leaves, so nodes of b^j to b^(j+1) leaves are disjoint; those expanded begin before
b^(j+1) / epsilon + 1, so there are at most b / epsilon + 2 of them. Hence of a tree with L leaves at most
(1 + log_b L) (2 + b / epsilon) nodes are expanded: O((log n) / epsilon), each in O(1).

The paper walks a second, mirrored tree for the other class. It is not needed: a vertex dropped between u and
w has no fewer false positives than w, and at least 1 / (1 + epsilon) of its false negatives, so it never
costs less than 1 / (1 + epsilon) of what w costs.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from rocsteady.core.errors import InputError
from rocsteady.core.score_tree.tree import Hull, ScoreTree

from benchmarks.papers.weight_balanced_tree import (
    HEAVIER,
    MOST_LEVELS,
    NONE,
    add_negatives,
    bridge_ends,
    empty_tree,
    find_path,
    insert_leaf,
    link,
    list_subset,
    remove_leaf,
    take_id,
    write_leaf,
)


class Subset(NamedTuple):
    """Vertices of the hull, and how many nodes of the tree were expanded to find them."""

    hull: Hull
    expanded: int


class WeightBalancedHull:
    """The hull of a multiset of (label, score) that changes, and subsets of it. O(log^2 n) an event."""

    def __init__(self) -> None:
        self._negatives = ScoreTree(keeps_hull=False)
        self._tree = empty_tree(64)
        self._path = np.empty(MOST_LEVELS, np.int64)
        self._stack = np.empty((3 * MOST_LEVELS, 7), np.int64)
        self._tree.state[0] = self._build(np.array([-np.inf]), np.zeros(1, np.int64), 0, 1)

    @classmethod
    def of(cls, labels: np.ndarray, scores: np.ndarray) -> WeightBalancedHull:
        """Build from events in any order. O(n log n)."""
        self = cls()
        positives, negatives = np.sort(scores[labels == 1]), np.sort(scores[labels == 0])
        self._negatives.insert(np.zeros(len(negatives), np.int8), negatives)
        firsts = np.array([-np.inf, *positives])
        below = np.searchsorted(negatives, positives)
        behind = np.diff([0, *below, len(negatives)])
        self._tree = empty_tree(2 * len(firsts) + 64)
        self._tree.state[0] = self._build(firsts, behind, 0, len(firsts))
        return self

    def _build(self, scores: np.ndarray, negatives: np.ndarray, first: int, last: int) -> int:
        """Make a subtree of the leaves first..last-1; return its id."""
        place = int(take_id(self._tree))
        if last - first == 1:
            write_leaf(self._tree, place, scores[first], negatives[first], int(first > 0))
            return place
        middle = (first + last) // 2
        left = self._build(scores, negatives, first, middle)
        right = self._build(scores, negatives, middle, last)
        link(self._tree, place, left, right, scores[middle])
        return place

    def __len__(self) -> int:
        return int(self._tree.weight[self._tree.state[0]])

    def insert(self, label: int, score: float) -> None:
        """Add an event. O(log^2 n)."""
        if math.isnan(score):
            raise InputError("score: NaN has no place in an order; leave the event out")
        length = find_path(self._tree, score, self._path)
        if label:
            self._make_room()
            leaf = self._path[length - 1]
            negatives = int(self._tree.weight[leaf] - self._tree.positives[leaf])
            between = np.diff(self._negatives.rank([float(self._tree.score[leaf]), score]))[0]
            insert_leaf(self._tree, self._path, length, float(score), negatives - int(between))
        else:
            self._negatives.insert([0], [score])
            add_negatives(self._tree, self._path, length, 1)

    def remove(self, label: int, score: float) -> None:
        """Take out an event. O(log^2 n)."""
        length = find_path(self._tree, score, self._path)
        if label:
            leaf = self._path[length - 1]
            if not self._tree.positives[leaf] or self._tree.score[leaf] != score:
                raise InputError(f"remove: no positive of score {score} is there")
            remove_leaf(self._tree, self._path, length)
        else:
            self._negatives.remove([0], [score])
            add_negatives(self._tree, self._path, length, -1)

    def subset(self, epsilon: float) -> Subset:
        """Return vertices over which a loss is at most 1 + epsilon times that over the hull."""
        out = np.empty((2 * int(self._tree.leaves[self._tree.state[0]]) + 3, 2), np.int64)
        count = np.zeros(2, np.int64)
        list_subset(self._tree, 1.0 + epsilon, self._stack, out, count)
        return Subset(Hull(*out[: count[0]].T), int(count[1]))

    def most_expanded(self, epsilon: float) -> float:
        """Return the bound on `expanded` that is proved above."""
        levels = 1 + math.log(self._tree.leaves[self._tree.state[0]], 4 / 3)
        return levels * (2 + 4 / (3 * epsilon)) if epsilon else math.inf

    def check(self) -> None:
        """Recompute every invariant; an AssertionError names the first that fails. O(n log n)."""
        tree, root = self._tree, int(self._tree.state[0])
        points, scores = self._checked(root)
        assert points[-1] == (tree.weight[root], tree.positives[root]), "totals"
        assert all(a <= b for a, b in pairwise(scores)), "order"
        assert scores[0] == -np.inf, "the leaf before all positives"

    def _checked(self, place: int) -> tuple[list[tuple[int, int]], list[float]]:
        """Return the points and scores of the leaves of a subtree that is right."""
        tree = self._tree
        if tree.left[place] == NONE:
            assert tree.weight[place] >= tree.positives[place], "negatives of a leaf"
            return [(int(tree.weight[place]), int(tree.positives[place]))], [float(tree.score[place])]
        a, b = int(tree.left[place]), int(tree.right[place])
        (left, left_scores), (right, right_scores) = self._checked(a), self._checked(b)
        assert HEAVIER * min(len(left), len(right)) >= max(len(left), len(right)), "balance"
        assert tree.leaves[place] == len(left) + len(right), "leaves"
        assert tree.score[place] == right_scores[0], "the score between children"
        x, y = left[-1]
        right = [(x + dx, y + dy) for dx, dy in right]
        (px, py), (qx, qy) = (tuple(map(int, end)) for end in bridge_ends(tree, place, 0, 0))
        assert (px, py) in left, "left end of the bridge"
        assert (qx, qy) in right, "right end of the bridge"
        points = left + right
        assert all((qx - px) * (v - py) >= (qy - py) * (u - px) for u, v in points), "a point below a bridge"
        assert (tree.weight[place], tree.positives[place]) == points[-1], "totals"
        return points, left_scores + right_scores

    def _make_room(self) -> None:
        old = self._tree
        if old.state[1] + 2 > len(old.left):
            grown = empty_tree(2 * len(old.left))
            for array, before in zip(grown[:-1], old[:-1], strict=True):
                array[: len(before)] = before
            self._tree = grown._replace(state=old.state)
