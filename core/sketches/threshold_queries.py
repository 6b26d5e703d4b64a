"""AUC with a bound on its error, from a few queries to any ordered store of weighted events.

A (1 + epsilon)-compressed list (see `compressed_list`) needs no store of its own. After a node v the next
node is the score at which the mass of the class, counted from the highest score, first exceeds (1 + epsilon)
(hp(v) + p(v)). Any store that answers this query is a `ThresholdQueries`: a `ScoreTree`, a tree of masses
that fade, sorted arrays, an index of a database. Its AUC can be estimated.

Source: Tatti 2018, section 7. The paper's number of queries, O((log k) / epsilon), holds for unit weights.
Here it is O(log(P / p_first) / epsilon): P is the mass of the class, and p_first its mass at the highest
score with any.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray
from ..errors import ConfigError, InputError
from ..events.inputs import as_labels, as_scores
from ..score_tree.query import MassCrossing


class ThresholdQueries(Protocol):
    """An ordered store of events of two classes, each event with a mass > 0.

    `positives`, `negatives`: the mass of each class.
    """

    @property
    def positives(self) -> float:
        """The mass of label 1."""

    @property
    def negatives(self) -> float:
        """The mass of label 0."""

    def crossing(self, label: int, mass: float) -> MassCrossing | None:
        """Find the highest score s at which the events of `label` with a score >= s have more than `mass`.

        Return None if all events of `label` together have no more than `mass`.
        """


class CompressedList(NamedTuple):
    """The nodes of a compressed list, from the highest score down, without its two ends (float64).

    scores; own_above, other_above: the masses of the grouped class and of the other class above each score;
    own, other: the masses with that score; all_own, all_other: the whole masses.
    """

    scores: FloatArray
    own_above: FloatArray
    other_above: FloatArray
    own: FloatArray
    other: FloatArray
    all_own: float
    all_other: float

    def share_above(self) -> float | None:
        """Estimate the share of pairs with an event of the grouped class above the other event, ties half.

        This is ApproxAUC; it is None without both classes.

        All events between two nodes count as tied. O(nodes).
        """
        if not (self.all_own > 0 and self.all_other > 0):
            return None
        own_above = np.append(self.own_above, self.all_own) / self.all_own
        own = np.append(self.own, 0.0) / self.all_own
        other_above = np.append(self.other_above, self.all_other) / self.all_other
        other = np.append(self.other, 0.0) / self.all_other
        ends_above = np.append(own_above[1:], 1.0)
        in_gap = np.maximum(np.append(other_above[1:], 1.0) - other_above - other, 0.0)
        in_gap[-1] = 0.0  # the end is no node: no event comes after it
        at_nodes = (own_above + own / 2) * other
        in_gaps = (own_above + own + ends_above) / 2 * in_gap
        return float(at_nodes.sum() + in_gaps.sum())


def checked_epsilon(epsilon: float) -> float:
    """Return an epsilon that can bound an error. Raises ConfigError for any other value."""
    try:
        value = float(epsilon)
    except (TypeError, ValueError):
        value = math.nan
    if not (0.0 <= value < math.inf):
        raise ConfigError(
            f"epsilon: {epsilon!r}; give a finite number, 0 (exact) or more: 0.1 keeps the AUC within 5%"
        )
    return value


def compressed_list(store: ThresholdQueries, epsilon: float, label: int = 1) -> CompressedList:
    """Build the (1 + epsilon)-compressed list of class `label`.

    Takes one query for each node, and gives at most 2 log(P / p_first) / log(1 + epsilon) + 3 nodes (with
    epsilon 0 one node for every score of the class). With k events in a balanced tree this takes O(log k
    log(P / p_first) / epsilon). Raises ConfigError for an epsilon below 0 or not finite.
    """
    epsilon = checked_epsilon(epsilon)
    own, other = store.positives, store.negatives
    if label != 1:
        own, other = other, own
    nodes: list[MassCrossing] = []
    through = 0.0
    while (node := _next_node(store, label, through + epsilon * through, nodes)) is not None:
        nodes.append(node)
        through = node.own_above + node.own
    scores, *masses = np.array(nodes, np.float64).reshape(len(nodes), len(MassCrossing._fields)).T
    return CompressedList(scores, masses[0], masses[1], masses[2], masses[3], float(own), float(other))


def _next_node(
    store: ThresholdQueries, label: int, mass: float, before: list[MassCrossing]
) -> MassCrossing | None:
    """Ask for the next node. It lies below all nodes in `before`, even if the store's sums are rounded."""
    nudge = math.ulp(mass)
    while (node := store.crossing(label, mass)) is not None:
        if not before or node.score < before[-1].score:
            break
        mass += nudge
        nudge *= 2
    return node


