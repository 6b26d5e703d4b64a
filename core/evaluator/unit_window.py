"""The window of an evaluator whose events count 1 each.

Invariant: the ring of decisions and the ranking hold the same events. The ring has the label code, the
predicted code and the hits of each event; slot `HEAD` has the oldest event. The ranking keeps sorted arrays
or a tree, depending on the window's size and the rows' stride (ranking.py).
"""

from __future__ import annotations

import math
import sys

import numpy as np

from ..arrays import NO_FLOATS, NO_INT8, FloatArray, Int8Array, Int64Array
from ..kernels.rings import FIRST_CAPACITY, capacity_for, unrolled, with_room
from ..measures import decisions
from ..measures.at_row import made_at_row
from ..measures.curve import curve_of_entries
from ..measures.scan import EXACT_EVENTS
from ..measures.steps import ENTERS, ROW_DUE, Steps
from ..rows import slots
from ..rows.columns import INTEGER_COLUMNS
from ..rows.curves import RocCurve
from ..rows.reasons import NO_POSITIVE_CLASS, OUT_OF_RANGE
from ..rows.rows import Rows
from ..settings.evaluator import CurvePoints, EvaluatorSettings
from .event_columns import RANKING, Classes, Columns
from .ranked import stride_of
from .ranking import SortedRanking, TreeRanking
from .state import Codes, Held

_EVENTS = INTEGER_COLUMNS.index("window_events")

Ranking = SortedRanking | TreeRanking


def tree_sizes(settings: EvaluatorSettings) -> range:
    """Return the numbers of events at which a tree is faster than scans of the window.

    The range is empty if there is no such number.

    The function is pure. Its result decides speed and memory only: rows are the same. A tree is faster if it
    makes several rows before it is rebuilt. A scan takes about 60 us a row and .02 us for each event in the
    window; a tree takes .3 us an event, and a millisecond to be built (docs/benchmarks/core.md). A tree holds
    fewer than EXACT_EVENTS events.

    At a row with measures that a tree does not keep (`AtRow`), the tree lists its hull or its entries: 50 to
    90 us. Microseconds a row, scan / tree, for all measures of probabilities with 1,000 and with 10,000
    events: 120 / 90 and 1,110 / 400 with a row per event. 160 / 180 and 1,180 / 620 with a row per 100
    events. 85 / 430 and 1,220 / 1,090 with a row per 1,000 events. The area under the cost curve alone, with
    10,000 events and a row per 1, 100 and 1,000 events: 380 / 50, 480 / 190 and 480 / 700.
    """
    limit = settings.window.size
    end = EXACT_EVENTS if limit is None else 0 if limit >= EXACT_EVENTS else limit + 1
    stride = stride_of(settings)
    start = max(1_000, 20 * stride) if made_at_row(settings).anything else max(64, 2 * stride)
    if settings.window.signal == "placement":
        start = FIRST_CAPACITY  # every event needs its placement, which costs O(k) by a scan
    return range(start, end)


def steps_until_switch(sizes: range, held: int, has_tree: bool) -> int:
    """Return the number of steps after which to check again whether a tree or scans suit the window."""
    if has_tree:  # a window of the last n events never grows too large for its tree
        return sizes.stop - held if sizes.stop == EXACT_EVENTS else sys.maxsize
    return max(1_024, sizes.start - held) if sizes else sys.maxsize


