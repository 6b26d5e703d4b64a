"""Recomputes all stored numbers of a ScoreTree in a slow and simple way, and compares.

`check_invariants` walks the tree in plain Python and derives every stored number from the entries
alone. From the kernels it uses only the record layout and the loss of an edge.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from rocsteady.core.measures.sums import AREA, BRIER, LOG_LOSS, fixed_point_scale
from rocsteady.core.score_tree.layout import (
    BUCKET_CAPACITY,
    FIRST_KEY,
    INFINITE_KEY,
    LEFT,
    MAX_WEIGHT,
    NO_PLACE,
    PAD_KEY,
    RIGHT,
    Tree,
    scores_of,
)
from rocsteady.core.score_tree.tree import ScoreTree

Point = tuple[int, int]
Term = tuple[float, int]


class Run(NamedTuple):
    """A subtree as its entries: their keys, and their points in the subtree's own coordinates."""

    keys: list[int]
    points: list[Point]
    height: int

    @property
    def end(self) -> Point:
        """The point of the last entry."""
        return self.points[-1]

    def steps(self) -> list[Point]:
        """Weight and positives of each entry, as steps from point to point."""
        before = [(0, 0), *self.points]
        return [(b[0] - a[0], b[1] - a[1]) for a, b in zip(before, self.points, strict=False)]


def slow_hull(points: list[Point]) -> list[Point]:
    """Return the strict lower hull of points in ascending order."""
    chain: list[Point] = []
    for x, y in points:
        while len(chain) > 1:
            (x0, y0), (x1, y1) = chain[-2:]
            if (x1 - x0) * (y - y0) > (y1 - y0) * (x - x0):
                break
            chain.pop()
        chain.append((x, y))
    return chain


def slow_loss(chain: list[Point], scale: float, curvature: float) -> int:
    """Return the loss of a chain's edges in fixed point, in the arithmetic of the kernels."""
    total = 0
    for (x0, y0), (x1, y1) in pairwise(chain):
        dx, dy = x1 - x0, y1 - y0
        inverse = 1.0 / dx
        w = dy * (dx - dy) * inverse
        total += int(0.5 * w * (1.0 + curvature * w * inverse) * scale)
    return total


def slow_sums(steps: list[Point]) -> tuple[int, int, int]:
    """Return twice the pairs (ties half), and the sums of squared doubled ranks of both classes."""
    above = sum(p for _, p in steps)
    below = pairs2 = of_positives = of_negatives = 0
    for weight, positives in steps:
        negatives = weight - positives
        above -= positives
        pairs2 += positives * (2 * below + negatives)
        of_positives += positives * (2 * below + negatives) ** 2
        of_negatives += negatives * (2 * above + positives) ** 2
        below += negatives
    return pairs2, of_positives, of_negatives


def slow_sum(terms: list[Term]) -> tuple[int, int, int]:
    """Sum numbers times whole numbers; return the sum in units of 2^-1074, and how many +inf and -inf."""
    total, infinite = 0, [0, 0]
    for x, times in terms:
        if np.isinf(x):
            infinite[int(x < 0.0)] += times
        else:
            numerator, denominator = x.as_integer_ratio()
            total += times * (numerator << 1074) // denominator
    return total, infinite[0], infinite[1]


def stored_sum(sums: Any) -> tuple[int, int, int]:
    """Return the value of an exact sum in units of 2^-1074, and how many +inf and -inf it has."""
    chunks = sums[:-5].tolist()
    return sum(chunk << (32 * i) for i, chunk in enumerate(chunks)), int(sums[-2]), int(sums[-1])


def slope(a: Point, b: Point) -> float:
    """Return the slope between two points."""
    return (b[1] - a[1]) / (b[0] - a[0])


def require(holds: bool, claim: str, *details: object) -> None:
    """Raise AssertionError with the claim unless it holds (`assert` would vanish under -O)."""
    if not holds:
        raise AssertionError(f"ScoreTree: {claim} {details}")


