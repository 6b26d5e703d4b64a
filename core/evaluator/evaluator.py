"""ModelEvaluator: exact measures of one window of a model. It is the interface for notebooks.

Parts
    A `WindowEngine` (engine.py) applies events to the window and makes rows. The window is a `UnitWindow`
    (unit_window.py), whose events count 1 each. From the first event with a weight on, it is a
    `WeightedWindow` (weighted/window.py).

Invariants
    A row is a pure function of the events applied and the settings. It does not depend on how the events were
    cut into calls of `update`, nor on snapshots between calls. No wall clock, no randomness, no Beam.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from html import escape
from typing import Literal, NoReturn, Unpack

import numpy as np
import numpy.typing as npt

from ..arrays import NO_INT64, FloatArray, Int8Array, Int64Array
from ..encoding.json import reading
from ..errors import InputError, RocsteadyError
from ..events.class_doubts import ClassDoubt, doubt_classes, doubt_classes_at_end
from ..events.columns import TextColumn
from ..events.inputs import GivenEvents, TimesReader, as_event_scores, given_events
from ..events.times import NO_TIME
from ..measures.decisions import SEQ
from ..measures.steps import ENTERS, Steps
from ..process.console import name_text
from ..rows.curves import RocCurve, WindowCurve
from ..rows.display import HEADLINES, figures, reasons_of
from ..rows.records import Measures, record_html
from ..rows.rows import Rows
from ..settings.choices import SettingsChoices, settings_with
from ..settings.evaluator import CURVES_AT_END, POINTS_THINNED, CurvePoints, EvaluatorSettings, checked_points
from .engine import WindowEngine
from .eviction import GREATEST
from .ranking import TreeRanking
from .snapshot import Snapshot
from .state import EvaluatorState, Remains
from .unit_window import tree_sizes

_CHEAP_EVENTS = 1_000_000
"""The most events of a window that a repr measures: the sort of more would delay the console noticeably."""


class ModelEvaluator:
    """Evaluate one model over a window of its events.

    settings  the settings; None for the defaults
    model     the name in the column `model` of its rows
    slice     the name in the column `slice` of its rows
    pane      the start and the end of a Beam window, in microseconds UTC, for the rows; None: no window
    choices   fields of `EvaluatorSettings` by keyword; they replace the values of `settings`. The values may
              be texts of the command: window="last:7d", every="1h", cost="severity", measures="auc,h"

    Raises ConfigError for an invalid setting.

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
        **choices: Unpack[SettingsChoices],
    ) -> None:
        settings = settings_with(choices, settings, EvaluatorSettings)
        self.settings = settings
        self.model = model
        self.slice = slice
        self.pane = pane
        self._engine = WindowEngine(settings, model, slice, pane)
        self._times = TimesReader()
        self._doubt: ClassDoubt | None = None

    def __repr__(self) -> str:
        names = [repr(name) for name in (self.model, self.slice) if name]
        said, measures = self._said()
        parts = [f"<ModelEvaluator{' of ' + ', '.join(names) if names else ''}: {said}"]
        if measures is not None:
            parts += [f"{name} {text}" for name, text in figures(measures, HEADLINES)]
            parts += filter(None, [reasons_of(HEADLINES, measures.reason)])
        return "; ".join(parts) + ">"

    def _repr_html_(self) -> str:
        name = escape(", ".join(name_text(part) for part in (self.model, self.slice) if part))
        said, measures = self._said()
        table = "" if measures is None else record_html(measures)
        return (
            f"<div><p><b>ModelEvaluator{' of ' + name if name else ''}</b>: {escape(said)}</p>{table}</div>"
        )

    def _said(self) -> tuple[str, Measures | None]:
        """Return the progress in words, and the measures; None for these if they would take long."""
        said = f"{self.settings.window}, {len(self):,} events held of {self.seq:,}"
        if not len(self) or len(self) > _CHEAP_EVENTS:
            return said, None
        try:
            return said, self.measures()
        except RocsteadyError:
            return f"{said}; an update was interrupted: go on from a snapshot", None

    def __len__(self) -> int:
        """Return how many events the window holds."""
        return len(self._engine.window)

    @property
    def seq(self) -> int:
        """The number of events that were applied so far."""
        return int(self._engine.counters[SEQ])

    # ---- events

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
        """Apply events in the order given; return the rows that fell due, with their curves.

        labels     n labels: 1/0, 1/-1 or booleans; with `predicted`, or with `positive` in the settings,
                   classes of any kind
        scores     n finite numbers that a float64 holds, higher for more likely positive
        times      n times: numbers since 1970 UTC in `time_unit`, datetime64, datetimes (no zone = UTC),
                   dates, timestamps of pandas or Beam, or texts in RFC 3339
        time_unit  "s", "ms", "us" or "ns": the unit of times that are numbers; other times ignore it
        weights    n finite numbers above 0, the weight of each event; all are 1 by default
        predicted  n predicted classes; then the kappa family is multi-class

        Raises InputError, and applies nothing, if a value cannot be used. Warns once if times look like
        numbers in another unit (`TimeUnitWarning`), or if few classes are common (`ClassesWarning`).
        """
        score_array = as_event_scores(scores, self.settings.probabilities)
        time_array = None if times is None else self._times.read(times, time_unit)
        positive = self.settings.positive
        events = given_events(score_array, labels, time_array, weights, predicted, positive)
        rows = self.apply(*events)
        self._doubt = doubt_classes(self._doubt, events, positive)
        return rows

    def apply(
        self,
        scores: FloatArray,
        labels: Int8Array,
        times: Int64Array | None = None,
        label_classes: TextColumn | None = None,
        predicted: TextColumn | None = None,
        weights: FloatArray | None = None,
    ) -> Rows:
        """Apply columns that were validated before (see `EventBatch`); return the rows, as `update` does."""
        engine = self._engine
        if not len(scores):
            return engine.fixed.no_rows
        if label_classes is not None and self.settings.positive is None:
            if self.settings.curves is not None:
                self._refuse_without_positive()
            if engine.signal is not None and engine.signal.name == "placement":
                raise InputError(
                    f"the labels of {self.model!r} are classes and none of them is named as positive, so "
                    "that nothing is placed; name it with positive=, or take Adaptive(signal='error')"
                )
        events = GivenEvents(scores, labels, times, label_classes, predicted, weights)
        self.prepare(events)
        end = engine.classes.first_apart(events)
        if end == len(scores):
            return self._apply(events)
        rows = [self._apply(events.part(slice(end)))] if end else []
        self._engine = self._engine.told_apart()
        return Rows.concat([*rows, self._apply(events.part(slice(end, None)))])

    def _apply(self, events: GivenEvents) -> Rows:
        """Apply events that are prepared; return the rows."""
        engine, stride = self._engine, self.settings.curve_stride
        if stride and self.seq % stride + len(events.scores) >= stride:
            rows = self._apply_up_to_curves(events)
        else:
            rows = engine.apply(events)
        engine.is_whole = True
        return rows

    def prepare(self, events: GivenEvents) -> WindowEngine:
        """Check events before they are applied; return the engine that applies them.

        Raises InputError if an earlier update was interrupted, or if the events do not fit earlier events.
        """
        self._refuse_broken()
        self._engine.fixed.check_times(events.times)  # all events: curves apply them part by part
        self._engine.classes.settle(events.label_classes is not None)
        return self._engine

    def _apply_up_to_curves(self, events: GivenEvents) -> Rows:
        """Apply events in parts, each ending with an event at which a curve is due."""
        parts, start, stride = [], 0, self.settings.curve_stride
        while start < len(events.scores):
            piece = slice(start, start + stride - self.seq % stride)
            part = self._engine.apply(events.part(piece))
            if self.seq % stride == 0:
                part = part.with_curves((self.curve_due(),))
            parts.append(part)
            start = piece.stop
        return Rows.concat(parts)

    def _refuse_broken(self) -> None:
        """Raise InputError if an earlier update was interrupted between the ranking and the decisions."""
        if not self._engine.is_whole:
            raise InputError(
                f"the window of {self.model!r} is not whole, since an update was interrupted; go on from a "
                "snapshot"
            )

    def _refuse_without_positive(self) -> NoReturn:
        raise InputError(
            f"the labels of {self.model!r} are classes and none of them is named as positive, so that it has "
            "no ROC curve; name the positive class with positive=, or leave curves out"
        )

    # ---- time

    def advance(
        self, clock: float | date | np.datetime64, *, time_unit: Literal["s", "ms", "us", "ns"] = "s"
    ) -> Rows:
        """Advance the time to `clock`; return the rows of the grid points before it.

        clock      a time, as `update` takes times
        time_unit  the unit of `clock`, if `clock` is a number

        Only rows on a grid of times depend on `clock`; if rows come after events, `advance` does nothing.
        """
        moments = self._times.read(np.array([clock]), time_unit)
        return self.advance_to(int(moments[0]))

    def advance_to(self, clock: int) -> Rows:
        """Advance time to `clock`, microseconds UTC; return the rows, as `advance` does."""
        self._refuse_broken()
        return self._engine.advance_to(clock)

    @property
    def next_due(self) -> int:
        """The grid point at which the next row is due if no event comes; END_OF_TIME: there is none."""
        return self._engine.next_due

    def finish(self) -> Rows:
        """Return the last row and the last curve, unless the last event applied has made them already.

        A second call without events in between returns no row. It returns the curve again if the last event
        made the last row, since the state does not record that a curve was returned.
        """
        self._refuse_broken()
        doubt_classes_at_end(self._doubt)
        engine, seq = self._engine, self.seq
        fixed, rows = engine.fixed, engine.fixed.no_rows
        draws = self.settings.curves is not None
        if draws and not engine.classes.is_ranked:
            self._refuse_without_positive()
        is_reported = engine.reported_seq == seq
        was_finished = is_reported and not (fixed.rule.every and seq % fixed.rule.every == 0)
        if not is_reported:
            rows = engine.last_row()
        stride = self.settings.curve_stride
        if draws and seq and not was_finished and (not stride or seq % stride):
            return rows.with_curves((self.curve_due(),))
        return rows

    def remains(self) -> Remains:
        """Return the counters that remain when the evaluator is dropped after `finish`."""
        return self._engine.remains()

    @classmethod
    def returning(
        cls, settings: EvaluatorSettings, remains: Remains, pane: tuple[int, int] | None = None
    ) -> ModelEvaluator:
        """Return an evaluator with an empty window, whose rows continue those of a dropped evaluator.

        remains  the counters that `remains()` of the dropped evaluator gave
        """
        self = cls(settings, model=remains.model, slice=remains.slice, pane=pane)
        self.go_on(remains)
        return self

    def go_on(self, remains: Remains) -> None:
        """Continue the rows of a dropped evaluator; this evaluator has no events yet."""
        self._engine.go_on(remains)

    # ---- the measures and the curve of the present window

    def measures(self) -> Measures:
        """Return the measures of the present window."""
        self._refuse_broken()
        return self._engine.row_now().measures(0)

    def curve(self, points: CurvePoints = POINTS_THINNED) -> RocCurve:
        """Return the ROC curve of the present window, with its hull and its calibration.

        points  "thinned" leaves out a point within 1/200 of the point before, in both rates, so that the area
                differs from the AUC by up to 1/200. "all" has a point for each score; the area is the AUC

        The cost is O(k), and the time to sort the events since the last row. Raises InputError if labels are
        classes and the settings name no positive class, ConfigError for other `points`.
        """
        self._refuse_broken()
        if not self._engine.classes.is_ranked:
            self._refuse_without_positive()
        return self._engine.window.curve(checked_points("points", points))

    def curve_due(self) -> WindowCurve:
        """Return the curve of the present window as a record."""
        engine = self._engine
        greatest = int(engine.counters[GREATEST])
        time = None if greatest == NO_TIME else greatest
        config, curve = engine.fixed.no_rows.config, engine.window.curve(self.settings.curves_points)
        return WindowCurve(self.model, self.slice, self.pane, self.seq, time, config, curve)

    # ---- state

    def state(self) -> EvaluatorState:
        """Return everything that later rows depend on. Sorted scores are left out: loading sorts again."""
        self._refuse_broken()
        return self._engine.state()

    @classmethod
    def from_state(cls, settings: EvaluatorSettings, state: EvaluatorState) -> ModelEvaluator:
        """Return an evaluator with a state: its later rows are those of the state's evaluator. O(events).

        Raises CorruptBytesError if no evaluator can have the numbers of the state.
        """
        with reading(f"{state.model!r} in a snapshot"):
            self = cls(settings, model=state.model, slice=state.slice, pane=state.pane)
            if state.seq:
                self._engine.load(state)
            return self

    def to_bytes(self) -> bytes:
        """Return a snapshot of this model: `from_bytes` reads it. O(events in the window)."""
        return Snapshot.of_evaluator(self.settings, self.state()).pack()

    @classmethod
    def from_bytes(cls, data: bytes, settings: EvaluatorSettings | None = None) -> ModelEvaluator:
        """Read a snapshot of one model, `data`, which `to_bytes` gave.

        A snapshot does not contain `curves=`: give settings to get curves again. Raises
        OtherConfigurationError if `settings` are given and differ from those of the snapshot, and a
        `WireError` if the bytes are damaged or no snapshot.
        """
        return cls.from_state(*Snapshot.unpack(data).one_evaluator(settings))

    def snapshot_bytes(self) -> int:
        """Return the bytes that this evaluator takes in a snapshot. O(1)."""
        return self._engine.snapshot_bytes()

    def live_bytes(self) -> int:
        """Estimate the evaluator's memory in bytes."""
        return 1500 + self._engine.live_bytes()


