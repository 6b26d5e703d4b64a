"""ModelEvaluator: one model, one window, exact measures. The notebook API and the unit of a shard's state.

What it keeps
    A ring of the decisions held (label code, predicted code, two hit bits, time), slot `HEAD` the oldest,
    with class masses and counters (decisions.py); and the window in score order (ranking.py), by sorted
    arrays or by a tree, whichever serves the window's size and the rows' stride better.

What it promises
    A row is a pure function of the events applied and the settings: not of how the events were cut into
    calls of `update`, nor of snapshots taken in between. No clock, no randomness, no Beam.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from . import display
from .decisions import (
    CLASSES,
    CORRECT,
    COUNTERS,
    HEAD,
    HELD,
    LABELS,
    LAST_LABEL,
    LAST_SEEN,
    MAJORITY,
    MAJORITY_HIT,
    MAJORITY_HITS,
    PERSISTENT_HIT,
    PERSISTENT_HITS,
    PREDICTIONS,
    SEQ,
    apply_decisions,
    decision_measures,
    majority_class,
)
from .errors import InputError
from .evaluator_inputs import as_binary, as_classes, as_numbers, as_times
from .evaluator_state import Codes, EvaluatorState, evaluator_bytes, packed_text
from .events import NO_TIME, FloatArray, Int8Array, Int64Array, TextColumn
from .ranking import Ranking, SortedRanking, TreeRanking, next_switch, switch_after, tree_sizes
from .rings import unrolled, write_ring
from .roc_curve import RocCurve, WindowCurve, curve_of_entries
from .rows import INTEGER_COLUMNS, NO_POSITIVE_CLASS, NOT_ASKED, NUMBER_COLUMNS, Measures, Rows
from .settings import CURVES_AT_END, MEASURES, RANKING_MEASURES, AllEvents, EvaluatorSettings, EveryEvents
from .window_scan import EXACT_EVENTS

_ROW, _SEQ_COLUMN, _EVENTS, _TIME, _, _PANE_START, _PANE_END, _START, _END = range(len(INTEGER_COLUMNS))
_MEASURE = len(NUMBER_COLUMNS) - len(MEASURES)
_RANKING = slice(0, RANKING_MEASURES)
_FIRST_CAPACITY = 64
_NO_SCORES = np.empty(0)
_NO_LABELS = np.empty(0, np.int8)
_NO_COUNTS = np.empty(0, np.int64)


class ModelEvaluator:
    """Evaluate one model over a window that slides with its events.

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
        self._limit = None if isinstance(settings.window, AllEvents) else settings.window.k
        self._name_bytes = len(packed_text(model)) + len(packed_text(slice)) - 8
        self._multiclass: bool | None = None
        self._class_codes: dict[str, int] = {}
        self._counters = np.zeros(COUNTERS, np.int64)
        self._counters[[LAST_LABEL, MAJORITY]] = -1
        self._classes = np.zeros((4, 2), np.int64)
        self._next_row = 0
        self._reported_seq = 0
        self._greatest_time = NO_TIME
        self._ring_labels: Codes = _NO_LABELS
        self._ring_predictions: Codes = _NO_LABELS
        self._ring_hits = _NO_LABELS
        self._ring_times: Int64Array | None = None
        self._ranking: Ranking | None = None
        self._is_whole = True
        curves = settings.curves
        self._curve_stride = curves.n if isinstance(curves, EveryEvents) else 0
        self._draws = curves is not None

    def __repr__(self) -> str:
        return display.evaluator_text(self)

    def _repr_html_(self) -> str:
        return display.evaluator_html(self)

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
        weights: npt.ArrayLike | None = None,
        predicted: Sequence[str] | npt.ArrayLike | None = None,
    ) -> Rows:
        """Apply events in the order given; return the rows that fell due, and beside them the curves.

        labels     n labels: 1/0, 1/-1 or booleans; with `predicted`, or with `positive` in the settings,
                   classes of any kind
        scores     n finite numbers, higher for more likely positive
        times      n times: microseconds since 1970 UTC, or datetime64
        weights    not in this version: every event counts once
        predicted  n predicted classes; then the kappa family is multi-class

        Raises InputError, and applies nothing, when a value cannot be used.
        """
        if weights is not None:
            raise InputError("weights are not in this version: every event counts once; leave weights= out")
        score_array = np.atleast_1d(as_numbers(scores))
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
        time_array = None if times is None else as_times(times)
        label_list = np.atleast_1d(np.asarray(labels))
        for name, column in (
            ("labels", label_list),
            ("times", time_array),
            ("predicted", predicted),
        ):
            if column is not None and np.shape(np.atleast_1d(np.asarray(column))) != (n,):
                raise InputError(f"{name} and scores differ in length: give one of each per event")
        if predicted is None and self.settings.positive is None:
            return self.apply(score_array, as_binary(label_list), time_array)
        classes = as_classes("labels", label_list)
        positive = np.array([name == self.settings.positive for name in classes.values], np.int8)
        binary = positive[classes.codes] if n else _NO_LABELS
        if predicted is None:
            return self.apply(score_array, binary, time_array)
        predictions = as_classes("predicted", np.atleast_1d(np.asarray(predicted)))
        return self.apply(score_array, binary, time_array, classes, predictions)

    def apply(
        self,
        scores: FloatArray,
        labels: Int8Array,
        times: Int64Array | None = None,
        label_classes: TextColumn | None = None,
        predicted: TextColumn | None = None,
    ) -> Rows:
        """Apply columns that were validated before (see `EventBatch`); return what `update` returns."""
        n = len(scores)
        if not n:
            return self._no_rows
        self._refuse_broken()
        if self._draws and label_classes is not None and self.settings.positive is None:
            self._refuse_without_positive()
        self._settle_kind(label_classes is not None)
        stride = self._curve_stride
        if stride and self.seq % stride + n >= stride:
            rows = self._apply_up_to_curves(scores, labels, times, label_classes, predicted)
        else:
            rows = self._apply_run(scores, labels, times, label_classes, predicted)
        self._is_whole = True
        return rows

    def _apply_up_to_curves(
        self,
        scores: FloatArray,
        labels: Int8Array,
        times: Int64Array | None,
        label_classes: TextColumn | None,
        predicted: TextColumn | None,
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
    ) -> Rows:
        """Apply events within which no curve is due; the caller says when all is whole again."""
        n = len(scores)
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
        every = self.settings.every.n
        due = (self.seq + n) // every - self.seq // every
        rows = Rows.blank(due, ((self.model, self.slice),), self._config) if due else self._no_rows
        self._write_integers(rows, times)
        self._is_whole = False
        self._rank(labels, scores, rows.numbers, rows.reasons)
        self._decide(label_codes, predicted_codes, times, first_class, rows)
        if due:
            self._withhold(rows)
            self._next_row += due
            self._reported_seq = self.seq // every * every
        return rows

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
        was_finished = is_reported and seq % self.settings.every.n != 0
        if not is_reported:
            rows = self._row_now()
            self._reported_seq = seq
            self._next_row += 1
        stride = self._curve_stride
        if self._draws and seq and not was_finished and (not stride or seq % stride):
            return rows.with_curves((self._curve_due(),))
        return rows

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
        if self._ranking is None:
            return curve_of_entries(_NO_SCORES, _NO_COUNTS, _NO_COUNTS)
        return curve_of_entries(*self._ranking.to_entries())

    def _curve_due(self) -> WindowCurve:
        time = None if self._greatest_time == NO_TIME else self._greatest_time
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
    def _until_row(self) -> int:
        """Events until the next row is due."""
        every = self.settings.every.n
        return every - self.seq % every

    @property
    def _is_ranked(self) -> bool:
        """Whether it is known which events are positive."""
        return self.settings.positive is not None or not self._multiclass

    def _rank(self, labels: Int8Array, scores: FloatArray, numbers: FloatArray, reasons: Int8Array) -> None:
        """Apply events to the ranking, before anything else counts them; write what it says in due rows."""
        if not self._is_ranked:
            reasons[:, _RANKING] = NO_POSITIVE_CLASS
            return
        if self._ranking is None:
            self._ranking = self._new_ranking(_NO_LABELS, _NO_SCORES, 0, self._until_row)
        every = self.settings.every.n
        held, until_row, start, row = len(self), self._until_row, 0, 0
        while start < len(scores):
            switch = switch_after(self._tree_sizes, held)
            end = len(scores) if switch is None else min(len(scores), start + switch - held)
            taken = end - start
            due = 0 if taken < until_row else 1 + (taken - until_row) // every
            self._ranking.take(
                labels[start:end], scores[start:end], numbers[row : row + due], reasons[row : row + due]
            )
            until_row = until_row + due * every - taken
            held = held + taken if self._limit is None else min(held + taken, self._limit)
            if held == switch:
                self._ranking = self._new_ranking(*self._ranking.to_arrays(), held, until_row)
            start, row = end, row + due

    def _new_ranking(self, labels: Int8Array, scores: FloatArray, held: int, until_row: int) -> Ranking:
        """Return the ranking of a window, oldest event first, in the form that suits it."""
        form = TreeRanking if held in self._tree_sizes else SortedRanking
        return form(self.settings, labels, scores, until_row)

    def _decide(
        self,
        labels: Codes,
        predictions: Codes,
        times: Int64Array | None,
        first_class: int,
        rows: Rows,
    ) -> None:
        """Apply events to masses, baselines and ring; write what they say in due rows."""
        n, held = len(labels), len(self)
        self._make_room(held + n, times is not None)
        if self._ring_times is not None:
            following = np.full(n, NO_TIME) if times is None else times
            write_ring(self._ring_times, int(self._counters[HEAD]) + held, following)
        if times is not None:
            self._greatest_time = max(self._greatest_time, int(times.max()))
        apply_decisions(
            labels, predictions, first_class, self._counters, self._classes, self._ring_labels,
            self._ring_predictions, self._ring_hits, self._until_row, self.settings.every.n,
            self._positive_code, rows.numbers, rows.reasons,
        )  # fmt: skip

    @property
    def _positive_code(self) -> int:
        if not self._is_ranked:
            return -1
        return 0 if self._multiclass else 1

    def _make_room(self, wanted: int, timed: bool) -> None:
        """Grow the ring, up to the window's size; it wraps only once it has that size."""
        capacity = len(self._ring_labels)
        if timed and self._ring_times is None:
            self._ring_times = np.full(capacity, NO_TIME, np.int64)
        if wanted <= capacity or capacity == self._limit:
            return
        room = max(_FIRST_CAPACITY, 1 << (wanted - 1).bit_length())
        if self._limit is not None:
            room = min(room, self._limit)
        self._ring_labels = _grown(self._ring_labels, room)
        self._ring_predictions = _grown(self._ring_predictions, room)
        self._ring_hits = _grown(self._ring_hits, room)
        if self._ring_times is not None:
            self._ring_times = _grown(self._ring_times, room)

    # ---- rows

    def _oldest_first(self, ring: Any) -> Any:
        return unrolled(ring, int(self._counters[HEAD]), len(self))

    def _row_now(self) -> Rows:
        """Return a row of what the window says now."""
        self._refuse_broken()
        rows = Rows.blank(1, ((self.model, self.slice),), self._config)
        numbers, reasons = rows.numbers[0], rows.reasons[0]
        if not self._is_ranked:
            reasons[_RANKING] = NO_POSITIVE_CLASS
        elif self._ranking is None:
            numbers[:3] = 0.0
        else:
            self._ranking.write_row(numbers, reasons)
        decision_measures(self._counters, self._classes, self._positive_code, numbers, reasons)
        self._write_times(rows, np.array([self.seq]), None)
        self._withhold(rows)
        rows.integers[0, _TIME] = self._greatest_time
        return rows

    def _withhold(self, rows: Rows) -> None:
        """Make null what was not asked for."""
        rows.numbers[:, _MEASURE:][:, self._not_asked] = np.nan
        rows.reasons[:, self._not_asked] = NOT_ASKED
        if not self._is_ranked:
            rows.numbers[:, 0] = rows.integers[:, _EVENTS]

    def _write_integers(self, rows: Rows, times: Int64Array | None) -> None:
        """Write the whole numbers of the rows that fall due within the events that are about to come."""
        if not len(rows):
            return
        every = self.settings.every.n
        seqs = self.seq + self._until_row + every * np.arange(len(rows))
        self._write_times(rows, seqs, times)
        rows.integers[:, _TIME] = self._greatest_time
        if times is not None:
            greatest = np.maximum.accumulate(times)[seqs - self.seq - 1]
            rows.integers[:, _TIME] = np.maximum(greatest, self._greatest_time)

    def _write_times(self, rows: Rows, seqs: Int64Array, times: Int64Array | None) -> None:
        """Write identity, sizes and the window's ends of rows at these seqs; `times` are of what comes."""
        integers = rows.integers
        integers[:, _ROW] = self._next_row + np.arange(len(seqs))
        integers[:, _SEQ_COLUMN] = seqs
        integers[:, _EVENTS] = seqs if self._limit is None else np.minimum(seqs, self._limit)
        if self.pane is not None:
            integers[:, _PANE_START], integers[:, _PANE_END] = self.pane
        held = None if self._ring_times is None else self._oldest_first(self._ring_times)
        if (held is None and times is None) or not seqs[-1]:
            return
        if held is None:
            held = np.full(len(self), NO_TIME)
        coming = int(seqs[-1]) - self.seq
        following = np.full(coming, NO_TIME) if times is None else times[:coming]
        timeline = np.concatenate([held, following])
        last = seqs - self.seq + len(self) - 1
        integers[:, _END] = timeline[last]
        integers[:, _START] = timeline[last - integers[:, _EVENTS] + 1]

    # ---- state

    def state(self) -> EvaluatorState:
        """Return everything that the future depends on. What is sorted is sorted again on loading."""
        self._refuse_broken()
        scores = np.zeros(len(self)) if self._ranking is None else self._ranking.to_arrays()[1]
        return EvaluatorState(
            self.model, self.slice, self.pane, bool(self._multiclass), tuple(self._class_codes),
            self._classes[LAST_SEEN, : self._counters[CLASSES]].copy(), int(self._counters[LAST_LABEL]),
            self.seq, self._next_row, self._reported_seq, self._greatest_time, scores,
            self._oldest_first(self._ring_labels), self._oldest_first(self._ring_predictions),
            self._oldest_first(self._ring_hits),
            None if self._ring_times is None else self._oldest_first(self._ring_times),
        )  # fmt: skip

    @classmethod
    def from_state(cls, settings: EvaluatorSettings, state: EvaluatorState) -> ModelEvaluator:
        """Rebuild an evaluator that goes on exactly as the one that gave the state."""
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
        self._ring_labels = _grown(state.labels, room)
        self._ring_predictions = _grown(state.predictions, room)
        self._ring_hits = _grown(state.hits, room)
        self._ring_times = None if state.times is None else _grown(state.times, room)
        self._next_row = state.next_row
        self._reported_seq = state.reported_seq
        self._greatest_time = state.greatest_time
        if self._is_ranked:
            labels = (state.labels == 0).view(np.int8) if self._multiclass else state.labels
            self._ranking = self._new_ranking(
                labels.astype(np.int8), state.scores, len(state.scores), self._until_row
            )
        return self

    def to_bytes(self) -> bytes:
        """Return a snapshot: a table of this one model (snapshot.py)."""
        from .snapshot import Snapshot  # a snapshot knows evaluators, they need it only here

        return Snapshot.of_evaluator(self).pack()

    @classmethod
    def from_bytes(cls, data: bytes, settings: EvaluatorSettings | None = None) -> ModelEvaluator:
        """Read a snapshot of one model.

        Of curves= a state says nothing: give settings to have curves again. With settings given, raises
        OtherConfigurationError where the snapshot was made under others; raises a `WireError` where the
        bytes are no snapshot, or damaged.
        """
        from .snapshot import Snapshot

        return Snapshot.unpack(data).one_evaluator(settings)

    def snapshot_bytes(self) -> int:
        """Return how many bytes its part of a snapshot takes, in O(1)."""
        return evaluator_bytes(
            len(self), self._name_bytes, len(self._class_codes), bool(self._multiclass),
            self._ring_times is not None,
        )  # fmt: skip

    def live_bytes(self) -> int:
        """Return about how much memory it takes."""
        per_event = 1 + 2 * self._ring_labels.itemsize + (8 if self._ring_times is not None else 0)
        ranking = 0 if self._ranking is None else self._ranking.live_bytes()
        return 1500 + len(self._ring_labels) * per_event + ranking


@functools.cache
def warm_up(settings: EvaluatorSettings) -> None:
    """Compile the kernels that an evaluator with these settings will need, once a process.

    Seconds the first time on a machine, a fraction of one from the cache folder (kernels.py).
    """
    curves = None if settings.curves is None else CURVES_AT_END
    ev = ModelEvaluator(replace(settings, positive=None, curves=curves))
    switch = next_switch(settings, 0)
    events = 2 + (0 if switch is None or switch >= EXACT_EVENTS else switch)
    labels = np.arange(events, dtype=np.int8) % 2
    ev.apply(np.linspace(0.0, 1.0, events), labels)
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
