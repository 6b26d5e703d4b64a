"""ModelEvaluator: one model, one window, exact measures. The notebook API and the unit of a shard's state.

What it keeps
    The course of its window (steps.py): who comes, who goes, when rows are due, and the times of the events
    held. A ring of the decisions held (label code, predicted code, hit bits), slot `HEAD` the oldest, with
    class masses and counters (measures/decisions.py). And the window in score order (ranking.py), by sorted
    arrays or by a tree, whichever serves the window's size and the rows' stride better. Rings hold the same
    events in the same slots.

What it promises
    A row is a pure function of the events applied and the settings: not of how the events were cut into
    calls of `update`, nor of snapshots taken in between. No clock, no randomness, no Beam.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray, Int8Array, Int64Array
from ..encoding.fields import packed_text
from ..encoding.json import reading
from ..errors import InputError
from ..events.columns import TextColumn
from ..events.inputs import as_binary, as_classes, as_numbers, as_times, as_weights, warn_of
from ..events.times import END_OF_TIME, NO_TIME, checked_unit, doubt_in
from ..kernels.rings import unrolled
from ..measures.curve import curve_of_entries
from ..measures.decisions import (
    CLASSES,
    CORRECT,
    COUNTERS,
    FED_HIT,
    HEAD,
    LABELS,
    LAST_LABEL,
    LAST_SEEN,
    MAJORITY,
    MAJORITY_HIT,
    MAJORITY_HITS,
    PERSISTENT_HIT,
    PERSISTENT_HITS,
    PREDICTIONS,
    apply_decisions,
    decision_measures,
    majority_class,
)
from ..measures.scan import EXACT_EVENTS
from ..measures.steps import ENTERS, ROW_DUE, Steps
from ..rows.columns import INTEGER_COLUMNS, NO_POSITIVE_CLASS, NOT_ASKED, NUMBER_COLUMNS
from ..rows.curves import RocCurve, WindowCurve
from ..rows.records import Measures
from ..rows.rows import Rows
from ..settings.evaluator import CURVES_AT_END, EvaluatorSettings
from ..settings.measures import MEASURES, RANKING_MEASURES
from ..settings.windows import Adaptive, EveryEvents, Fading
from .adaptive_signal import AdaptiveSignal
from .adwin import Adwin
from .columns import Columns
from .display import evaluator_html, evaluator_text
from .ranking import Ranking, keeps_form, size_of, steps_until_switch, tree_sizes
from .snapshot import Snapshot
from .sorted_ranking import SortedRanking
from .state import Codes, EvaluatorState, Remains, evaluator_bytes
from .steps import (
    AT,
    CHANGED,
    CLOCK,
    DRIFTED,
    DURATION,
    GREATEST,
    HELD,
    LAST_DUE,
    NEXT_ROW,
    SEQ,
    TIME_HEAD,
    WINDOW_FIELDS,
    new_course,
    next_due,
    plan_steps,
    window_rule,
)
from .tree_ranking import TreeRanking
from .weighted_decisions import WeightedRing
from .weighted_window import WeightedWindow

_ROW, _SEQ_COLUMN, _EVENTS, _TIME, _, _PANE_START, _PANE_END, _START, _END = range(len(INTEGER_COLUMNS))
_MEASURE = len(NUMBER_COLUMNS) - len(MEASURES)
_RANKING = slice(0, RANKING_MEASURES)
_FIRST_CAPACITY = 64
_FARTHEST = 2**61
_STEPS_AT_ONCE = 65_536
_NO_SCORES = np.empty(0)
_NO_LABELS = np.empty(0, np.int8)
_NO_COUNTS = np.empty(0, np.int64)


class ModelEvaluator:
    """Evaluate one model over a window of its events.

    Takes the fields of `EvaluatorSettings` by keyword (or one `settings=`), and the names that stand in
    its rows.

    >>> import rocsteady as rs
    >>> ev = rs.ModelEvaluator(window=rs.LastEvents(4), every=rs.EveryEvents(2))
    >>> rows = ev.update([0, 1, 0, 1], [0.1, 0.9, 0.4, 0.3])
    >>> [row.auc for row in rows]
    [1.0, 0.75]
    >>> ev.measures().kappa
    0.5
    """

    def __init__(
        self,
        settings: EvaluatorSettings | None = None,
        *,
        model: str = "",
        slice: str = "",  # noqa: A002  the column's name
        pane: tuple[int, int] | None = None,
        **choices: Any,
    ) -> None:
        if settings is None:
            settings = EvaluatorSettings(**choices)
        elif choices:
            settings = replace(settings, **choices)
        self.settings = settings
        self.model = model
        self.slice = slice
        self.pane = pane
        self._no_rows, self._not_asked, self._tree_sizes = _of_settings(settings)
        self._config = self._no_rows.config
        self._limit = size_of(settings)
        self._rule = window_rule(settings.window, settings.every)
        self._needs_times = settings.needs_times
        self._adapts = isinstance(settings.window, Adaptive)
        self._signal = AdaptiveSignal(settings) if self._adapts else None
        self._keeps_course = bool(self._rule.grid) or self._adapts
        self._name_bytes = len(packed_text(model)) + len(packed_text(slice)) - 8
        self._multiclass: bool | None = None
        self._class_codes: dict[str, int] = {}
        self._counters = np.zeros(COUNTERS, np.int64)
        self._counters[[LAST_LABEL, MAJORITY]] = -1
        self._classes = np.zeros((4, 2), np.int64)
        self._course = new_course()
        self._first_class = 0
        self._reported_seq = 0
        self._ring_labels: Codes = _NO_LABELS
        self._ring_predictions: Codes = _NO_LABELS
        self._ring_hits = _NO_LABELS
        self._ring_times: Int64Array = _NO_COUNTS
        self._is_timed = False
        self._ranking: Ranking | None = None
        self._weighted: WeightedWindow | None = None
        self._fades = isinstance(settings.window, Fading)
        self._is_whole = True
        self._doubted = False
        curves = settings.curves
        self._curve_stride = curves.n if isinstance(curves, EveryEvents) else 0
        self._draws = curves is not None

    def __repr__(self) -> str:
        return evaluator_text(self)

    def _repr_html_(self) -> str:
        return evaluator_html(self)

    def __len__(self) -> int:
        """Return how many events the window holds."""
        return int(self._counters[HELD])

    @property
    def seq(self) -> int:
        """How many events were applied in all."""
        return int(self._counters[SEQ])

    def update(
        self,
        labels: npt.ArrayLike,
        scores: npt.ArrayLike,
        *,
        times: npt.ArrayLike | None = None,
        time_unit: Literal["s", "ms", "us", "ns"] = "s",
        weights: npt.ArrayLike | None = None,
        predicted: Sequence[str] | npt.ArrayLike | None = None,
    ) -> Rows:
        """Apply events in the order given; return the rows that fell due, and beside them the curves.

        labels     n labels: 1/0, 1/-1 or booleans; with `predicted`, or with `positive` in the settings,
                   classes of any kind
        scores     n finite numbers, higher for more likely positive
        times      n times: numbers since 1970 UTC in `time_unit`, datetime64, datetimes (no zone = UTC) or
                   dates
        time_unit  "s", "ms", "us" or "ns": the unit of times that are numbers; other times ignore it
        weights    n finite numbers above 0, what each event counts; all are 1 by default
        predicted  n predicted classes; then the kappa family is multi-class

        Raises InputError, and applies nothing, when a value cannot be used. Warns once, by `TimeUnitWarning`,
        of numbers that look as if they counted another unit (see events/times.py).
        """
        score_array = as_numbers("scores", scores)
        n = len(score_array)
        if score_array.ndim != 1:
            raise InputError(f"scores have {score_array.ndim} dimensions; give one score per event")
        bad = np.flatnonzero(~np.isfinite(score_array))
        if len(bad):
            raise InputError(
                f"scores[{bad[0]}] is {score_array[bad[0]]}: a score is a finite number; leave the event out"
            )
        if self.settings.probabilities and n and not (score_array.min() >= 0 and score_array.max() <= 1):
            raise InputError(
                "scores lie outside [0, 1], and probabilities=True says that they are probabilities"
            )
        time_array = None if times is None else self._read_times(times, time_unit)
        weight_array = None if weights is None else as_weights(weights)
        label_list = np.atleast_1d(np.asarray(labels))
        for name, column in (
            ("labels", label_list),
            ("times", time_array),
            ("weights", weight_array),
            ("predicted", predicted),
        ):
            if column is not None and np.shape(np.atleast_1d(np.asarray(column))) != (n,):
                raise InputError(f"{name} and scores differ in length: give one of each per event")
        if predicted is None and self.settings.positive is None:
            return self.apply(score_array, as_binary(label_list), time_array, weights=weight_array)
        classes = as_classes("labels", label_list)
        positive = np.array([name == self.settings.positive for name in classes.values], np.int8)
        binary = positive[classes.codes] if n else _NO_LABELS
        if predicted is None:
            return self.apply(score_array, binary, time_array, weights=weight_array)
        predictions = as_classes("predicted", np.atleast_1d(np.asarray(predicted)))
        return self.apply(score_array, binary, time_array, classes, predictions, weight_array)

    def _read_times(self, times: npt.ArrayLike, unit: str) -> Int64Array:
        """Return times as microseconds, and warn once of a unit that looks wrong; `update` calls it."""
        micros, are_numbers = as_times(times, checked_unit(unit))
        if are_numbers and not self._doubted and (doubt := doubt_in(micros, unit)) is not None:
            self._doubted = True
            warn_of(doubt, stacklevel=3)
        return micros

    def apply(
        self,
        scores: FloatArray,
        labels: Int8Array,
        times: Int64Array | None = None,
        label_classes: TextColumn | None = None,
        predicted: TextColumn | None = None,
        weights: FloatArray | None = None,
    ) -> Rows:
        """Apply columns that were validated before (see `EventBatch`); return what `update` returns."""
        n = len(scores)
        if not n:
            return self._no_rows
        self._refuse_broken()
        if label_classes is not None and self.settings.positive is None:
            if self._draws:
                self._refuse_without_positive()
            if self._signal is not None and self._signal.name == "placement":
                raise InputError(
                    f"the labels of {self.model!r} are classes and none of them is named as positive, so "
                    "that nothing is placed; name it with positive=, or take Adaptive(signal='error')"
                )
        self._settle_kind(label_classes is not None)
        stride = self._curve_stride
        if stride and self.seq % stride + n >= stride:
            rows = self._apply_up_to_curves(scores, labels, times, label_classes, predicted, weights)
        else:
            rows = self._apply_run(scores, labels, times, label_classes, predicted, weights)
        self._is_whole = True
        return rows

    def _apply_up_to_curves(
        self,
        scores: FloatArray,
        labels: Int8Array,
        times: Int64Array | None,
        label_classes: TextColumn | None,
        predicted: TextColumn | None,
        weights: FloatArray | None,
    ) -> Rows:
        """Apply events in pieces that end where a curve is due."""
        parts, start, stride = [], 0, self._curve_stride
        while start < len(scores):
            piece = slice(start, start + stride - self.seq % stride)
            part = self._apply_run(
                scores[piece],
                labels[piece],
                None if times is None else times[piece],
                _part_of(label_classes, piece),
                _part_of(predicted, piece),
                None if weights is None else weights[piece],
            )
            if self.seq % stride == 0:
                part = part.with_curves((self._curve_due(),))
            parts.append(part)
            start = piece.stop
        return Rows.concat(parts)

    def _apply_run(
        self,
        scores: FloatArray,
        labels: Int8Array,
        times: Int64Array | None,
        label_classes: TextColumn | None,
        predicted: TextColumn | None,
        weights: FloatArray | None,
    ) -> Rows:
        """Apply events within which no curve is due; the caller says when all is whole again."""
        self._check_times(times)
        scores = scores + 0.0  # -0.0 and 0.0 are one score
        if label_classes is None or predicted is None:
            labels = np.array(labels, np.int8)  # kept until the next row: a copy of the caller's
            label_codes: Codes = labels
            predicted_codes: Codes = (scores >= self.settings.threshold).view(np.int8)
            first_class = 0
        else:
            label_codes, predicted_codes = self._encode(label_classes), self._encode(predicted)
            first_class = -1 if self.settings.positive is None else -2
            labels = (label_codes == 0).view(np.int8)
        self._first_class = first_class
        self._is_whole = False
        if self._weighted is None and (self._fades or weights is not None):
            self._weighted = self._begin_weighted()
        if self._weighted is None:
            weights = _NO_SCORES
        elif weights is None:
            weights = np.ones(len(scores))
        columns = Columns(scores, labels, label_codes, predicted_codes, times, weights)
        parts = self.follow(columns) if self._signal is None else self._signal.follow(self, columns)
        rows = Rows.concat(parts) if len(parts) > 1 else parts[0] if parts else self._no_rows
        if len(rows):
            self._reported_seq = int(rows.integers[-1, _SEQ_COLUMN])
        return rows

    def _check_times(self, times: Int64Array | None) -> None:
        """Refuse events that a window or a grid by time cannot place."""
        needs = self._needs_times
        if needs is None:
            return
        if times is None or (len(times) and times.min() == NO_TIME):
            raise InputError(f"{needs} needs the time of every event; give times= (--time COL)")
        if not (times.min() > -_FARTHEST and times.max() < _FARTHEST):
            raise InputError(
                f"{needs}: a time lies more than 70,000 years from 1970; check the unit of the times"
            )

    def advance(
        self, clock: float | date | np.datetime64, *, time_unit: Literal["s", "ms", "us", "ns"] = "s"
    ) -> Rows:
        """Let time go on to a moment; return the rows of the grid points before it.

        clock  a time, as `update` takes times

        For rows on a grid of times alone: for all others it does nothing.
        """
        moments = self._read_times(np.array([clock]), time_unit)
        return self.advance_to(int(moments[0]))

    def advance_to(self, clock: int) -> Rows:
        """Let time go on to a moment, microseconds UTC; return what `advance` returns."""
        self._refuse_broken()
        if not self._rule.grid or not self.seq:
            return self._no_rows
        codes: Codes = self._ring_labels[:0]
        nothing = Columns(_NO_SCORES, _NO_LABELS, codes, codes, None, _NO_SCORES)
        rows = Rows.concat(self.follow(nothing, clock=clock))
        if len(rows):
            self._reported_seq = int(rows.integers[-1, _SEQ_COLUMN])
        return rows

    @property
    def next_due(self) -> int:
        """The grid point at which the next row is due if no event comes; END_OF_TIME: there is none."""
        if not self._rule.grid or not self.seq:
            return END_OF_TIME
        due = int(next_due(self._rule, self._course, self._ring_times))
        return END_OF_TIME if due == NO_TIME else due

    def finish(self) -> Rows:
        """Return the last row and the last curve, unless the last event applied has made them already.

        When it is called again, no event later, the row does not come again. The curve does where the last
        row was made by the last event: that a curve was given is kept nowhere.
        """
        self._refuse_broken()
        if self._draws and not self._is_ranked:
            self._refuse_without_positive()
        seq, rows = self.seq, self._no_rows
        is_reported = self._reported_seq == seq
        was_finished = is_reported and not (self._rule.every and seq % self._rule.every == 0)
        if not is_reported:
            rows = self._row_now()
            self._reported_seq = seq
            self._course[NEXT_ROW] += 1
            self._course[CHANGED] = self._course[DRIFTED] = 0
        stride = self._curve_stride
        if self._draws and seq and not was_finished and (not stride or seq % stride):
            return rows.with_curves((self._curve_due(),))
        return rows

    def remains(self) -> Remains:
        """Return what is to be kept of it where it leaves after `finish`, and may return."""
        counters = self._course[[SEQ, NEXT_ROW, GREATEST, CLOCK, LAST_DUE]].tolist()
        return Remains(self.model, self.slice, *counters)

    @classmethod
    def returning(
        cls, settings: EvaluatorSettings, remains: Remains, pane: tuple[int, int] | None = None
    ) -> ModelEvaluator:
        """Return an evaluator with an empty window, whose rows go on from one that left."""
        self = cls(settings, model=remains.model, slice=remains.slice, pane=pane)
        self._course[[SEQ, NEXT_ROW, GREATEST, CLOCK, LAST_DUE]] = remains[2:]
        self._counters[SEQ] = self._reported_seq = remains.seq
        return self

    def measures(self) -> Measures:
        """Return what the window says now."""
        return self._row_now().measures(0)

    def curve(self) -> RocCurve:
        """Return the ROC curve of what the window holds now, with its hull and calibration.

        O(k) and what it takes to sort what came since the last row. Raises InputError where labels are
        classes and none of them is named as positive.
        """
        self._refuse_broken()
        if not self._is_ranked:
            self._refuse_without_positive()
        return self._drawn()

    def _drawn(self) -> RocCurve:
        if self._weighted is not None:
            return self._weighted.curve()
        if self._ranking is None:
            return curve_of_entries(_NO_SCORES, _NO_COUNTS, _NO_COUNTS)
        return curve_of_entries(*self._ranking.to_entries())

    def _curve_due(self) -> WindowCurve:
        greatest = int(self._course[GREATEST])
        time = None if greatest == NO_TIME else greatest
        return WindowCurve(self.model, self.slice, self.pane, self.seq, time, self._config, self._drawn())

    def _refuse_without_positive(self) -> NoReturn:
        raise InputError(
            f"the labels of {self.model!r} are classes and none of them is named as positive, so that it has "
            "no ROC curve; name the positive class with positive=, or leave curves out"
        )

    # ---- taking events in

    def _settle_kind(self, multiclass: bool) -> None:
        if self._multiclass is None:
            self._multiclass = multiclass
            if multiclass:
                self._ring_labels = self._ring_predictions = np.empty(0, np.int32)
                if self.settings.positive is not None:
                    self._class_code(self.settings.positive)
            else:
                self._counters[CLASSES] = 2
        elif self._multiclass != multiclass:
            had, got = ("with", "without") if self._multiclass else ("without", "with")
            raise InputError(
                f"events {got} predicted classes follow events {had} them in one evaluator; "
                "use one evaluator for each kind"
            )

    def _class_code(self, name: str) -> int:
        code = self._class_codes.get(name)
        if code is not None:
            return code
        code = self._class_codes[name] = len(self._class_codes)
        self._counters[CLASSES] = len(self._class_codes)
        self._name_bytes += len(packed_text(name)) - 4
        if code >= self._classes.shape[1]:
            self._classes = np.concatenate([self._classes, np.zeros_like(self._classes)], axis=1)
        return code

    def _encode(self, column: TextColumn) -> Codes:
        """Return codes of this evaluator for a text column; classes are numbered as they appear."""
        used, first = np.unique(column.codes, return_index=True)
        table = np.zeros(len(column.values), np.int32)
        for entry in used[np.argsort(first, kind="stable")].tolist():
            table[entry] = self._class_code(column.values[entry])
        return table[column.codes]

    def _refuse_broken(self) -> None:
        """Refuse to go on where an update was interrupted between ranking and decisions."""
        if not self._is_whole:
            raise InputError(
                f"the window of {self.model!r} is not whole, since an update was interrupted; go on from a "
                "snapshot"
            )

    @property
    def _is_ranked(self) -> bool:
        """Whether it is known which events are positive."""
        return self.settings.positive is not None or not self._multiclass

    def follow(
        self,
        columns: Columns,
        given: Int64Array = _NO_COUNTS,
        fed: Int8Array = _NO_LABELS,
        placements: FloatArray = _NO_SCORES,
        clock: int = NO_TIME,
    ) -> list[Rows]:
        """Apply events, then let time go on to `clock`; return the rows that fall due.

        given, fed  how many events stay at most with each, and 1 where the signal was fed with it: of windows
                    that do not know by themselves (`plan_steps`)
        placements  of weighted windows, filled with the events' placement values where it is not empty
        """
        n, course, parts = len(columns.scores), self._course, []
        times = _NO_COUNTS if columns.times is None else columns.times
        course[AT] = 0
        while True:
            start = int(course[AT])
            room = n - start if not self._rule.grid else min(n - start, _STEPS_AT_ONCE) + 16
            self._make_room(len(self) + room, columns.times is not None)
            greatest = int(course[GREATEST])
            events, leaving, shifts = np.empty((3, room), np.int64)
            steps = Steps(events, np.empty(room, np.int8), leaving, shifts)
            due = self._rows_at_most(room)
            integers, drift = np.full((due, len(INTEGER_COLUMNS)), NO_TIME), np.empty(due, np.int8)
            count, due = plan_steps(
                self._rule, times, given, fed, n, clock, course, self._ring_times, *steps, integers, drift
            )
            if count:
                rows = Rows.blank(due, ((self.model, self.slice),), self._config) if due else self._no_rows
                if due:
                    rows.integers[:] = integers[:due]
                    if self._adapts:
                        rows.drift[:] = drift[:due]
                    if self.pane is not None:
                        rows.integers[:, [_PANE_START, _PANE_END]] = self.pane
                self._take_steps(columns, steps.part(0, count), start, greatest, rows, placements)
                if due:
                    self._withhold(rows)
                    parts.append(rows)
            if int(course[AT]) == n and (count < room or not self._rule.grid):
                return parts

    def _rows_at_most(self, steps: int) -> int:
        every = self._rule.every
        return (self.seq + steps) // every - self.seq // every if every else steps

    def masses(self) -> tuple[float, float]:
        """Return the masses of negatives and positives in the window, in any scale."""
        if self._weighted is not None:
            return self._weighted.masses()
        positives = int(self._classes[LABELS, self._positive_code])
        return len(self) - positives, positives

    def rarer(self, columns: Columns) -> Int8Array:
        """Return 1 for each event of the class of less mass before it, of as much for a positive; else 0.

        For events that would come now, and that nothing leaves for.
        """
        if self._weighted is not None:
            return self._weighted.rarer(columns)
        negatives, positives = self.masses()
        of_one_class = np.cumsum(columns.labels, dtype=np.int64) - columns.labels
        excess = positives - negatives + 2 * of_one_class - np.arange(len(columns.labels))
        return np.where(columns.labels == 1, excess <= 0, excess > 0).astype(np.int8)

    def placement(self, label: int, score: float) -> float:
        """Return the placement value of an event that would come now, of a window with weights."""
        return np.nan if self._weighted is None else self._weighted.placement(label, score)

    @property
    def has_weights(self) -> bool:
        """Whether events have weights, or fade."""
        return self._weighted is not None

    def placements_ahead(self, labels: Int8Array, scores: FloatArray, chosen: Int64Array) -> FloatArray:
        """Return the placements that some of these events will have if all come, and none goes."""
        if self._ranking is None:
            self._ranking = self._new_ranking(_NO_LABELS, _NO_SCORES, 0)
        return self._ranking.placements_ahead(labels, scores, chosen)

    def events_since_fed(self, kept: int) -> int:
        """Return how many held events there are from the `kept`-th last that was fed on."""
        fed = np.flatnonzero(self._column("hits") & FED_HIT)
        return len(self) - int(fed[-kept]) if 0 < kept <= len(fed) else len(self) * (kept > 0)

    def _take_steps(
        self, columns: Columns, steps: Steps, start: int, greatest: int, rows: Rows, placements: FloatArray
    ) -> None:
        """Let ranking and decisions follow steps, the first of which is event `start`; fill in the rows."""
        events = int(self._course[AT]) - start
        if events == len(steps.flags):
            columns = columns.part(start, start + events)
        else:  # some steps are no events, and what stands in their place is not looked at
            columns = columns.take(np.maximum(steps.events, 0))
        if self._rule.kind != DURATION or not steps.shifts.any():
            steps = steps._replace(shifts=_NO_COUNTS)
        placed = placements[start : start + events]
        if len(placements) and events < len(steps.flags):
            placed = np.empty(len(steps.flags))
        self._let_follow(columns, steps, greatest, rows, placed)
        if len(placements) and events < len(steps.flags):
            placements[start : start + events] = placed[steps.events >= 0]

    def _let_follow(
        self, columns: Columns, steps: Steps, greatest: int, rows: Rows, placements: FloatArray
    ) -> None:
        """Let the window follow steps, of each of which columns and placements have one entry."""
        if self._weighted is not None:
            self._weighted.take(columns, steps, self._first_class, self._classes, greatest, rows, placements)
            self._course[HELD] = self._counters[HELD]
            if not self._is_ranked:
                rows.reasons[:, _RANKING] = NO_POSITIVE_CLASS
            return
        self._rank(columns, steps, rows)
        apply_decisions(
            columns.label_codes, columns.predicted_codes, steps.flags, steps.leaving, steps.shifts,
            self._first_class, self._counters, self._classes, self._ring_labels, self._ring_predictions,
            self._ring_hits, self._positive_code, rows.numbers, rows.reasons,
        )  # fmt: skip

    def _rank(self, columns: Columns, steps: Steps, rows: Rows) -> None:
        """Let the ranking follow steps, before anything else counts them; write what it says in due rows."""
        if not self._is_ranked:
            rows.reasons[:, _RANKING] = NO_POSITIVE_CLASS
            return
        ranking = self._ranking
        if ranking is None:
            ranking = self._ranking = self._new_ranking(_NO_LABELS, _NO_SCORES, 0)
        sizes, held, start, row = self._tree_sizes, len(self), 0, 0
        while start < len(steps.flags):
            has_tree = isinstance(ranking, TreeRanking)
            end = min(len(steps.flags), start + steps_until_switch(sizes, held, has_tree))
            part = steps.part(start, end)
            due = int(np.count_nonzero(part.flags & ROW_DUE)) if len(rows) else 0
            ranking.take(
                columns.labels[start:end], columns.scores[start:end], part, rows.numbers[row : row + due],
                rows.reasons[row : row + due],
            )  # fmt: skip
            start, row = end, row + due
            if not sizes:
                continue
            held += int(np.count_nonzero(part.flags & ENTERS)) - int(part.leaving.sum())
            if not keeps_form(sizes, held, has_tree):
                form = SortedRanking if has_tree else TreeRanking
                ranking = self._ranking = form(self.settings, *ranking.to_arrays())

    def _new_ranking(self, labels: Int8Array, scores: FloatArray, held: int) -> Ranking:
        """Return the ranking of a window, oldest event first, in the form that suits it."""
        form = TreeRanking if held in self._tree_sizes else SortedRanking
        return form(self.settings, labels, scores)

    @property
    def _positive_code(self) -> int:
        if not self._is_ranked:
            return -1
        return 0 if self._multiclass else 1

    def _make_room(self, wanted: int, timed: bool) -> None:
        """Grow the rings, up to the window's size: one event of a full window goes before another comes."""
        if timed and not self._is_timed and not self._fades:  # what fades keeps its times by itself
            self._is_timed = True
            self._ring_times = np.full(max(len(self._ring_labels), len(self)), NO_TIME, np.int64)
            self._course[TIME_HEAD] = 0
        if self._is_timed and (room := self._room_for(len(self._ring_times), wanted)):
            self._ring_times = _grown(self._times_held(), room)
            self._course[TIME_HEAD] = 0
        if self._weighted is None and (room := self._room_for(len(self._ring_labels), wanted)):
            self._ring_labels = _grown(self._column("labels"), room)
            self._ring_predictions = _grown(self._column("predictions"), room)
            self._ring_hits = _grown(self._column("hits"), room)
            self._counters[HEAD] = 0

    def _room_for(self, capacity: int, wanted: int) -> int:
        """Return the slots that a ring of so many should have, 0 where it has enough."""
        if wanted <= capacity or capacity == self._limit:
            return 0
        room = max(_FIRST_CAPACITY, 1 << (wanted - 1).bit_length())
        return room if self._limit is None else min(room, self._limit)

    def _begin_weighted(self) -> WeightedWindow:
        """Return the window as it stands, of events that count 1 each, for weights to come."""
        weighted = WeightedWindow(self.settings, self._counters, self._positive_code, self._ring_labels.dtype)
        if len(self):
            scores = np.zeros(len(self)) if self._ranking is None else self._ranking.to_arrays()[1]
            columns = WeightedRing(
                self._column("labels"), self._column("predictions"), self._column("hits"), scores,
                np.ones(len(self)), _NO_COUNTS,
            )  # fmt: skip
            weighted.load(columns, 0, 0, self._classes)
        self._ranking = None
        self._ring_labels, self._ring_predictions = self._ring_labels[:0], self._ring_predictions[:0]
        self._ring_hits = _NO_LABELS
        return weighted

    # ---- rows

    def _column(self, name: str) -> Any:
        """Return labels, predictions or hits of the events held, oldest first."""
        if self._weighted is not None:
            return self._weighted.column(name)
        ring = {"labels": self._ring_labels, "predictions": self._ring_predictions, "hits": self._ring_hits}
        return unrolled(ring[name], int(self._counters[HEAD]), len(self))

    def _times_held(self) -> Int64Array:
        """Return the times of the events held, oldest first; nothing where there are none."""
        if self._weighted is not None and self._fades:
            return self._weighted.column("times") if self._weighted.is_timed else _NO_COUNTS
        if not self._is_timed:
            return _NO_COUNTS
        return unrolled(self._ring_times, int(self._course[TIME_HEAD]), len(self))

    def _row_now(self) -> Rows:
        """Return a row of what the window says now."""
        self._refuse_broken()
        rows = Rows.blank(1, ((self.model, self.slice),), self._config)
        numbers, reasons = rows.numbers[0], rows.reasons[0]
        if not self._is_ranked:
            reasons[_RANKING] = NO_POSITIVE_CLASS
        elif self._ranking is not None:
            self._ranking.write_row(numbers, reasons)
        elif self._weighted is None:
            numbers[:3] = 0.0
        if self._weighted is None:
            decision_measures(self._counters, self._classes, self._positive_code, numbers, reasons)
        else:
            self._weighted.write_row(numbers, reasons, self._classes)
        integers, course = rows.integers[0], self._course
        integers[[_ROW, _SEQ_COLUMN, _EVENTS, _TIME]] = course[[NEXT_ROW, SEQ, HELD, GREATEST]]
        if self.pane is not None:
            integers[[_PANE_START, _PANE_END]] = self.pane
        if len(times := self._times_held()):
            integers[[_START, _END]] = times[[0, -1]]
        if self._adapts:
            rows.drift[0] = course[DRIFTED]
        self._withhold(rows)
        return rows

    def _withhold(self, rows: Rows) -> None:
        """Make null what was not asked for."""
        rows.numbers[:, _MEASURE:][:, self._not_asked] = np.nan
        rows.reasons[:, self._not_asked] = NOT_ASKED
        if not self._is_ranked and self._weighted is None:
            rows.numbers[:, 0] = rows.integers[:, _EVENTS]

    # ---- state

    def state(self) -> EvaluatorState:
        """Return everything that the future depends on. What is sorted is sorted again on loading."""
        self._refuse_broken()
        weighted, course, times = self._weighted, self._course, self._times_held()
        if weighted is not None:
            scores = weighted.column("scores")
        else:
            scores = np.zeros(len(self)) if self._ranking is None else self._ranking.to_arrays()[1]
        return EvaluatorState(
            self.model, self.slice, self.pane, bool(self._multiclass), tuple(self._class_codes),
            self._classes[LAST_SEEN, : self._counters[CLASSES]].copy(), int(self._counters[LAST_LABEL]),
            self.seq, int(course[NEXT_ROW]), self._reported_seq, int(course[GREATEST]), scores,
            self._column("labels"), self._column("predictions"), self._column("hits"),
            times if len(times) else None,
            tuple(course[list(WINDOW_FIELDS)].tolist()) if self._keeps_course else None,
            b"" if self._signal is None else self._signal.adwin.to_bytes(),
            None if weighted is None else weighted.column("weights"),
            0 if weighted is None else weighted.shift,
        )  # fmt: skip

    @classmethod
    def from_state(cls, settings: EvaluatorSettings, state: EvaluatorState) -> ModelEvaluator:
        """Rebuild an evaluator that goes on exactly as the one that gave the state. O(events held).

        Raises CorruptBytesError where the numbers of the state cannot be an evaluator's.
        """
        with reading(f"{state.model!r} in a snapshot"):
            return cls._rebuilt(settings, state)

    @classmethod
    def _rebuilt(cls, settings: EvaluatorSettings, state: EvaluatorState) -> ModelEvaluator:
        self = cls(settings, model=state.model, slice=state.slice, pane=state.pane)
        if not state.seq:
            return self
        self._settle_kind(state.multiclass)
        for name in state.class_names:
            self._class_code(name)
        count = int(self._counters[CLASSES])
        agreed = state.labels[state.labels == state.predictions]
        self._classes[LABELS, :count] = np.bincount(state.labels, minlength=count)
        self._classes[PREDICTIONS, :count] = np.bincount(state.predictions, minlength=count)
        self._classes[CORRECT, :count] = np.bincount(agreed, minlength=count)
        self._classes[LAST_SEEN, :count] = state.last_seen
        self._counters[SEQ] = state.seq
        self._counters[HELD] = len(state.scores)
        self._counters[LAST_LABEL] = state.last_label
        self._counters[MAJORITY] = majority_class(self._classes, count)
        self._counters[MAJORITY_HITS] = np.count_nonzero(state.hits & MAJORITY_HIT)
        self._counters[PERSISTENT_HITS] = np.count_nonzero(state.hits & PERSISTENT_HIT)
        room = max(_FIRST_CAPACITY, 1 << (len(state.scores) - 1).bit_length())
        room = room if self._limit is None else min(room, self._limit)
        if state.weights is None:
            self._ring_labels = _grown(state.labels, room)
            self._ring_predictions = _grown(state.predictions, room)
            self._ring_hits = _grown(state.hits, room)
        if state.times is not None and not self._fades:
            self._is_timed = True
            self._ring_times = _grown(state.times, room)
        self._course[[SEQ, HELD, NEXT_ROW]] = state.seq, len(state.scores), state.next_row
        self._course[[GREATEST, CLOCK]] = state.greatest_time
        if state.course is not None:
            self._course[list(WINDOW_FIELDS)] = state.course
        if self._signal is not None:
            self._signal.adwin = Adwin.from_bytes(state.signal)
        self._reported_seq = state.reported_seq
        if state.weights is not None:
            self._counters[CLASSES] = count
            self._weighted = WeightedWindow(
                settings, self._counters, self._positive_code, self._ring_labels.dtype
            )
            columns = WeightedRing(
                state.labels, state.predictions, state.hits, state.scores, state.weights,
                _NO_COUNTS if state.times is None else state.times,
            )  # fmt: skip
            self._weighted.load(columns, state.shift, state.greatest_time, self._classes)
        elif self._is_ranked:
            labels = (state.labels == 0).view(np.int8) if self._multiclass else state.labels
            self._ranking = self._new_ranking(labels.astype(np.int8), state.scores, len(state.scores))
        return self

    def to_bytes(self) -> bytes:
        """Return a snapshot: a table of this one model (snapshot.py)."""
        return Snapshot.of_evaluator(self.settings, self.state()).pack()

    @classmethod
    def from_bytes(cls, data: bytes, settings: EvaluatorSettings | None = None) -> ModelEvaluator:
        """Read a snapshot of one model.

        Of curves= a state says nothing: give settings to have curves again. With settings given, raises
        OtherConfigurationError where the snapshot was made under others; raises a `WireError` where the
        bytes are no snapshot, or damaged.
        """
        return cls.from_state(*Snapshot.unpack(data).one_evaluator(settings))

    def snapshot_bytes(self) -> int:
        """Return how many bytes its part of a snapshot takes, in O(1)."""
        return evaluator_bytes(
            len(self), self._name_bytes, len(self._class_codes), bool(self._multiclass),
            self._is_timed or (self._fades and self._weighted is not None and self._weighted.is_timed),
            self._keeps_course, 0 if self._signal is None else self._signal.adwin.snapshot_bytes(),
            self._weighted is not None,
        )  # fmt: skip

    def live_bytes(self) -> int:
        """Return about how much memory it takes."""
        per_event = 1 + 2 * self._ring_labels.itemsize + (8 if self._is_timed else 0)
        ranking = self._ranking or self._weighted
        return 1500 + len(self._ring_labels) * per_event + (0 if ranking is None else ranking.live_bytes())