class Checker:
    """One check of one tree; raises AssertionError for the first claim that does not hold."""

    def __init__(self, tree: Tree) -> None:
        nodes, buckets, state = (records.view(np.recarray) for records in tree[:3])
        self.tree = Tree(nodes, buckets, state, tree.sums)
        self.state = self.tree.state[0]
        self.scale = float(self.state.scale)
        self.curvature = float(self.state.curvature)
        self.keeps_hull = bool(self.state.keeps_hull)
        self.nodes = 0
        self.buckets: list[int] = []

    def check(self) -> None:
        """Walk the tree and compare every stored number."""
        run = self.place(int(self.state.root), NO_PLACE, FIRST_KEY, PAD_KEY)
        state, steps = self.state, run.steps()
        require(run.keys[0] == FIRST_KEY, "the sentinel comes first")
        require(steps[0] == (0, 0), "the sentinel has no weight")
        require(all(weight > 0 for weight, _ in steps[1:]), "every entry has a weight")
        require(all(0 <= p <= weight for weight, p in steps), "positives are part of the weight")
        require(all(~INFINITE_KEY <= key <= INFINITE_KEY for key in run.keys[1:]), "keys are scores")
        require((state.weight, state.positives) == run.end, "totals")
        sums = (state.pairs2, state.squares_positive, state.squares_negative)
        require(sums == slow_sums(steps), "pair count and squared ranks of the window")
        require(state.weight <= state.capacity <= MAX_WEIGHT, "capacity")
        require(self.scale == fixed_point_scale(int(state.capacity)), "scale belongs to capacity")
        require(state.bucket_count == len(self.buckets), "number of buckets")
        require(self.nodes == len(self.buckets) - 1, "one node less than buckets")
        self.free_chains()
        for which in range(2):
            if state.watched[which]:
                self.vertex(which, run)
        scores = scores_of(np.array(run.keys[1:], np.int64)).tolist()
        entries = list(zip(scores, steps[1:], strict=True))
        if state.keeps_area:
            self.area(run.keys[1:], entries)
        if state.keeps_losses:
            self.losses(entries)

    def vertex(self, which: int, run: Run) -> None:
        """Check a watched vertex: its point, the slopes of its edges, and the key behind it."""
        state, hull = self.state, slow_hull(run.points)
        x, y = int(state.watched_x[which]), int(state.watched_y[which])
        require((x, y) in hull, "a watched vertex is one of the hull", which)
        i = hull.index((x, y))
        into = slope(hull[i - 1], hull[i]) if i else -np.inf
        out = slope(hull[i], hull[i + 1]) if i + 1 < len(hull) else np.inf
        require((state.slope_into[which], state.slope_out[which]) == (into, out), "slopes of a vertex", which)
        behind = [key for key, point in zip(run.keys, run.points, strict=True) if point[0] > x]
        require(state.key_after[which] == (behind[0] if behind else PAD_KEY), "key behind a vertex", which)

    def area(self, keys: list[int], entries: list[tuple[float, Point]]) -> None:
        """Check the sums of AUM on either side of the reference, at any place of the reference."""
        sides = [int(key > self.state.reference) - int(key < self.state.reference) for key in keys]
        above = [(s, w - p) for side, (s, (w, p)) in zip(sides, entries, strict=True) if side > 0]
        below = [(s, p) for side, (s, (_, p)) in zip(sides, entries, strict=True) if side < 0]
        counts = (sum(n for _, n in above), sum(p for _, p in below))
        require((self.state.negatives_above, self.state.positives_below) == counts, "counts of AUM", counts)
        found = stored_sum(self.tree.sums[AREA])
        require(found == slow_sum([*above, *((-s, p) for s, p in below)]), "sum of AUM", found)

    def losses(self, entries: list[tuple[float, Point]]) -> None:
        """Check the losses of probabilities: squares to the last bit, logarithms to libraries' error."""
        events = [
            (s, label, times)
            for s, (weight, p) in entries
            for label, times in ((0, weight - p), (1, p))
            if times
        ]
        found = stored_sum(self.tree.sums[BRIER])
        terms = [((s - label) * (s - label), times) for s, label, times in events]
        require(found == slow_sum(terms), "sum of squared errors", found)
        found = stored_sum(self.tree.sums[LOG_LOSS])
        terms = [(-math.log(max(s if label else 1.0 - s, 2.0**-52)), times) for s, label, times in events]
        expected = slow_sum(terms)
        require(found[1:] == expected[1:], "infinite log losses", found)
        tolerance = abs(expected[0]) // 10**13 + (1 << 1000)  # 2^-74, for logarithms near 0
        require(abs(found[0] - expected[0]) <= tolerance, "sum of log losses", found)

    def place(self, place: int, parent: int, low: int, high: int) -> Run:
        """Check a subtree whose keys must lie in [low, high)."""
        if place < 0:
            return self.bucket(~place, parent, low, high)
        return self.node(place, parent, low, high)

    def bucket(self, index: int, parent: int, low: int, high: int) -> Run:
        """Check one bucket."""
        bucket, count = self.tree.buckets[index], int(self.tree.buckets[index].count)
        self.buckets.append(index)
        require(1 <= count <= BUCKET_CAPACITY, "no bucket is empty or overfull", index, count)
        require(bucket.parent == parent, "parent of a bucket", index)
        keys = [int(key) for key in bucket.key[1 : count + 1]]
        require(all(a < b for a, b in pairwise(keys)), "keys ascend", index)
        require(low <= keys[0] and keys[-1] < high, "keys lie between separators", index)
        require(bool(np.all(bucket.key[count + 1 :] == PAD_KEY)), "unused slots are padded", index)
        require(bucket.weight[0] == 0 and bucket.positives[0] == 0, "slot 0 is the origin", index)
        points = [(int(bucket.weight[t]), int(bucket.positives[t])) for t in range(1, count + 1)]
        vertices = int(bucket.vertices)
        require(0 <= vertices < 1 << (count + 1), "vertices are slots in use", index)
        if self.keeps_hull or vertices:
            hull = slow_hull(points)
            marked = [points[t - 1] for t in range(1, count + 1) if vertices >> t & 1]
            require(marked == hull, "vertices of a bucket", index, marked, hull)
            loss = slow_loss(hull, self.scale, self.curvature)
            require(bucket.h == loss, "loss of a bucket", index)
        return Run(keys, points, 0)

    def node(self, place: int, parent: int, low: int, high: int) -> Run:
        """Check one node, after its children."""
        node = self.tree.nodes[place]
        self.nodes += 1
        require(node.parent == parent, "parent of a node", place)
        separator = int(node.separator)
        left = self.place(int(node.child[LEFT]), place, low, separator)
        right = self.place(int(node.child[RIGHT]), place, separator, high)
        require(abs(left.height - right.height) <= 1, "balance", place)
        require(node.height == max(left.height, right.height) + 1, "height", place)
        for side, run in ((LEFT, left), (RIGHT, right)):
            require((node.weight[side], node.positives[side]) == run.end, "child totals", place)
            require(node.pairs2[side] == slow_sums(run.steps())[0], "child pair count", place)
        x, y = left.end
        points = left.points + [(x + dx, y + dy) for dx, dy in right.points]
        if self.keeps_hull:
            self.bridge(node, place, left, right, slow_hull(points))
        return Run(left.keys + right.keys, points, int(node.height))

    def bridge(self, node: Any, place: int, left: Run, right: Run, hull: list[Point]) -> None:
        """Check what a node keeps of its bridge."""
        x, y = left.end
        ends = [(int(node.tangent_x[side]), int(node.tangent_y[side])) for side in (LEFT, RIGHT)]
        shifted = (ends[RIGHT][0] + x, ends[RIGHT][1] + y)
        crossing = [(a, b) for a, b in pairwise(hull) if a[0] <= x < b[0]]
        require(crossing == [(ends[LEFT], shifted)], "bridge", place, crossing, ends)
        loss = slow_loss([ends[LEFT], shifted], self.scale, self.curvature)
        require(node.h_bridge == loss, "loss of a bridge", place)
        for side, run in ((LEFT, left), (RIGHT, right)):
            chain = slow_hull(run.points)
            i = chain.index(ends[side])
            before = slope(chain[i - 1], chain[i]) if i else -np.inf
            after = slope(chain[i], chain[i + 1]) if i + 1 < len(chain) else np.inf
            require(node.slope_before[side] == before, "slope before a bridge's end", place, side)
            require(node.slope_after[side] == after, "slope after a bridge's end", place, side)
            kept = chain[: i + 1] if side == LEFT else chain[i:]
            loss = slow_loss(kept, self.scale, self.curvature)
            require(node.h_kept[side] == loss, "loss of what the bridge keeps", place, side)

    def free_chains(self) -> None:
        """Check that every node and bucket is either in the tree or in its free chain, and never in both."""
        free, index = set(), int(self.state.free_bucket)
        while index != NO_PLACE:
            require(index not in free, "free buckets form a chain")
            require(self.tree.buckets[index].count == 0, "free buckets are empty", index)
            free.add(index)
            index = int(self.tree.buckets[index].parent)
        everything = set(range(int(self.state.fresh_bucket)))
        require(free | set(self.buckets) == everything, "no bucket is lost")
        require(not free & set(self.buckets), "no bucket is used and free")
        count, place = 0, int(self.state.free_node)
        while place != NO_PLACE:
            count += 1
            place = int(self.tree.nodes[place].parent)
        require(count + self.nodes == self.state.fresh_node, "no node is lost")


def check_invariants(tree: ScoreTree) -> None:
    """Raise an AssertionError that names the first invariant that does not hold."""
    Checker(tree._tree).check()
    keys = tree._chain.key[1 : max(int(tree.records.state[0]["guessed"]) - 1, 1)]
    require(bool((keys[1:] > keys[:-1]).all()), "the scores that the last scan left ascend", keys)
    require(bool((keys >= ~INFINITE_KEY).all()), "they are scores", keys)
