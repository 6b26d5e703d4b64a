"""The window of an evaluator whose events count 1 each.

Invariant: the ring of decisions and the ranking hold the same events. The ring has the label code, the
predicted code and the hits of each event; slot `HEAD` has the oldest event. The ranking keeps sorted arrays
or a tree, depending on the window's size and the rows' stride (ranking.py).
"""

from __future__ import annotations

import numpy as np

from ..arrays import NO_FLOATS, NO_INT8, NO_INT64, FloatArray, Int8Array, Int64Array
from ..kernels.rings import capacity_for, unrolled, with_room
from ..measures import decisions
from ..measures.curve import curve_of_entries
from ..measures.steps import ENTERS, ROW_DUE, Steps
from ..rows import slots
from ..rows.columns import INTEGER_COLUMNS, NO_POSITIVE_CLASS
from ..rows.curves import RocCurve
from ..rows.rows import Rows
from ..settings.evaluator import EvaluatorSettings
from .held import RANKING, Classes, Columns, Held
from .ranking import keeps_form, steps_until_switch
from .sorted_ranking import SortedRanking
from .state import Codes
from .tree_ranking import TreeRanking

_EVENTS = INTEGER_COLUMNS.index("window_events")

Ranking = SortedRanking | TreeRanking


class UnitWindow:
    """Ring and ranking of a window of events that count 1 each.

    Counters (measures/decisions.py) and classes belong to the evaluator; the window changes them as events
    enter and leave. `WeightedWindow` has the same methods.

    sizes  numbers of events held at which a tree is faster than scans (`tree_sizes`)
    """

    has_weights = False
    is_timed = False
    """Whether the window keeps the times of its events itself."""

    def __init__(
        self, settings: EvaluatorSettings, counters: Int64Array, classes: Classes, sizes: range
    ) -> None:
        self._settings = settings
        self._counters = counters
        self._classes = classes
        self._tree_sizes = sizes
        self._limit = settings.window.size
        self._labels: Codes = NO_INT8
        self._predictions: Codes = NO_INT8
        self._hits = NO_INT8
        self._ranking: Ranking | None = None

    # ---- events

    def follow(
        self,
        columns: Columns,
        steps: Steps,
        greatest: int,  # noqa: ARG002  of windows that fade
        rows: Rows,
        placements: FloatArray,  # noqa: ARG002  of windows with weights
    ) -> None:
        """Apply steps, and fill in the rows that fall due. `columns` has an entry for each step.

        greatest    the greatest time before the steps
        placements  of windows with weights: empty, or an entry for each step, filled where an event enters
        """
        self._make_room(len(self) + len(steps.flags))
        classes = self._classes
        if classes.is_ranked:
            self._rank(columns, steps, rows)
        else:
            rows.reasons[:, RANKING] = NO_POSITIVE_CLASS
            rows.numbers[:, slots.WEIGHT] = rows.integers[:, _EVENTS]
        decisions.apply_decisions(
            columns.label_codes, columns.predicted_codes, steps.flags, steps.leaving, steps.shifts,
            classes.first_class, self._counters, classes.counts, self._labels, self._predictions, self._hits,
            classes.positive, rows.numbers, rows.reasons,
        )  # fmt: skip

    def _rank(self, columns: Columns, steps: Steps, rows: Rows) -> None:
        """Apply steps to the ranking, before the counters change; write its measures into the due rows."""
        ranking = self._some_ranking()
        sizes, held, start, row = self._tree_sizes, len(self), 0, 0
        while start < len(steps.flags):
            has_tree = isinstance(ranking, TreeRanking)
            end = min(len(steps.flags), start + steps_until_switch(sizes, held, has_tree))
            part = steps.part(start, end)
            due = int(np.count_nonzero(part.flags & ROW_DUE)) if len(rows) else 0
            ranking.follow(
                columns.labels[start:end], columns.scores[start:end], part, rows.numbers[row : row + due],
                rows.reasons[row : row + due],
            )  # fmt: skip
            start, row = end, row + due
            if not sizes:
                continue
            held += int(np.count_nonzero(part.flags & ENTERS)) - int(part.leaving.sum())
            if not keeps_form(sizes, held, has_tree):
                form = SortedRanking if has_tree else TreeRanking
                ranking = self._ranking = form(self._settings, *ranking.to_arrays())

    def _some_ranking(self) -> Ranking:
        if self._ranking is None:
            self._ranking = self._ranking_of(NO_INT8, NO_FLOATS)
        return self._ranking

    def _ranking_of(self, labels: Int8Array, scores: FloatArray) -> Ranking:
        """Return a ranking of the events, oldest first: a tree or sorted arrays, by their number."""
        form = TreeRanking if len(scores) in self._tree_sizes else SortedRanking
        return form(self._settings, labels, scores)

    # ---- measures of the window

    def write_row(self, numbers: FloatArray, reasons: Int8Array) -> None:
        """Write the window's measures now into one row, given as NaN and 0."""
        classes = self._classes
        if not classes.is_ranked:
            numbers[slots.WEIGHT] = len(self)
            reasons[RANKING] = NO_POSITIVE_CLASS
        elif self._ranking is None:
            numbers[: slots.PREVALENCE] = 0.0
        else:
            self._ranking.write_row(numbers, reasons)
        decisions.decision_measures(self._counters, classes.counts, classes.positive, numbers, reasons)

    def curve(self) -> RocCurve:
        """Return the ROC curve of the window."""
        if self._ranking is None:
            return curve_of_entries(NO_FLOATS, NO_INT64, NO_INT64)
        return curve_of_entries(*self._ranking.to_entries())

    def rarer(self, columns: Columns) -> Int8Array:
        """Return 1 for each event whose class has less mass than the other class before the event; else 0.

        If both masses are equal, 1 for positives. The events would come now, and no event leaves meanwhile.
        """
        positives = int(self._classes.counts[decisions.LABELS, self._classes.positive])
        of_one_class = np.cumsum(columns.labels, dtype=np.int64) - columns.labels
        excess = 2 * (positives + of_one_class) - len(self) - np.arange(len(columns.labels))
        return np.where(columns.labels == 1, excess <= 0, excess > 0).astype(np.int8)

    def placements_ahead(self, labels: Int8Array, scores: FloatArray, chosen: Int64Array) -> FloatArray:
        """Return the placement values of the chosen events, if all events enter and no event leaves."""
        return self._some_ranking().placements_ahead(labels, scores, chosen)

    # ---- events held

    def __len__(self) -> int:
        """Return how many events the window holds."""
        return int(self._counters[decisions.HELD])

    def hits(self) -> Int8Array:
        """Return the hits (`apply_decisions`) of the events held, oldest first."""
        return unrolled(self._hits, int(self._counters[decisions.HEAD]), len(self))

    def held(self) -> Held:
        """Return the events held."""
        scores = np.zeros(len(self)) if self._ranking is None else self._ranking.to_arrays()[1]
        return Held(scores, *self._decisions())

    def load(self, held: Held, greatest: int) -> None:  # noqa: ARG002  of windows that fade
        """Replace the events held by `held`; `greatest` is the greatest time applied. O(k log k)."""
        counters, counts = self._counters, self._classes.counts
        count = int(counters[decisions.CLASSES])
        agreed = held.labels[held.labels == held.predictions]
        for kind, codes in (
            (decisions.LABELS, held.labels),
            (decisions.PREDICTIONS, held.predictions),
            (decisions.CORRECT, agreed),
        ):
            counts[kind, :count] = np.bincount(codes, minlength=count)
        counters[decisions.MAJORITY] = decisions.majority_class(counts, count)
        counters[decisions.MAJORITY_HITS] = np.count_nonzero(held.hits & decisions.MAJORITY_HIT)
        counters[decisions.PERSISTENT_HITS] = np.count_nonzero(held.hits & decisions.PERSISTENT_HIT)
        counters[decisions.HELD] = len(held.scores)
        self._fill_ring(held.labels, held.predictions, held.hits, len(held.scores))
        if self._classes.is_ranked:
            labels = (held.labels == self._classes.positive).view(np.int8)
            self._ranking = self._ranking_of(labels, held.scores)

    def _decisions(self) -> tuple[Codes, Codes, Int8Array]:
        """Return label codes, predicted codes and hits of the events held, oldest first."""
        head, held = int(self._counters[decisions.HEAD]), len(self)
        return unrolled(self._labels, head, held), unrolled(self._predictions, head, held), self.hits()

    def _make_room(self, wanted: int) -> None:
        """Grow the ring. A full window needs no more room: an event leaves before another enters."""
        if wanted > len(self._labels) and len(self._labels) != self._limit:
            self._fill_ring(*self._decisions(), wanted)

    def _fill_ring(self, labels: Codes, predictions: Codes, hits: Int8Array, wanted: int) -> None:
        """Make a ring with room for `wanted` events that begins with the given events, oldest first."""
        room, dtype = capacity_for(wanted, self._limit), self._classes.dtype
        self._labels = with_room(labels.astype(dtype), room)
        self._predictions = with_room(predictions.astype(dtype), room)
        self._hits = with_room(hits, room)
        self._counters[decisions.HEAD] = 0

    def live_bytes(self) -> int:
        """Estimate the window's memory in bytes."""
        ring = sum(column.nbytes for column in (self._labels, self._predictions, self._hits))
        return ring + (0 if self._ranking is None else self._ranking.live_bytes())