@functools.cache
def warm_up(settings: EvaluatorSettings) -> None:
    """Compile the kernels that an evaluator with these settings will need, once a process.

    Seconds the first time on a machine, a fraction of one from the cache folder (kernels/compile.py).
    """
    curves = None if settings.curves is None else CURVES_AT_END
    ev = ModelEvaluator(replace(settings, positive=None, curves=curves))
    sizes = tree_sizes(settings)
    events = 2 + (sizes.start if sizes and sizes.start < EXACT_EVENTS else 0)
    labels, scores = np.arange(events, dtype=np.int8) % 2, np.linspace(0.0, 1.0, events)
    for start in (0, events):  # a tree is made behind the first events: it slides with the second ones
        times = np.arange(start, start + events)
        ev.apply(scores, labels, times if settings.needs_times else None)
        ev = ModelEvaluator.from_bytes(ev.to_bytes(), ev.settings)
    ev.finish()


def _part_of(column: TextColumn | None, events: slice) -> TextColumn | None:
    return None if column is None else TextColumn(column.codes[events], column.values)


@functools.lru_cache(maxsize=64)
def _of_settings(settings: EvaluatorSettings) -> tuple[Rows, npt.NDArray[np.bool_], range]:
    """Return no rows, which measures are not asked for, `tree_sizes`: the same for many models."""
    not_asked = np.array([name not in (settings.measures or ()) for name in MEASURES])
    return Rows.empty(settings.config_hash()), not_asked, tree_sizes(settings)


def _grown(array: Any, room: int) -> Any:
    grown = np.zeros(room, array.dtype)
    grown[: len(array)] = array
    return grown
