"""What an adaptive window watches: a signal of each event, fed to ADWIN, and how many events stay.

The one window of all measures begins at the oldest event whose value ADWIN still holds. Signals:

placement  the placement value of the event among the window before it, whose mean is the AUC. Fed only for
           events of the class of which the window, as it stands then, holds fewer (of as many, positives):
           placements of the common class share the few rare events, and set off false alarms. 0.5 where the
           other class is empty.
error      1 where the decision was wrong
brier      squared error of the score

ADWIN seldom cuts (Bifet & Gavalda 2007), so many events are placed ahead, fed, and then applied at once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..arrays import FloatArray, Int8Array, Int64Array
from ..settings.evaluator import EvaluatorSettings
from ..settings.windows import ADAPTIVE_EVENTS, Adaptive
from .adwin import Adwin

if TYPE_CHECKING:
    from ..rows.rows import Rows
    from .columns import Columns

_LOOK_AHEAD = 2_048


class Watched(Protocol):
    """The window of an evaluator, as far as a signal needs it."""

    def __len__(self) -> int:
        """Return how many events the window holds."""
        ...

    def follow(
        self, columns: Columns, given: Int64Array, fed: Int8Array, placements: FloatArray = ...
    ) -> list[Rows]:
        """Apply events; see `ModelEvaluator.follow`."""
        ...

    def masses(self) -> tuple[float, float]:
        """Return the masses of negatives and positives in the window."""
        ...

    @property
    def has_weights(self) -> bool:
        """Return whether events have weights."""
        ...

    def rarer(self, columns: Columns) -> Int8Array:
        """Return 1 for each event of the class of less mass before it, of as much for a positive; else 0.

        For events that would come now, and that nothing leaves for.
        """
        ...

    def placement(self, label: int, score: float) -> float:
        """Return the placement value of an event that would come now, of a window with weights."""
        ...

    def placements_ahead(self, labels: Int8Array, scores: FloatArray, chosen: Int64Array) -> FloatArray:
        """Return the placements that some of these events will have if all come, and none goes."""
        ...

    def events_since_fed(self, kept: int) -> int:
        """Return how many held events there are from the `kept`-th last that was fed on."""
        ...


class AdaptiveSignal:
    """The signal of one window, and the ADWIN that it is fed to."""

    def __init__(self, settings: EvaluatorSettings) -> None:
        window = settings.window
        if not isinstance(window, Adaptive):
            raise TypeError(f"{window} has no signal")
        self.name = window.signal
        self.adwin = Adwin(window.delta)

    def follow(self, watched: Watched, columns: Columns) -> list[Rows]:
        """Apply events to the window, which shrinks where ADWIN says so; return the rows that fall due."""
        if self.name == "placement":
            return self._follow_placements(watched, columns)
        if self.name == "error":
            values = (columns.label_codes != columns.predicted_codes).astype(np.float64)
        else:
            values = (columns.scores - columns.labels) ** 2
        return watched.follow(columns, self.adwin.update(values), np.ones(len(values), np.int8))

    def _follow_placements(self, watched: Watched, columns: Columns) -> list[Rows]:
        """Feed placements as long as nothing is dropped; go on from the event with which something is."""
        parts: list[Rows] = []
        start = 0
        while start < len(columns.scores):
            if watched.has_weights:
                end, some = self._follow_to_check(watched, columns, start)
                parts += some
                start = end
                continue
            room = max(1, ADAPTIVE_EVENTS - len(watched))
            block = columns.part(start, start + min(_LOOK_AHEAD, room))
            fed = watched.rarer(block)
            feeding = np.flatnonzero(fed)
            values = watched.placements_ahead(block.labels, block.scores, feeding)
            taken, dropped = self.adwin.update_until_drop(_defined(values))
            end = int(feeding[taken - 1]) if dropped else len(block.scores)
            if end:
                parts += watched.follow(block.part(0, end), _NOTHING, fed[:end])
            if dropped:
                parts += self._shrink(watched, block.part(end, end + 1))
                end += 1
            start += end
        return parts

    def _follow_to_check(self, watched: Watched, columns: Columns, start: int) -> tuple[int, list[Rows]]:
        """Follow events from one check of ADWIN to the next: sums of weights ahead would round otherwise."""
        negatives, positives = watched.masses()
        until = self.adwin.until_check
        total = negatives + positives
        share = min(negatives, positives) / total if 0.0 < total < math.inf else 0.0
        ahead = min(_LOOK_AHEAD, 32 + int(1.5 * until / max(share, 1e-3)))  # that much is looked at anew
        room = max(1, ADAPTIVE_EVENTS - len(watched))
        block = columns.part(start, start + min(ahead, room))
        fed = watched.rarer(block)
        feeding = np.flatnonzero(fed)
        end = len(block.scores) if len(feeding) < until else int(feeding[until - 1])
        parts: list[Rows] = []
        if end:
            placements = np.empty(end)
            parts += watched.follow(block.part(0, end), _NOTHING, fed[:end], placements)
            self.adwin.update(_defined(placements[fed[:end] == 1]))
        if end < len(block.scores):
            event = block.part(end, end + 1)
            value = watched.placement(int(event.labels[0]), float(event.scores[0]))
            _, dropped = self.adwin.update_until_drop(_defined(np.array([value])))
            parts += self._shrink(watched, event) if dropped else watched.follow(event, _NOTHING, _ONE)
            end += 1
        return start + end, parts

    def _shrink(self, watched: Watched, event: Columns) -> list[Rows]:
        """Apply the event with which ADWIN dropped values: what came before those it keeps goes."""
        stay = np.array([1 + watched.events_since_fed(self.adwin.width - 1)])
        return watched.follow(event, stay, _ONE)


_NOTHING: Int64Array = np.empty(0, np.int64)
_ONE: Int8Array = np.ones(1, np.int8)


def _defined(placements: FloatArray) -> FloatArray:
    return np.where(np.isnan(placements), 0.5, placements)
