"""ModelEvaluator: one model, one window, exact measures. The notebook API and the unit of a shard's state.

What it keeps
    A ring of the events held (score, label code, predicted code, two hit bits, time), slot `HEAD` the
    oldest; class masses and counters (decisions.py); and, between rows, the window's scores in sorted
    order, brought up to date at a row by one merge with what came and went since the row before.

What it promises
    A row is a pure function of the events applied and the settings: not of how the events were cut into
    calls of `update`, nor of snapshots taken in between. No clock, no randomness, no Beam.

Cost: O(1) amortised per event, O(window) per row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, ndtri

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
from .evaluator_state import Codes, EvaluatorState, evaluator_bytes, packed_text
from .events import NO_TIME, FloatArray, Int8Array, Int64Array, TextColumn
from .rows import INTEGER_COLUMNS, NO_POSITIVE_CLASS, NOT_ASKED, NUMBER_COLUMNS, OUT_OF_RANGE, Measures, Rows
from .settings import MEASURES, AllEvents, EvaluatorSettings, SeverityCost, class_text
from .window_scan import merge_sorted, probability_losses, scan_window

_ROW, _SEQ_COLUMN, _EVENTS, _TIME, _, _PANE_START, _PANE_END, _START, _END = range(len(INTEGER_COLUMNS))
_MEASURE = len(NUMBER_COLUMNS) - len(MEASURES)
_H = MEASURES.index("h")
_AUM = MEASURES.index("aum")
_BRIER, _LOG_LOSS = MEASURES.index("brier"), MEASURES.index("log_loss")
_RANKING = slice(0, MEASURES.index("calibration_error") + 1)
_FIRST_CAPACITY = 64
_NONE_F = np.empty(0)
_NONE_I8 = np.empty(0, np.int8)


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
        self._config = settings.config_hash()
        self._no_rows = Rows.empty(self._config)
        self._asked = np.array([name in settings.measures for name in MEASURES], np.int8)  # type: ignore[operator]
        self._z = float(ndtri(0.5 + settings.confidence / 2.0))
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
        self._ring_scores = _NONE_F
        self._ring_labels: Codes = _NONE_I8
        self._ring_predictions: Codes = _NONE_I8
        self._ring_hits = _NONE_I8
        self._ring_times: Int64Array | None = None
        self._sorted_scores = _NONE_F
        self._sorted_labels = _NONE_I8
        self._added: list[tuple[FloatArray, Int8Array]] = []
        self._removed: list[tuple[FloatArray, Int8Array]] = []
        self._pending = 0

    def __repr__(self) -> str:
        name = f" of {self.model!r}" if self.model else ""
        return f"<ModelEvaluator{name}: {self.settings.window}, {len(self)} events held of {self.seq}>"

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
        """Apply events in the order given; return the rows that fell due.

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
        score_array = np.atleast_1d(_as_numbers(scores))
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
        time_array = None if times is None else _as_times(times)
        label_list = np.atleast_1d(np.asarray(labels))
        for name, column in (
            ("labels", label_list),
            ("times", time_array),
            ("predicted", predicted),
        ):
            if column is not None and np.shape(np.atleast_1d(np.asarray(column))) != (n,):
                raise InputError(f"{name} and scores differ in length: give one of each per event")
        if predicted is None and self.settings.positive is None:
            return self.apply(score_array, _as_binary(label_list), time_array)
        classes = _as_classes("labels", label_list)
        positive = np.array([name == self.settings.positive for name in classes.values], np.int8)
        binary = positive[classes.codes] if n else _NONE_I8
        if predicted is None:
            return self.apply(score_array, binary, time_array)
        predictions = _as_classes("predicted", np.atleast_1d(np.asarray(predicted)))
        return self.apply(score_array, binary, time_array, classes, predictions)

    def apply(
        self,
        scores: FloatArray,
        labels: Int8Array,
        times: Int64Array | None = None,
        label_classes: TextColumn | None = None,
        predicted: TextColumn | None = None,
    ) -> Rows:
        """Apply columns that were validated before (see `EventBatch`); return the rows that fell due."""
        n = len(scores)
        if not n:
            return self._no_rows
        self._settle_kind(label_classes is not None)
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
        start = 0
        for row in range(due):
            end = start + every - self.seq % every
            self._take(scores, labels, label_codes, predicted_codes, times, first_class, start, end)
            self._write_row(rows, row)
            self._reported_seq = self.seq
            self._next_row += 1
            start = end
        self._take(scores, labels, label_codes, predicted_codes, times, first_class, start, n)
        return rows

    def finish(self) -> Rows:
        """Return the last row, unless the last event applied has made one already."""
        if self._reported_seq == self.seq:
            return self._no_rows
        rows = Rows.blank(1, ((self.model, self.slice),), self._config)
        self._write_row(rows, 0)
        self._reported_seq = self.seq
        self._next_row += 1
        return rows

    def measures(self) -> Measures:
        """Return what the window says now."""
        rows = Rows.blank(1, ((self.model, self.slice),), self._config)
        self._write_row(rows, 0)
        return rows.measures(0)

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

    def _take(
        self,
        scores: FloatArray,
        labels: Int8Array,
        label_codes: Codes,
        predicted_codes: Codes,
        times: Int64Array | None,
        first_class: int,
        start: int,
        end: int,
    ) -> None:
        """Apply events start to end; no row falls due inside."""
        n = end - start
        if n <= 0:
            return
        held = len(self)
        self._make_room(held + n, times is not None)
        capacity = len(self._ring_scores)
        self._note_changes(scores[start:end], labels[start:end], max(0, held + n - capacity))
        head = int(self._counters[HEAD])
        kept = max(start, end - capacity)  # a longer run overwrites itself
        slots = (head + held + np.arange(kept - start, end - start)) % capacity
        self._ring_scores[slots] = scores[kept:end]
        if self._ring_times is not None:
            self._ring_times[slots] = NO_TIME if times is None else times[kept:end]
        if times is not None:
            self._greatest_time = max(self._greatest_time, int(times[start:end].max()))
        apply_decisions(
            label_codes[start:end], predicted_codes[start:end], first_class, self._counters, self._classes,
            self._ring_labels, self._ring_predictions, self._ring_hits,
        )  # fmt: skip

    def _make_room(self, wanted: int, timed: bool) -> None:
        """Grow the ring, up to the window's size; it wraps only once it has that size."""
        if timed and self._ring_times is None:
            self._ring_times = np.full(len(self._ring_scores), NO_TIME, np.int64)
        capacity = len(self._ring_scores)
        if wanted <= capacity or capacity == self._limit:
            return
        room = max(_FIRST_CAPACITY, 1 << (wanted - 1).bit_length())
        if self._limit is not None:
            room = min(room, self._limit)
        self._ring_scores = _grown(self._ring_scores, room)
        self._ring_labels = _grown(self._ring_labels, room)
        self._ring_predictions = _grown(self._ring_predictions, room)
        self._ring_hits = _grown(self._ring_hits, room)
        if self._ring_times is not None:
            self._ring_times = _grown(self._ring_times, room)

    def _note_changes(self, scores: FloatArray, labels: Int8Array, evicted: int) -> None:
        """Remember what the sorted window lacks; forget it all where sorting anew will be cheaper."""
        if self._pending < 0:
            return
        self._pending += len(scores) + evicted
        if evicted > len(self) or self._pending > max(_FIRST_CAPACITY, len(self)):
            self._added.clear()
            self._removed.clear()
            self._pending = -1
            return
        self._added.append((scores.copy(), labels.copy()))  # a view would hold on to the whole call's
        if evicted:
            slots = (self._counters[HEAD] + np.arange(evicted)) % len(self._ring_scores)
            self._removed.append((self._ring_scores[slots], self._binary(self._ring_labels[slots])))

    def _binary(self, codes: Codes) -> Int8Array:
        return (codes == 0).view(np.int8) if self._multiclass else codes.astype(np.int8, copy=False)

    # ---- rows

    def _slots(self) -> Int64Array:
        capacity = max(1, len(self._ring_scores))
        return np.asarray((self._counters[HEAD] + np.arange(len(self))) % capacity, np.int64)

    def _sort_window(self) -> None:
        """Bring the sorted window up to date."""
        if self._pending == 0:
            return
        if self._pending < 0:
            slots = self._slots()
            pair = (self._ring_scores[slots], self._binary(self._ring_labels[slots]))
            self._sorted_scores, self._sorted_labels = _sorted([pair])
        else:
            added, removed = _sorted(self._added), _sorted(self._removed)
            scores = np.empty(len(self._sorted_scores) + len(added[0]))
            labels = np.empty(len(scores), np.int8)
            n = merge_sorted(self._sorted_scores, self._sorted_labels, *removed, *added, scores, labels)
            if n < 0:  # an update was interrupted half-way
                raise InputError(
                    f"the window of {self.model!r} is not whole, since an update was interrupted; go on "
                    "from a snapshot"
                )
            self._sorted_scores, self._sorted_labels = scores[:n], labels[:n]
        self._added.clear()
        self._removed.clear()
        self._pending = 0

    def _write_row(self, rows: Rows, index: int) -> None:
        numbers, reasons = rows.numbers[index], rows.reasons[index]
        if self._multiclass and self.settings.positive is None:
            numbers[0] = len(self)
            reasons[_RANKING] = NO_POSITIVE_CLASS
        else:
            self._sort_window()
            self._write_ranking(numbers, reasons)
        ranked_without_classes = self.settings.positive is not None or not self._multiclass
        positive = (0 if self._multiclass else 1) if ranked_without_classes else -1
        decision_measures(self._counters, self._classes, positive, numbers, reasons)
        numbers[_MEASURE:][self._asked == 0] = np.nan
        reasons[self._asked == 0] = NOT_ASKED
        self._write_integers(rows.integers[index])

    def _write_ranking(self, numbers: FloatArray, reasons: Int8Array) -> None:
        scores, labels, settings = self._sorted_scores, self._sorted_labels, self.settings
        edge_negatives = np.empty(len(scores) + 1, np.int64)
        edge_positives = np.empty(len(scores) + 1, np.int64)
        edges = scan_window(
            scores, labels, self._asked, self._z, settings.at_fpr, settings.false_positive_cost,
            numbers, reasons, edge_negatives, edge_positives,
        )  # fmt: skip
        if settings.probabilities and len(scores):
            probability_losses(scores, labels, numbers)
        if edges:
            dn, dp = edge_negatives[:edges], edge_positives[:edges]
            if settings.flip_if_below_half and numbers[_MEASURE] < 0.5:
                dn, dp = _hull_of_flipped(scores, labels)
            numbers[_MEASURE + _H] = h_measure(dn, dp, settings)
            for measure in (_H, _AUM):  # extreme costs or priors, extreme scores
                if not math.isfinite(numbers[_MEASURE + measure]):
                    numbers[_MEASURE + measure] = math.nan
                    reasons[measure] = OUT_OF_RANGE

    def _write_integers(self, integers: Int64Array) -> None:
        integers[_ROW] = self._next_row
        integers[_SEQ_COLUMN] = self.seq
        integers[_EVENTS] = len(self)
        integers[_TIME] = self._greatest_time
        if self.pane is not None:
            integers[_PANE_START], integers[_PANE_END] = self.pane
        if self._ring_times is not None and len(self):
            head, capacity = int(self._counters[HEAD]), len(self._ring_times)
            integers[_START] = self._ring_times[head]
            integers[_END] = self._ring_times[(head + len(self) - 1) % capacity]

    # ---- state

    def state(self) -> EvaluatorState:
        """Return everything that the future depends on. What is sorted is sorted again on loading."""
        slots = self._slots()
        return EvaluatorState(
            self.model, self.slice, self.pane, bool(self._multiclass), tuple(self._class_codes),
            self._classes[LAST_SEEN, : self._counters[CLASSES]].copy(), int(self._counters[LAST_LABEL]),
            self.seq, self._next_row, self._reported_seq, self._greatest_time,
            self._ring_scores[slots], self._ring_labels[slots], self._ring_predictions[slots],
            self._ring_hits[slots], None if self._ring_times is None else self._ring_times[slots],
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
        self._ring_scores = _grown(state.scores, room)
        self._ring_labels = _grown(state.labels, room)
        self._ring_predictions = _grown(state.predictions, room)
        self._ring_hits = _grown(state.hits, room)
        self._ring_times = None if state.times is None else _grown(state.times, room)
        self._next_row = state.next_row
        self._reported_seq = state.reported_seq
        self._greatest_time = state.greatest_time
        self._pending = -1
        return self

    def to_bytes(self) -> bytes:
        """Return a snapshot: a table of this one model (snapshot.py)."""
        from .snapshot import Snapshot  # a snapshot knows evaluators, they need it only here

        return Snapshot.of_evaluator(self).pack()

    @classmethod
    def from_bytes(cls, data: bytes, settings: EvaluatorSettings | None = None) -> ModelEvaluator:
        """Read a snapshot of one model.

        With settings given, raises OtherConfigurationError where the snapshot was made under others;
        raises a `WireError` where the bytes are no snapshot, or damaged.
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
        per_event = 9 + 2 * self._ring_labels.itemsize + (8 if self._ring_times is not None else 0)
        pending = 18 * max(0, self._pending) + 500 * len(self._added)  # small arrays are mostly their heads
        return 1500 + pending + len(self._ring_scores) * per_event + 9 * len(self._sorted_scores)


def h_measure(edge_negatives: Int64Array, edge_positives: Int64Array, settings: EvaluatorSettings) -> float:
    """Return the H-measure of a hull, given by the (negatives, positives) of its edges.

    Every edge adds h(n, p) = n G0(c) + p G1(c), c = p / (n + p); H = 1 - sum of them / h(N, P). Hand 2009;
    Hand & Anagnostopoulos 2014; Tatti 2021. With fixed priors the classes are weighed by those.
    O(edges), of which a window has about 1.3 * cube root of its size.
    """
    n, p = edge_negatives.astype(np.float64), edge_positives.astype(np.float64)
    prevalence = p.sum() / (n.sum() + p.sum())
    if settings.priors != "window":
        prevalence = settings.priors
        n, p = n * ((1.0 - prevalence) / n.sum()), p * (prevalence / p.sum())
    if isinstance(settings.cost, SeverityCost) and not 0.0 < prevalence < 1.0:
        return math.nan
    a, b = settings.cost.beta(float(prevalence))
    with np.errstate(all="ignore"):  # what comes out of extreme costs is not a number, and said so
        losses = minimum_loss(n, p, a, b)
        whole = float(minimum_loss(np.array([n.sum()]), np.array([p.sum()]), a, b)[0])
    return 1.0 - math.fsum(losses) / whole if whole > 0.0 else math.nan


def minimum_loss(n: FloatArray, p: FloatArray, a: float, b: float) -> FloatArray:
    """Return h(n, p) of every edge under Beta(a, b) costs: its share of the least possible loss."""
    t = n + p
    w = n * p / t
    if a == b == 2.0:
        return np.asarray(w * (1.0 + w / t) / 2.0)
    if a == b == 1.0:
        return np.asarray(w / 2.0)
    c = p / t
    return np.asarray(
        n * (a / (a + b) * betainc(a + 1.0, b, c)) + p * (b / (a + b) * betainc(b + 1.0, a, 1.0 - c))
    )


def _hull_of_flipped(scores: FloatArray, labels: Int8Array) -> tuple[Int64Array, Int64Array]:
    """Return the hull edges of the window under -score."""
    n = len(scores)
    numbers, reasons = np.empty(len(NUMBER_COLUMNS)), np.empty(len(MEASURES), np.int8)
    negatives, positives = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    edges = scan_window(
        -scores[::-1], labels[::-1].copy(), np.zeros(len(MEASURES), np.int8), 0.0, 0.0, 0.5,
        numbers, reasons, negatives, positives,
    )  # fmt: skip
    return negatives[:edges], positives[:edges]


def _sorted(pairs: list[tuple[FloatArray, Int8Array]]) -> tuple[FloatArray, Int8Array]:
    if not pairs:
        return _NONE_F, _NONE_I8
    scores = np.concatenate([pair[0] for pair in pairs])
    labels = np.concatenate([pair[1] for pair in pairs])
    order = np.lexsort((labels, scores))
    return scores[order], labels[order]


def _grown(array: Any, room: int) -> Any:
    grown = np.zeros(room, array.dtype)
    grown[: len(array)] = array
    return grown


def _as_numbers(scores: npt.ArrayLike) -> FloatArray:
    try:
        return np.asarray(scores, np.float64)
    except (TypeError, ValueError) as problem:
        raise InputError(f"scores are not numbers: {problem}; a score is a finite number") from None


def _as_classes(name: str, values: npt.NDArray[Any]) -> TextColumn:
    """Return classes as text; a missing one is refused, since it would pass for a class of its own."""
    classes = values.tolist()
    for index, value in enumerate(classes):
        if value is None or value != value:  # NaN alone differs from itself
            raise InputError(f"{name}[{index}] is {value}: every event needs a class; leave the event out")
    return TextColumn.of([class_text(value) for value in classes])


def _as_binary(labels: npt.NDArray[Any]) -> Int8Array:
    """Return 1/0 labels from 1/0, 1/-1 or booleans."""
    try:
        numbers = labels.astype(np.float64)
    except (TypeError, ValueError):
        numbers = np.full(len(labels), np.nan)
    bad = np.flatnonzero(~np.isin(numbers, (0.0, 1.0, -1.0)))
    if len(bad):
        raise InputError(
            f"labels[{bad[0]}] is {labels[bad[0]]!r}: a label is 1, 0, -1, True or False; name the positive "
            "class with positive= where labels are classes"
        )
    return np.asarray(numbers == 1.0, np.int8)


def _as_times(times: npt.ArrayLike) -> Int64Array:
    """Return microseconds from datetime64 or whole microseconds."""
    array = np.atleast_1d(np.asarray(times))
    if array.dtype.kind == "M":
        if np.isnat(array).any():
            raise InputError("times hold NaT; leave events without a time out")
        return array.astype("datetime64[us]").astype(np.int64)
    if array.dtype.kind not in "iu" and len(array):
        raise InputError(
            f"times are of type {array.dtype}: give datetime64, or whole microseconds since 1970 UTC"
        )
    return array.astype(np.int64)