def keeps_form(sizes: range, held: int, has_tree: bool) -> bool:
    """Return whether a window keeps its form, tree or scans.

    A switch costs O(k), so the two thresholds differ: the number of events must change much before the window
    switches back.
    """
    if has_tree:
        return sizes.start // 4 <= held < sizes.stop
    return not (sizes.start <= held < sizes.stop - sizes.stop // 10 * (sizes.stop == EXACT_EVENTS))


class UnitWindow:
    """The ring and the ranking of a window of events that count 1 each.

    The counters (measures/decisions.py) and the classes belong to the evaluator; the window changes them as
    events enter and leave. `WeightedWindow` has the same methods.

    sizes  the numbers of events at which a tree is faster than scans (`tree_sizes`)
    """

    has_weights = False
    is_timed = False
    """Whether the window itself keeps the times of its events."""

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
        rows: Rows,
        placements: FloatArray,  # noqa: ARG002  of windows with weights
    ) -> None:
        """Apply steps, and fill in the rows that fall due. `columns` has an entry for each step.

        placements  only for windows with weights: empty, or an entry for each step, which is filled where an
                    event enters
        """
        self._make_room(len(self) + len(steps.flags))
        classes = self._classes
        if classes.is_ranked:
            self._rank(columns, steps, rows)
            if len(rows):
                refuse_infinite(rows.numbers, rows.reasons)
        else:
            rows.reasons[:, RANKING] = NO_POSITIVE_CLASS
            rows.numbers[:, slots.WEIGHT] = rows.integers[:, _EVENTS]
        decisions.apply_decisions(
            columns.label_codes, columns.predicted_codes, steps.flags, steps.leaving, steps.shifts,
            classes.first_class, self._counters, classes.counts, self._labels, self._predictions, self._hits,
            classes.positive, np.empty(int(self._counters[decisions.CLASSES])), rows.numbers, rows.reasons,
        )  # fmt: skip

    def _rank(self, columns: Columns, steps: Steps, rows: Rows) -> None:
        """Apply steps to the ranking, before the counters change.

        Write the measures of the ranking into the due rows.
        """
        ranking = self._ranking = self._some_ranking()
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
        return self._ranking or self._ranking_of(NO_INT8, NO_FLOATS)

    def _ranking_of(self, labels: Int8Array, scores: FloatArray) -> Ranking:
        """Return a ranking of the events, oldest first.

        The ranking is a tree or sorted arrays, depending on the number of events.
        """
        form = TreeRanking if len(scores) in self._tree_sizes else SortedRanking
        return form(self._settings, labels, scores)

    # ---- measures of the window

    def write_row(self, numbers: FloatArray, reasons: Int8Array) -> None:
        """Write the measures of the present window into one row, which is NaN and 0 before."""
        classes = self._classes
        if not classes.is_ranked:
            numbers[slots.WEIGHT] = len(self)
            reasons[RANKING] = NO_POSITIVE_CLASS
        else:
            self._some_ranking().write_row(numbers, reasons)
            refuse_infinite(numbers[np.newaxis], reasons[np.newaxis])
        decisions.decision_measures(self._counters, classes.counts, classes.positive, numbers, reasons)

    def curve(self, points: CurvePoints) -> RocCurve:
        """Return the ROC curve of the window, with the `points` that `measures.curve` describes."""
        return curve_of_entries(*self._some_ranking().to_entries(), points=points)

    def rarer(self, columns: Columns) -> Int8Array:
        """Return 1 for each event whose class has less mass than the other class before the event, else 0.

        If both masses are equal, the value is 1 for positives. The events are taken as if they came now and
        no event left meanwhile.
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
        """Return the hits (`apply_decisions`) of the events in the window, oldest first."""
        return unrolled(self._hits, int(self._counters[decisions.HEAD]), len(self))

    def held(self) -> Held:
        """Return the events that the window holds, in columns."""
        scores = np.zeros(len(self)) if self._ranking is None else self._ranking.to_arrays()[1]
        return Held(scores, *self._decisions())

    def load(self, held: Held) -> None:
        """Replace the events in the window by `held`, after the counters are loaded. O(k log k)."""
        decisions.count_held(self._counters, self._classes.counts, held.labels, held.predictions, held.hits)
        self._fill_ring(held.labels, held.predictions, held.hits, len(held.scores))
        if self._classes.is_ranked:
            labels = (held.labels == self._classes.positive).view(np.int8)
            self._ranking = self._ranking_of(labels, held.scores)

    def _decisions(self) -> tuple[Codes, Codes, Int8Array]:
        """Return the label codes, predicted codes and hits of the events in the window, oldest first."""
        head, held = int(self._counters[decisions.HEAD]), len(self)
        return unrolled(self._labels, head, held), unrolled(self._predictions, head, held), self.hits()

    def _make_room(self, wanted: int) -> None:
        """Make the ring larger.

        A full window needs no more room, because an event leaves before another enters.
        """
        if wanted > len(self._labels) and len(self._labels) != self._limit:
            self._fill_ring(*self._decisions(), wanted)

    def _fill_ring(self, labels: Codes, predictions: Codes, hits: Int8Array, wanted: int) -> None:
        """Make a ring with room for `wanted` events, which begins with the given events, oldest first."""
        room, dtype = capacity_for(wanted, self._limit), self._classes.dtype
        self._labels = with_room(labels.astype(dtype), room)
        self._predictions = with_room(predictions.astype(dtype), room)
        self._hits = with_room(hits, room)
        self._counters[decisions.HEAD] = 0

    def live_bytes(self) -> int:
        """Estimate the window's memory in bytes."""
        ring = sum(column.nbytes for column in (self._labels, self._predictions, self._hits))
        return ring + (0 if self._ranking is None else self._ranking.live_bytes())


def refuse_infinite(numbers: FloatArray, reasons: Int8Array) -> None:
    """Make measures null, with the reason, if extreme costs, priors or scores have made them infinite."""
    measures = numbers[:, slots.MEASURES :]
    for measure in (slots.H, slots.AUM):
        bad = np.isinf(measures[:, measure])
        if measure == slots.H:
            bad |= np.isnan(measures[:, slots.H]) & ~np.isnan(measures[:, slots.AUC])
        if bad.any():
            measures[bad, measure] = math.nan
            reasons[bad, measure] = OUT_OF_RANGE