@functools.cache
def warm_up(settings: EvaluatorSettings, *, largest_first: bool = False) -> None:
    """Compile the kernels that an evaluator with these settings needs. Only a process's first call does work.

    largest_first  whether to begin with the largest kernels: another process begins with the other kernels

    Takes seconds the first time on a machine, then a fraction of a second to load them from the cache folder
    (kernels/compile.py).
    """
    curves = None if settings.curves is None else CURVES_AT_END
    ev = ModelEvaluator(replace(settings, positive=None, curves=curves))
    sizes = tree_sizes(settings)
    events = 2 + (sizes.start if sizes else 0)
    labels, scores = np.arange(events, dtype=np.int8) % 2, np.linspace(0.0, 1.0, events)
    if largest_first and events > 2:
        one = Steps(np.zeros(1, np.int64), np.full(1, ENTERS, np.int8), np.zeros(1, np.int64), NO_INT64)
        none = Rows.empty("")
        TreeRanking(settings, labels[:0], scores[:0]).follow(
            labels[:1], scores[:1], one, none.numbers, none.reasons
        )
    for start in (0, events):  # the first half makes a tree; the second half slides the tree
        times = np.arange(start, start + events)
        ev.apply(scores, labels, times if settings.needs_times else None)
        ev = ModelEvaluator.from_bytes(ev.to_bytes(), ev.settings)
    ev.finish()