def estimate_auc(store: ThresholdQueries, epsilon: float = 0.1, *, reverse: bool = False) -> float | None:
    """Estimate the AUC of weighted events by threshold queries: |estimate - auc| <= auc epsilon / 2.

    store: a `ScoreTree`, a `SortedMasses`, or any other `ThresholdQueries`. reverse: the error is at most
    (1 - auc) epsilon / 2 instead, the better bound if the AUC is above a half. Both bounds hold apart from
    the rounding of the store's sums. None without both classes. O(log(P / p_first) / epsilon) queries. Raises
    ConfigError for an epsilon below 0 or not finite, InputError for a value that is not a store.

    >>> store = SortedMasses.of_events([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8], weights=[1, 2, 1, 1])
    >>> round(estimate_auc(store, epsilon=0.0), 6)
    0.833333
    """
    if not all(hasattr(store, name) for name in ("positives", "negatives", "crossing")):
        raise InputError(
            f"estimate_auc: a {type(store).__name__} answers no threshold queries; give a ScoreTree, a "
            "WeightedTree or SortedMasses.of_events(labels, scores, weights=...)"
        )
    share = compressed_list(store, epsilon, 0 if reverse else 1).share_above()
    return 1.0 - share if reverse and share is not None else share


class SortedMasses:
    """A fixed set of weighted events in score order.

    It answers the queries of `ThresholdQueries` from arrays of cumulated masses.

    scores                n distinct ascending scores
    positives, negatives  the mass of each class at each score

    A query is a binary search. `of_events` makes the arrays from events in any order.

    >>> masses = SortedMasses([0.1, 0.4, 0.8], positives=[0, 2, 1], negatives=[1, 1, 0])
    >>> masses.crossing(1, 1.0)
    MassCrossing(score=0.4, own_above=1.0, other_above=0.0, own=2.0, other=1.0)
    """

    def __init__(self, scores: npt.ArrayLike, positives: npt.ArrayLike, negatives: npt.ArrayLike) -> None:
        s = as_scores(scores)
        by_label = [as_masses("negatives", negatives), as_masses("positives", positives)]
        if not len(s) == len(by_label[0]) == len(by_label[1]):
            raise InputError(
                f"SortedMasses: {len(s)} scores, {len(by_label[1])} positives and {len(by_label[0])} "
                "negatives; give as many"
            )
        if (s[1:] <= s[:-1]).any():
            raise InputError("SortedMasses: scores are not ascending and distinct; sort and group")
        self._scores = s[::-1]
        self._masses = [masses[::-1] for masses in by_label]
        with np.errstate(over="ignore"):
            self._above = [np.concatenate([[0.0], np.cumsum(masses)]) for masses in self._masses]
        if not np.isfinite([above[-1] for above in self._above]).all():
            raise InputError("SortedMasses: the masses sum to infinity; divide them all by one number")

    @classmethod
    def of_events(
        cls, labels: npt.ArrayLike, scores: npt.ArrayLike, weights: npt.ArrayLike | None = None
    ) -> Self:
        """Sort and group events: labels (1/0, 1/-1 or booleans), scores, weights (1 each by default).

        O(k log k).

        Weights that halve with age give a window that fades: `weights=0.5 ** (age / half_life)`.
        """
        y = as_labels(labels)
        s = as_scores(scores, len(y))
        w = np.ones(len(y)) if weights is None else as_masses("weights", weights)
        if len(w) != len(y):
            raise InputError(f"weights: {len(w)} of them for {len(y)} labels; give as many")
        distinct, entry = np.unique(s + 0.0, return_inverse=True)
        by_label = [np.bincount(entry[y == c], w[y == c], len(distinct)) for c in (0, 1)]
        return cls(distinct, by_label[1], by_label[0])

    @property
    def positives(self) -> float:
        """The mass of label 1."""
        return float(self._above[1][-1])

    @property
    def negatives(self) -> float:
        """The mass of label 0."""
        return float(self._above[0][-1])

    def crossing(self, label: int, mass: float) -> MassCrossing | None:
        """Find the highest score s at which the events of a class with a score >= s exceed `mass`.

        Takes O(log k).
        """
        own, other = self._above[label], self._above[1 - label]
        at = int(own[1:].searchsorted(mass, side="right"))
        if at == len(self._scores):
            return None
        tied, other_tied = self._masses[label][at], self._masses[1 - label][at]
        return MassCrossing(*map(float, (self._scores[at], own[at], other[at], tied, other_tied)))


def as_masses(name: str, masses: npt.ArrayLike) -> FloatArray:
    """Return masses as float64. Raises InputError for a value that is not a mass."""
    array = np.ascontiguousarray(masses, dtype=np.float64)
    if array.ndim != 1:
        raise InputError(f"{name}: shape {array.shape}; give one dimension")
    wrong = ~((array >= 0) & (array < np.inf))
    if wrong.any():
        raise InputError(f"{name}: {array[wrong.argmax()]} is none; give finite numbers, 0 or more")
    return array
