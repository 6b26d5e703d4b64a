"""The window in score order, with its ROC curve and its convex hull current after every event.

A `ScoreTree` is the multiset of (label, score) of a window. `window` adds the order in which the events came,
so that the window can slide.

All values are exact: they are whole numbers, updated by whole differences. So no value drifts, and no order
of scores is slow.

Invariants, each recomputed by `tests/support/invariants/score_tree.py`:

1. Entries ascend by score; equal scores are one entry; only the sentinel in front has weight 0.
2. Inner nodes are balanced as an AVL tree, buckets hold 1 to 62 entries, and every node and bucket is in the
   tree or free.
3. A node's totals and pair counts are those of its children's entries; the window's sums of squared
   doubled ranks are those of its entries.
4. A bucket marks the strict lower hull of its points. A node's bridge is the one edge of its hull that
   crosses from its left child to its right child. The slopes and losses in a node are those of its
   children's hulls. (Not in a tree that keeps no hull.)
5. The fixed point belongs to the capacity, and the capacity never falls below the weight.
6. Sums of scores and of losses, if the tree keeps them, are those of the entries to the last bit. For AUM the
   sum is over the negatives above the reference, less the positives below it, for any reference.

How the tree works and why it is fast: docs/architecture/kernel.md. The modules in reading order: `layout`
(the records), `bucket`, `bridge`, `balance`, `update`; then `build`, `query`, `sums`, `rows` and `slide`.

Sources: Overmars & van Leeuwen 1981 (bridges); DeLong, DeLong & Clarke-Pearson 1988 and Sun & Xu
2014 (squared ranks); Hand 2009 (H); Tatti 2021, section 5 (the hull in a tree; his labels are the
other way round: there a LOWER score is more likely positive).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray, Int64Array
from ..errors import InputError
from ..events.inputs import as_counts, as_labels, as_scores
from .layout import MAX_WEIGHT, scores_of
from .query import MassCrossing, find_crossing, list_hull, rank_scores, roc_point, select_scores
from .store import NOTHING, TreeStore
from .subset import list_subset, thin_hull
from .tree_rows import Ask, empty_rows, read_row, scan_hull

RANKING = Ask(1, 1, 1, 1, 1, 0.01, 0.5)
"""Asks for every measure of scores that are on any scale, and for no loss of probabilities."""


class Hull(NamedTuple):
    """Vertices of the strict lower hull, from (0, 0) to (events, positives), lowest score first."""

    x: Int64Array  # events below
    y: Int64Array  # positives below


class DelongSums(NamedTuple):
    """Sums from which the AUC's variance follows (Sun & Xu 2014): whole numbers, as ranks are doubled."""

    positives: int
    negatives: int
    pairs2: int
    squares_positive: int
    squares_negative: int


class KolmogorovSmirnov(NamedTuple):
    """The greatest TPR - FPR, and the largest threshold score at which the curve reaches it."""

    value: float
    threshold: float


