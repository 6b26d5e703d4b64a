"""ScoresInOrder: a window of the last k scores, in the order of their values.

Invariant: the window is a `ScoreWindow` while each of its events counts 1. If an event has another weight,
the window is a `WeightedRanking` and the events in their order of arrival. Both have the same values, to
1e-12.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np

from ..arrays import FloatArray, Int8Array
from ..evaluator.eviction import sliding_steps
from ..evaluator.weighted.ranking import WeightedRanking
from ..measures.at_row import curvature_of, h_measure
from ..rows import slots
from ..rows.columns import NUMBER_COLUMNS
from ..rows.measure_table import MEASURES
from ..rows.reasons import ONE_CLASS, REASONS
from ..score_tree.store import NOTHING, checked_capacity
from ..score_tree.tree import ScoreTree
from ..score_tree.tree_rows import ROW, Ask
from ..score_tree.window import ScoreWindow, keeps_hull_for
from ..settings.costs import Cost
from ..settings.evaluator import EvaluatorSettings
from ..weighted_tree.tree_rows import Batch

_ASKS = {"auc": NOTHING, "h": NOTHING._replace(h=1), "ks": NOTHING._replace(ks=1)}
"""The values that each measure needs besides the counts of pairs."""


class Events(NamedTuple):
    """Events in their order of arrival: int8 labels of 0 and 1, scores and weights."""

    labels: Int8Array
    scores: FloatArray
    weights: FloatArray


class ScoresInOrder:
    """Labels, scores and weights of the last `size` events, and one measure of their ranking.

    measure  "auc", "h" or "ks"
    cost     how the cost of a false positive is spread, for "h"

    >>> from rocsteady.core.settings.costs import BetaCost
    >>> window = ScoresInOrder(3, "auc", BetaCost(2, 2))
    >>> window.extend([1, 0, 1, 0], [0.9, 0.1, 0.4, 0.4], [1.0, 1.0, 3.0, 1.0])
    >>> window.measure()
    (0.75, None)
    """

    def __init__(self, size: int, measure: str, cost: Cost) -> None:
        checked_capacity(size + 1)
        self._size, self._measure = size, measure
        self._settings = EvaluatorSettings(cost=cost, measures=(measure,))
        self._load(Events(np.empty(0, np.int8), np.empty(0), np.empty(0)))

    def extend(self, labels: list[int], scores: list[float], weights: list[float]) -> None:
        """Apply events in order; the oldest events leave when the window is full."""
        if isinstance(self._ranked, ScoreWindow):
            if weights.count(1.0) == len(weights):
                steps = sliding_steps(len(labels), len(self._ranked), self._size)
                self._ranked.follow(np.array(labels, np.int8), np.array(scores), steps)
                return
            self._load(self.events(), has_weights=True)
        changes: list[tuple[int, float, float, int]] = []
        for event in zip(labels, scores, weights, strict=True):
            if len(self._arrived) == self._size:
                gone = self._arrived.popleft()
                self._others -= gone[2] != 1.0
                changes.append((*gone, -1))
            self._arrived.append(event)
            self._others += event[2] != 1.0
            changes.append((*event, 1))
        if not self._others:
            self._load(self.events())
        elif isinstance(self._ranked, WeightedRanking):
            of_labels, of_scores, of_weights, signs = zip(*changes, strict=True)
            self._ranked.take_rows(
                Batch(
                    np.array(of_labels, np.int8), np.array(of_scores, np.float64) + 0.0,
                    np.array(of_weights, np.float64), np.array(signs, np.int8),
                )
            )  # fmt: skip

    def take_out(self, label: int, score: float, weight: float) -> bool:
        """Remove the oldest event with this label, score and weight; return False if there is no such event.

        O(k).
        """
        labels, scores, weights = self.events()
        found = np.flatnonzero((labels == label) & (scores == score) & (weights == weight))
        if not len(found):
            return False
        rest = np.arange(len(labels)) != found[0]
        others = bool((weights[rest] != 1.0).any())
        self._load(Events(labels[rest], scores[rest], weights[rest]), has_weights=others)
        return True

    def measure(self) -> tuple[float, str | None]:
        """Return the measure of the window, and the reason if its value is NaN."""
        if isinstance(self._ranked, WeightedRanking):
            return self._weighted_measure(self._ranked)
        tree = self._ranked.tree
        row = dict(zip(ROW.names or (), tree.rows_now(self._ask).item(), strict=True))
        positives, negatives = row["positives"], row["negatives"]
        if positives and negatives:
            return self._value(row, tree), None
        return np.nan, REASONS[ONE_CLASS] if positives or negatives else "no events"

    @property
    def _ask(self) -> Ask:
        return _ASKS[self._measure]

    def _value(self, row: dict[str, Any], tree: ScoreTree) -> float:
        """Return the measure from a record of ROW (score_tree/tree_rows.py), by the names of its fields."""
        if self._measure == "auc":
            return float(row["pairs2"] / (2 * row["positives"] * row["negatives"]))
        if self._measure == "ks":
            return float(row["ks"])
        if curvature_of(self._settings) is not None:
            # rounded in the same way as in the kernels
            return 1.0 - float(row["h_loss"]) / float(row["h_loss_of_all"])
        hull = tree.hull()
        events, positives = np.diff(hull.x), np.diff(hull.y)
        return h_measure(events - positives, positives, self._settings)

    def _weighted_measure(self, ranking: WeightedRanking) -> tuple[float, str | None]:
        numbers, reasons = np.full(len(NUMBER_COLUMNS), np.nan), np.zeros(len(MEASURES), np.int8)
        while not ranking.write_row(numbers, reasons):
            ranking.tree.rebuild(*self.events())
        index = MEASURES.index(self._measure)
        return float(numbers[slots.MEASURES + index]), REASONS[reasons[index]] or None

    def events(self) -> Events:
        """Return the events held, the oldest first. O(k)."""
        if isinstance(self._ranked, ScoreWindow):
            labels, scores = self._ranked.to_arrays()
            return Events(labels, scores, np.ones(len(labels)))
        columns = np.array(self._arrived, np.float64).reshape(-1, 3).T
        return Events(columns[0].astype(np.int8), columns[1], columns[2])

    def _load(self, events: Events, *, has_weights: bool = False) -> None:
        """Hold these events alone, as a window with weights or without. O(k log k)."""
        self._arrived: deque[tuple[int, float, float]] = deque()
        self._others = 0
        """How many events in `_arrived` have a weight that is not 1."""
        if has_weights:
            self._arrived.extend(zip(*(column.tolist() for column in events), strict=True))
            self._others = int(np.count_nonzero(events.weights != 1.0))
            self._ranked: ScoreWindow | WeightedRanking = WeightedRanking(self._settings, *events)
            return
        self._ranked = window = ScoreWindow(
            self._size, cost=(1, 1) if curvature_of(self._settings) == 0.0 else (2, 2),
            keeps_hull=self._ask != NOTHING and keeps_hull_for(self._size, 1),
        )  # fmt: skip
        if len(events.labels):
            window.load(events.labels, events.scores)

    def __getstate__(self) -> dict[str, Any]:
        """Return the events, the oldest first, because the records of trees are no stable format."""
        labels, scores, weights = self.events()
        return {
            "size": self._size, "measure": self._measure, "cost": self._settings.cost,
            "events": (labels, scores, weights if self._others else None),
        }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        labels, scores, weights = state.pop("events")
        self.__init__(**state)  # type: ignore[misc]
        events = Events(labels, scores, np.ones(len(labels)) if weights is None else weights)
        self._load(events, has_weights=weights is not None)
