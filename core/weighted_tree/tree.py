"""The window in score order with real weights: user weights, and events that fade.

A `WeightedTree` is the multiset of (label, score, weight) of a window. `ScoreTree` counts events, in whole
numbers. Here masses are sums of floats. So every sum over a run of entries is computed again from below when
a query needs it; no event is added to or subtracted from a sum. So no sum drifts, whatever events came and
went. With weights of 1 both trees give the same values.

Invariants, each recomputed by `tests/support/invariants/weighted_tree.py`:

1. Entries ascend by score; equal scores are one entry. An entry has at least one event, and a class without
   events at an entry has a mass of exactly 0 there.
2. The tree is a B+-tree: all leaves have one depth, and no leaf is empty; every leaf, node and tie is in the
   tree or free.
3. The sums in a fresh leaf or node are those of its run's entries: masses, pairs, spreads, squares, reaches,
   hull. A node is never fresher than its children.
4. The mass of a tied entry lies within `lost` of the sum of its weights; `needs_rebuild` says when `lost` is
   too much.

Worst case: an update is O(log k). A query after u updates sums u leaves and the nodes above them,
O(u (32 + log k) + edges of their hulls). A hull of k real weights can have k edges, where unit weights
allow k^(2/3). So a query costs no more than a scan; on smooth curves hulls have 1.3 k^(1/3) edges.

The parts, in the order in which to read them: `layout` (the records), `update`, `sums`, `query`, `rows`,
`build`. How it works: docs/architecture/weighted.md.

Sources: DeLong, DeLong & Clarke-Pearson 1988; Chan, Golub & LeVeque 1983 (sums of squares that
merge); Tatti 2021, section 5 (the hull in a tree).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import NO_FLOATS, FloatArray
from ..errors import InputError
from ..events.inputs import as_labels, as_scores
from ..rows import slots
from ..rows.columns import NUMBER_COLUMNS
from ..rows.measure_table import MEASURES
from ..score_tree.query import MassCrossing
from ..score_tree.tree import KolmogorovSmirnov
from . import tree_rows
from .query import crossing_of_class, masses_around, score_at_positives
from .store import NOTHING, WeightedStore, as_finite_scores


class WeightedHull(NamedTuple):
    """Edges of the ROC convex hull, lowest scores first: the blocks of the isotonic calibration (PAV).

    `scores` has, for each edge, the threshold of the vertex in which the edge begins (positive means
    score >= threshold).
    """

    scores: FloatArray
    negatives: FloatArray
    positives: FloatArray


class WeightedTree(WeightedStore):
    """The multiset of (label, score, weight) of a window, in score order.

    labels   1/0, 1/-1 or booleans, of the first events
    scores   finite numbers, as many
    weights  finite and above 0, from 1e-300 to 1e300 in one window: each class has a scale of its own

    >>> tree = WeightedTree([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8], [1.0, 2.0, 1.0, 2.0])
    >>> tree.auc(), len(tree)
    (0.875, 4)
    >>> tree.apply([0], [0.1], [1.0], [-1])
    >>> tree.auc()
    0.75
    """

    @property
    def positives(self) -> float:
        """The mass of the positives."""
        return self._mass(1)

    @property
    def negatives(self) -> float:
        """Mass of the negatives."""
        return self._mass(0)

    @property
    def needs_rebuild(self) -> bool:
        """Whether the owner should call `rebuild` with the events it holds.

        True if rounding at a tied entry may have taken more than 1e-13 of its mass. This happens if a weight
        1e20 times the other weights at a score came and left. Also True if the weights that set the scale
        have left, so that the remaining weights may have been rounded away.
        """
        return bool(self._answer(tree_rows.ASK_REBUILD)[0])

    def auc(self) -> float | None:
        """Return the area under the ROC curve, ties half; None without both classes."""
        return self._answer(tree_rows.ASK_AUC)[0] if self._has_both_classes() else None

    def interval(self, z: float = 1.959963984540054) -> tuple[float, float] | None:
        """Return DeLong's interval, z standard errors to both sides, by effective sample sizes.

        None without both classes, or if a class has the effective size of one event.
        """
        numbers = np.full(len(NUMBER_COLUMNS), np.nan)
        plan = tree_rows.one_row(numbers, np.zeros(len(MEASURES), np.int8))
        changes = int(self._state["changes"])
        self._state["changes"] = 0  # the events for a rebuild are gone: accept what rounding decided
        self.run(tree_rows.NO_EVENTS, NOTHING._replace(z=z), plan, NO_FLOATS, np.zeros(2, np.int64))
        self._state["changes"] = changes
        measures = numbers[slots.MEASURES :]
        low, high = float(measures[slots.AUC_LOW]), float(measures[slots.AUC_HIGH])
        return None if math.isnan(low) else (low, high)

    def hull(self) -> WeightedHull:
        """Return the edges of the ROC convex hull, whose slopes are the PAV calibration. O(edges) when fresh.

        >>> WeightedTree([0, 0, 1, 1], [1.0, 1.0, 2.0, 3.0], [1.0, 1.0, 0.5, 2.0]).hull().positives.tolist()
        [0.0, 2.5]
        """
        scores, negatives, positives = self.held_hull()
        n, p = (np.ldexp(mass, self._exponents[label]) for label, mass in ((0, negatives), (1, positives)))
        return WeightedHull(scores, n, p)

    def held_hull(self) -> WeightedHull:
        """Return the hull with the masses of each class in its own scale, which cannot overflow."""
        self._answer(tree_rows.ASK_NOTHING)
        run = self._root
        begin, count = int(run["edges"]), int(run["edge_count"])
        edges = self._forest.pool[begin : begin + count] if len(self) else self._forest.pool[:0]
        return WeightedHull(edges["key"].copy(), edges["mass"][:, 0].copy(), edges["mass"][:, 1].copy())

    def in_one_scale(self, negatives: FloatArray, positives: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Convert held masses, each class in its own scale, to the larger of the two scales.

        Return the converted masses (negatives, positives).
        """
        top = max(self._exponents)
        n, p = (max(exponent - top, -2000) for exponent in self._exponents)
        with np.errstate(under="ignore"):
            return np.ldexp(negatives, n), np.ldexp(positives, p)

    def ks(self) -> KolmogorovSmirnov | None:
        """Return the greatest TPR - FPR and its threshold; None without both classes.

        >>> WeightedTree([0, 0, 1, 1], [1.0, 1.0, 2.0, 3.0], [1.0, 1.0, 0.5, 2.0]).ks()
        KolmogorovSmirnov(value=1.0, threshold=2.0)
        """
        if not self._has_both_classes():
            return None
        return KolmogorovSmirnov(*self._answer(tree_rows.ASK_KS))

    def tpr_at_fpr(self, fpr: float) -> float | None:
        """Return the TPR at `fpr`, by lines between ROC points; on a vertical step, that of its upper end.

        O(log k).
        """
        return self._share(tree_rows.ASK_TPR, "fpr", fpr)

    def fpr_at_tpr(self, tpr: float) -> float | None:
        """Return the FPR at `tpr`, by lines between ROC points; on a horizontal step, that of its left end.

        O(log k).
        """
        return self._share(tree_rows.ASK_FPR, "tpr", tpr)

    def cost_threshold(self, cost: float) -> float | None:
        """Return the smallest score whose PAV value is at least the cost of a false positive, else +inf."""
        if not 0.0 < cost < 1.0:
            raise InputError(f"cost: {cost}; give a cost of a false positive between 0 and 1")
        return self._answer(tree_rows.ASK_COST, float(cost))[0] if self._has_both_classes() else None

    def calibrated(self, scores: npt.ArrayLike) -> FloatArray:
        """Return the calibrated probability of each score: the PAV value at the largest held score up to it.

        A score below the smallest held score gets the first block's value; in an empty tree every value is
        NaN.

        >>> WeightedTree([0, 1], [1.0, 1.0], [3.0, 1.0]).calibrated([0.0, 2.0]).tolist()
        [0.25, 0.25]
        """
        s = as_scores(scores)
        hull = self.held_hull()
        if not len(hull.scores):
            return np.full(len(s), np.nan)
        n, p = self.in_one_scale(hull.negatives, hull.positives)
        block = np.maximum(np.searchsorted(hull.scores, s, "right") - 1, 0)
        values: FloatArray = (p / (n + p))[block]
        return values

    def placement(self, labels: npt.ArrayLike, scores: npt.ArrayLike) -> FloatArray:
        """Return for each event the share of the other class that it is ranked right against, ties half.

        labels, scores  of n events, which need not be in the tree

        A positive counts the negatives below it, a negative the positives above it; NaN if the other class is
        empty. The weighted mean is the AUC. O(log k) each.
        """
        y = as_labels(labels)
        s = as_finite_scores(scores, len(y))
        out = np.empty(len(y))
        tree_rows.place_scores(self._forest, y, s, out)
        return out

    def aum(self) -> float | None:
        """Return the area under min(FP, FN) over thresholds, in mass times score; None for one class."""
        return self._answer(tree_rows.ASK_AUM)[0] if self._has_both_classes() else None

    def masses_below(self, score: float) -> tuple[float, float]:
        """Return the masses of (negatives, positives) strictly below a score. O(log k)."""
        (finite,) = as_finite_scores([score], 1).tolist()
        n, p = np.ldexp(masses_around(self._forest, finite + 0.0)[:2], self._exponents).tolist()
        return n, p

    def score_at_positive_mass(
        self, mass: float, *, from_above: bool = False, strictly: bool = False
    ) -> float | None:
        """Return the smallest score at which the positives at or below it have at least this mass.

        from_above: return the largest score at which the positives at or above it have at least this mass.
        strictly: the positives must have more than this mass. None if the positives have too little mass in
        all. O(log k).

        >>> tree = WeightedTree([1, 1, 1], [1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
        >>> tree.score_at_positive_mass(3.0), tree.score_at_positive_mass(3.0, strictly=True)
        (2.0, 3.0)
        >>> tree.score_at_positive_mass(5.0, from_above=True)
        2.0
        """
        held = float(np.ldexp(float(mass), -self._exponents[1]))
        score = score_at_positives(self._forest, held, from_above, strictly)
        return None if math.isnan(score) else float(score)

    def crossing(self, label: int, mass: float) -> MassCrossing | None:
        """Find the highest score s such that the events of `label` with scores >= s exceed `mass`.

        Return None if all events of `label` have no more than `mass`. O(log k). See `threshold_queries`.

        >>> WeightedTree([1, 0, 1], [1.0, 2.0, 3.0], [1.0, 2.0, 4.0]).crossing(1, 4.0)
        MassCrossing(score=1.0, own_above=4.0, other_above=2.0, own=1.0, other=0.0)
        """
        exponents = [self._exponents[label], self._exponents[1 - label]] * 2
        held = float(np.ldexp(mass, -self._exponents[label]))
        score, *masses = crossing_of_class(self._forest, int(label), held)
        return (
            None if math.isnan(score) else MassCrossing(float(score), *np.ldexp(masses, exponents).tolist())
        )

    def _has_both_classes(self) -> bool:
        return bool((self._state["events"] > 0).all())

    def _mass(self, label: int) -> float:
        self._answer(tree_rows.ASK_NOTHING)
        return float(np.ldexp(self._root["mass"][label], self._exponents[label]))

    def _share(self, question: int, name: str, share: float) -> float | None:
        if not 0.0 <= share <= 1.0:
            raise InputError(f"{name}: {share}; give a share from 0 to 1")
        return self._answer(question, float(share))[0] if self._has_both_classes() else None