class ScoreTree(TreeStore):
    """The multiset of (label, score) of a window, in score order. All weights are 1.

    capacity        number of events for which the tree is made. If more events come, the capacity doubles,
                    and so does the step of the fixed point in which losses are summed. The capacity depends
                    only on the capacity given and on the greatest number of events held so far. Store it
                    with a snapshot.
    cost            (a, b) of the Beta density over misclassification costs, (2, 2) or (1, 1).
    keeps_hull      True: every question takes O(log k), an update O(log^2 k). False: an update takes
                    O(log k), a question about the hull one scan. The answers are the same.
    follows_weight  losses are stated in the fixed point of the number of events held, whatever the capacity
                    is. So losses do not depend on the number of events held before. For windows that shrink.

    >>> tree = ScoreTree()
    >>> tree.insert([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])
    >>> tree.auc(), len(tree)
    (0.875, 4)
    >>> tree.remove([0], [0.1])
    >>> tree.auc()
    0.75
    """

    def auc(self) -> float | None:
        """Area under the ROC curve, ties half; None without both classes. O(1)."""
        if not self._has_both_classes():
            return None
        return int(self._state["pairs2"]) / (2 * self.positives * self.negatives)

    def delong(self) -> DelongSums:
        """Return the exact sums from which the AUC and its variance follow.

        See docs/architecture/math.md, "AUC and its sums". O(1).
        """
        state = self._state
        return DelongSums(
            self.positives,
            self.negatives,
            int(state["pairs2"]),
            int(state["squares_positive"]),
            int(state["squares_negative"]),
        )

    def hull(self) -> Hull:
        """Return the vertices of the ROC convex hull, whose slopes are the PAV calibration.

        O(vertices log k), with some k^(1/3) vertices on smooth curves; O(k) without bridges.

        >>> tree = ScoreTree.from_sorted([1.0, 2.0, 3.0], [0, 1, 1], [2, 1, 0])
        >>> tree.hull().x.tolist(), tree.hull().y.tolist()
        ([0, 2, 4, 5], [0, 0, 1, 2])
        """
        x, y, _ = self._chain
        count = list_hull(self._tree, x, y) if self.keeps_hull else scan_hull(self._tree, self._chain)
        return Hull(x[:count].copy(), y[:count].copy())

    def hull_subset(self, growth: float) -> tuple[Hull, float]:
        """Return a subset of the hull's vertices, and the factor by which losses over it may be larger.

        A loss minimised over the subset is at most `growth` times the loss over the hull. The returned factor
        is the same bound, computed for this hull, and not larger than `growth`. growth = 1 keeps every
        vertex. O(log k) a kept vertex; O(k) without bridges. See `subset`, and `approximate_h` for its use.
        """
        if not 1.0 <= growth < np.inf:
            raise InputError(f"growth: {growth}; give a factor, 1 or more")
        growth = float(growth)
        if not self.keeps_hull:
            x, y = (of_all.astype(np.float64) for of_all in self.hull())
            count, needed = thin_hull(x, y, growth)
            return Hull(x[:count].astype(np.int64), y[:count].astype(np.int64)), needed
        chain = self._chain
        count, needed = list_subset(self._tree, growth, chain.x, chain.y)
        return Hull(chain.x[:count].copy(), chain.y[:count].copy()), needed

    def h_sum(self) -> tuple[int, int]:
        """Return the loss over the hull and the loss over its chord, in fixed point. O(1).

        H = 1 - (the first / the second). Returns (0, 0) without both classes.
        """
        row = self.row(NOTHING._replace(h=1))
        return int(row.h_loss), int(row.h_loss_of_all)

    def h(self) -> float | None:
        """Return the H-measure for the tree's cost density; None without both classes. O(1)."""
        loss, all_loss = self.h_sum()
        return 1.0 - float(loss) / float(all_loss) if self._has_both_classes() else None

    def ks(self) -> KolmogorovSmirnov | None:
        """Return the greatest TPR - FPR and its threshold; None without both classes. O(log k).

        >>> ScoreTree.from_sorted([1.0, 2.0, 3.0], [0, 1, 1], [2, 1, 0]).ks()
        KolmogorovSmirnov(value=0.6666666666666666, threshold=2.0)
        """
        if not self._has_both_classes():
            return None
        row = self.row(NOTHING._replace(ks=1))
        return KolmogorovSmirnov(float(row.ks), float(row.ks_threshold))

    def tpr_at_fpr(self, fpr: float) -> float | None:
        """Return the TPR at `fpr`, by lines between ROC points; on a vertical step, that of its upper end.

        O(log k).
        """
        return self._roc_point(fpr, False)

    def fpr_at_tpr(self, tpr: float) -> float | None:
        """Return the FPR at `tpr`, by lines between ROC points; on a horizontal step, that of its left end.

        O(log k).
        """
        return self._roc_point(tpr, True)

    def cost_threshold(self, cost: float) -> float | None:
        """Return the best threshold if a false positive costs `cost`, a false negative 1 - cost.

        The threshold is the smallest score of the window whose calibrated probability is at least `cost`;
        +inf if no score is.

        Return None without both classes. O(log k).
        """
        if np.isnan(cost):
            raise InputError("cost: NaN; give the cost of a false positive, between 0 and 1")
        if not self._has_both_classes():
            return None
        return float(self.row(NOTHING._replace(cost_threshold=1, cost=float(cost))).cost_threshold)

    def calibrated(self, scores: npt.ArrayLike) -> FloatArray:
        """Return for each score the PAV value of the largest window score that is not above it.

        A score below all window scores gets the PAV value of the lowest window score; in an empty tree every
        value is NaN. O(log k) a score, and the hull once.
        """
        s = as_scores(scores)
        if not len(self):
            return np.full(len(s), np.nan)
        x, y = self.hull()
        ranks = self.ranks(s)
        last = np.maximum(ranks[:, 0] + ranks[:, 2], 1)  # events not above: the block ends there or later
        block = np.searchsorted(x, last, side="left")
        values: FloatArray = (y[block] - y[block - 1]) / (x[block] - x[block - 1])
        return values

    def rank(self, scores: npt.ArrayLike, side: str = "left") -> Int64Array:
        """Return the number of events below each score ("left"), or not above it ("right"). O(log k) each.

        >>> ScoreTree.from_sorted([1.0, 2.0], [1, 2], [0, 0]).rank([2.0], side="right").tolist()
        [3]
        """
        if side not in ("left", "right"):
            raise InputError(f"side: {side!r}; give 'left' or 'right'")
        ranks = self.ranks(as_scores(scores))
        return ranks[:, 0] + (ranks[:, 2] if side == "right" else 0)

    def select(self, indices: npt.ArrayLike) -> FloatArray:
        """Return the score at each of `indices` of the ascending order, with repeats. O(log k) each.

        >>> ScoreTree.from_sorted([1.0, 2.0], [1, 2], [0, 0]).select([0, 1, 2]).tolist()
        [1.0, 2.0, 2.0]
        """
        at = as_counts(indices)
        if at.size and (at.min() < 0 or at.max() >= len(self)):
            raise InputError(f"select: indices {at.min()}..{at.max()} of {len(self)} events")
        out = np.empty(len(at))
        select_scores(self._tree, at, out)
        return out

    def quantile(self, share: float) -> float | None:
        """Return the smallest score such that at least this share of the events has no higher score.

        O(log k).
        """
        if not 0.0 <= share <= 1.0:
            raise InputError(f"quantile: {share}; give a share from 0 to 1")
        if not len(self):
            return None
        index = max(0, int(np.ceil(share * len(self))) - 1)
        return float(self.select([index])[0])

    def crossing(self, label: int, mass: float) -> MassCrossing | None:
        """Find the highest score s such that more than `mass` events of `label` have a score >= s.

        Return None if `label` has no more than `mass` events in all. O(log k). See `threshold_queries`.

        >>> ScoreTree.from_sorted([1.0, 2.0, 3.0], [0, 1, 1], [2, 1, 0]).crossing(1, 1.5)
        MassCrossing(score=2.0, own_above=1.0, other_above=0.0, own=1.0, other=1.0)
        """
        *masses, key = find_crossing(self._tree, int(label), int(min(np.floor(mass), MAX_WEIGHT)))
        found = MassCrossing(float(scores_of(np.array([key]))[0]), *map(float, masses))
        return found if found.own else None

    def placement(self, labels: npt.ArrayLike, scores: npt.ArrayLike) -> FloatArray:
        """Return for each event the share of the other class that it is ranked right against, ties half.

        labels, scores  of n events, which need not be in the tree

        A positive counts the negatives below it, a negative the positives above it; NaN if the other class is
        empty. The mean is the AUC. O(log k) each.
        """
        y = as_labels(labels)
        below, positives_below, tied, positives_tied = self.ranks(as_scores(scores, len(y))).T
        negatives2 = 2 * (below - positives_below) + tied - positives_tied
        positives2 = 2 * (self.positives - positives_below - positives_tied) + positives_tied
        with np.errstate(invalid="ignore", divide="ignore"):
            of_positives = negatives2 / (2.0 * self.negatives)
            of_negatives = positives2 / (2.0 * self.positives)
        values: FloatArray = np.where(y == 1, of_positives, of_negatives)
        return values

    def row(self, ask: Ask = RANKING) -> Any:
        """Return one record of ROW, as of now. O(log k); O(k) if it needs a hull that is not kept."""
        return self.rows_now(ask).view(np.recarray)[0]

    def rows_now(self, ask: Ask = RANKING) -> Any:
        """Return the record of `row` in an array of length 1, the form that kernels take."""
        rows = empty_rows(1)
        self._keep_sums(ask)
        read_row(self._tree, ask, self._chain, rows)
        return rows

    def _roc_point(self, share: float, at_tpr: bool) -> float | None:
        if not 0.0 <= share <= 1.0:
            raise InputError(f"{'tpr' if at_tpr else 'fpr'}: {share}; give a share from 0 to 1")
        if not self._has_both_classes():
            return None
        return float(roc_point(self._tree, at_tpr, float(share)))

    def ranks(self, scores: FloatArray) -> Int64Array:
        """Return for each score four numbers of events: below, positives below, tied, tied positives.

        O(log k) each.
        """
        ranks = np.empty((len(scores), 4), np.int64)
        rank_scores(self._tree, scores, ranks)
        return ranks
