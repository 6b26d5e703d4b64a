"""The signal of an adaptive window: a value of each event.

ADWIN receives the signal and decides how many events stay.

All measures share one window, which begins at the oldest event whose value ADWIN still holds. Signals:

placement  The placement value of the event in the window before the event. The mean placement is the AUC.
           Only events of the class that is rarer in the window at that moment have a value: the positives if
           both classes are equal. Placements of the common class depend on the same few rare events, which
           would cause false alarms. A placement is 0.5 if the other class has no event.
error      1 if the decision was wrong, else 0.
brier      The squared error of the score.

ADWIN seldom drops values (Bifet & Gavalda 2007). So the placements of many events are computed ahead and
given to ADWIN, and then the events are applied at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol, cast

import numpy as np

from ..arrays import NO_FLOATS, NO_INT64, FloatArray, Int8Array, Int64Array
from ..measures.decisions import FED_HIT
from ..rows.rows import Rows
from ..settings.windows import Adaptive
from .adwin import Adwin
from .event_columns import Columns

_LOOK_AHEAD = 2_048


class Followed(Protocol):
    """The window whose events have a signal.

    It is a `UnitWindow`, a `WeightedWindow`, or one of these for a model with classes.
    """

    @property
    def has_weights(self) -> bool:
        """Whether events have weights."""

    def __len__(self) -> int:
        """Return how many events the window holds."""

    def hits(self) -> Int8Array:
        """Return the hits of the events that the window holds, oldest first."""

    def rarer(self, columns: Columns) -> Int8Array:
        """Return 1 for each event of the rarer class, which is placed, else 0.

        `UnitWindow.rarer` defines which class is rarer.
        """


class FollowedUnits(Followed, Protocol):
    """A window whose events count 1 each."""

    def placements_ahead(self, labels: Int8Array, scores: FloatArray, chosen: Int64Array) -> FloatArray:
        """Return the placements of chosen events; `UnitWindow` describes the method."""


class FollowedWeights(Followed, Protocol):
    """A window whose events have weights."""

    def masses(self) -> tuple[float, float]:
        """Return the masses of both classes."""

    def placement(self, label: int, score: float) -> float:
        """Return the placement of an event, as if the event came now."""


Follow = Callable[[Columns, Int64Array, Int8Array, FloatArray], list[Rows]]
"""The type of the function by which an evaluator applies events, and returns the rows that fall due.

Its arguments: the events, `given` and `fed` (as in `plan_steps`), and the array of `placements` to fill.
"""


class AdaptiveSignal:
    """The signal of one window, and the ADWIN that receives the signal."""

    def __init__(self, window: Adaptive) -> None:
        self.name = window.signal
        _, self._most = window.rule
        self.adwin = Adwin(window.delta)

    def follow(self, window: Followed, columns: Columns, follow: Follow) -> list[Rows]:
        """Apply events to the window, which becomes smaller when ADWIN drops values.

        Return the rows that fall due.

        follow  the function that applies events to the window
        """
        if self.name != "placement":
            if self.name == "error":
                values = (columns.label_codes != columns.predicted_codes).astype(np.float64)
            else:
                values = self.squared_errors(columns)
            return follow(columns, self.adwin.update(values), np.ones(len(values), np.int8), NO_FLOATS)
        parts: list[Rows] = []
        start = 0
        while start < len(columns.scores):
            rest = columns.part(start, start + max(1, self._most - len(window)))
            if window.has_weights:
                events, rows = self._follow_to_check(cast(FollowedWeights, window), rest, follow)
            else:
                events, rows = self._follow_to_drop(cast(FollowedUnits, window), rest, follow)
            parts += rows
            start += events
        return parts

    def squared_errors(self, columns: Columns) -> FloatArray:
        """Return the squared error of each event's score."""
        return np.asarray((columns.scores - columns.labels) ** 2)

    def _follow_to_drop(
        self, window: FollowedUnits, columns: Columns, follow: Follow
    ) -> tuple[int, list[Rows]]:
        """Apply events up to the first event at which ADWIN drops values.

        Return the number of applied events, and the rows.
        """
        block = columns.part(0, _LOOK_AHEAD)
        fed = window.rarer(block)
        feeding = np.flatnonzero(fed)
        values = window.placements_ahead(block.labels, block.scores, feeding)
        taken, dropped = self.adwin.update_until_drop(_defined(values))
        end = int(feeding[taken - 1]) if dropped else len(block.scores)
        parts = follow(block.part(0, end), NO_INT64, fed[:end], NO_FLOATS) if end else []
        if dropped:
            event = block.part(end, end + 1)
            parts += follow(event, self._staying(window), fed[end : end + 1], NO_FLOATS)
            end += 1
        return end, parts

    def _follow_to_check(
        self, window: FollowedWeights, columns: Columns, follow: Follow
    ) -> tuple[int, list[Rows]]:
        """Apply events up to the next check of ADWIN; return the number of applied events, and the rows.

        If placements were computed further ahead, rounding would make them differ from placements that are
        computed event by event.
        """
        negatives, positives = window.masses()
        until = self.adwin.until_check
        total = negatives + positives
        share = min(negatives, positives) / total if 0.0 < total < math.inf else 0.0
        # This is the estimated number of events until the next check. The rest of a block is judged again
        # later.
        ahead = min(_LOOK_AHEAD, 32 + int(1.5 * until / max(share, 1e-3)))
        block = columns.part(0, ahead)
        fed = window.rarer(block)
        feeding = np.flatnonzero(fed)
        end = len(block.scores) if len(feeding) < until else int(feeding[until - 1])
        placements = np.empty(end)
        parts = follow(block.part(0, end), NO_INT64, fed[:end], placements) if end else []
        self.adwin.update(_defined(placements[fed[:end] == 1]))
        if end < len(block.scores):
            event = block.part(end, end + 1)
            value = window.placement(int(event.labels[0]), event.scores[0])
            _, dropped = self.adwin.update_until_drop(_defined(np.array([value])))
            given = self._staying(window) if dropped else NO_INT64
            parts += follow(event, given, fed[end : end + 1], NO_FLOATS)
            end += 1
        return end, parts

    def _staying(self, window: Followed) -> Int64Array:
        """Return how many events the window holds after the event at which ADWIN dropped values.

        The events that stay begin at the oldest event whose value ADWIN still holds.
        """
        hits, kept = window.hits(), self.adwin.width - 1
        fed = np.flatnonzero(hits & FED_HIT)
        staying = len(hits) - int(fed[-kept]) if 0 < kept <= len(fed) else len(hits) * (kept > 0)
        return np.array([1 + staying])


def _defined(placements: FloatArray) -> FloatArray:
    return np.where(np.isnan(placements), 0.5, placements)
