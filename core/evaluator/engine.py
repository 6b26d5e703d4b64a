"""WindowEngine: applies events to the window of one model, makes its rows, and gives its state.

The engine joins the course of the window (measures/steps.py), the classes met, the window itself, and the
signal of an adaptive window. `ModelEvaluator` is the public class around the engine.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..arrays import NO_FLOATS, NO_INT8, NO_INT64, BoolArray, FloatArray, Int8Array, Int64Array
from ..encoding.fields import packed_text
from ..errors import InputError
from ..events.inputs import GivenEvents
from ..events.times import END_OF_TIME, NO_TIME, check_times
from ..measures.decisions import CLASSES, HELD, LAST_LABEL, LAST_SEEN, SEQ
from ..rows import slots
from ..rows.columns import INTEGER_COLUMNS
from ..rows.measure_table import MEASURES
from ..rows.reasons import NO_POSITIVE_CLASS, NOT_ASKED
from ..rows.rows import Rows
from ..settings.evaluator import EvaluatorSettings
from ..settings.windows import Adaptive
from .adaptive_signal import AdaptiveSignal
from .adwin import Adwin
from .event_columns import Classes, Columns
from .eviction import (
    CHANGED,
    CLOCK,
    DRIFTED,
    GREATEST,
    NEXT_ROW,
    REMAINING,
    WINDOW_FIELDS,
    Course,
    Plan,
    WindowRule,
)
from .evidence_columns import EvidenceColumns
from .negatives import told_apart
from .state import EvaluatorState, Remains, evaluator_bytes
from .unit_window import UnitWindow, tree_sizes

if TYPE_CHECKING:
    from .weighted.window import WeightedWindow

_ROW, _SEQ, _EVENTS, _TIME, _, _PANE_START, _PANE_END, _START, _END = range(len(INTEGER_COLUMNS))


class Fixed(NamedTuple):
    """The values that follow from settings alone, which all models of the same settings share.

    no_rows       an empty table of rows
    not_asked     bool of each measure: True if the settings do not ask for the measure
    bases         the slots of the measures that are asked for with values of their own
    tree_sizes    see `unit_window.tree_sizes`
    needs_times   name of the setting that needs the time of every event; None: no setting does
    """

    no_rows: Rows
    not_asked: BoolArray
    bases: tuple[int, ...]
    tree_sizes: range
    rule: WindowRule
    needs_times: str | None

    def check_times(self, times: Int64Array | None) -> None:
        """Raise InputError if a window or grid by time needs the time of an event without a usable time."""
        if self.needs_times is not None:
            check_times(times, self.needs_times, "event")

    def complete(self, rows: Rows, pane: tuple[int, int] | None) -> None:
        """Write the pane into rows; make the measures null that the settings do not ask for."""
        if pane is not None:
            rows.integers[:, [_PANE_START, _PANE_END]] = pane
        if self.bases:
            unranked = rows.reasons[:, self.bases] == NO_POSITIVE_CLASS
            rows.reasons[:, len(MEASURES) :][unranked] = NO_POSITIVE_CLASS
        rows.numbers[:, slots.MEASURES :][:, self.not_asked] = np.nan
        rows.reasons[:, self.not_asked] = NOT_ASKED


@functools.lru_cache(maxsize=64)
def of_settings(settings: EvaluatorSettings) -> Fixed:
    """Return the values that follow from `settings`; cached, so that models of equal settings share them."""
    bases = tuple(MEASURES.index(each.measure) for each in settings.with_values)
    return Fixed(
        Rows.blank(0, (), settings.config_hash(), tuple(each.column for each in settings.with_values)),
        np.array([name not in (settings.measures or ()) for name in MEASURES] + [False] * len(bases)),
        bases,
        tree_sizes(settings),
        WindowRule(*settings.window.rule, settings.every.events, settings.every.micros),
        settings.needs_times,
    )


class WindowEngine:
    """The window of one model, which events enter and leave.

    fixed         the values that follow from its settings.
    counters      the counters of measures/decisions.py and measures/steps.py.
    reported_seq  how many events were applied when the last row was made.
    is_whole      False after an interrupted update: then ranking and decisions may hold different events.
    """

    def __init__(
        self,
        settings: EvaluatorSettings,
        model: str,
        slice: str,  # noqa: A002
        pane: tuple[int, int] | None,
    ) -> None:
        self.fixed = fixed = of_settings(settings)
        self.reported_seq = 0
        self.is_whole = True
        self._settings = settings
        self._names = model, slice
        self._name_bytes = len(packed_text(model)) + len(packed_text(slice)) - 8
        self._pane = pane
        window = settings.window
        self._fades = window.ticks > 0
        self.evidence = None if settings.evidence_below is None else EvidenceColumns(settings)
        self.signal = AdaptiveSignal(window) if isinstance(window, Adaptive) else None
        self._course = Course(fixed.rule, window.size, keeps_times=not self._fades)
        self.counters = self._course.counters
        self.classes = Classes(settings, self.counters)
        self.window: UnitWindow | WeightedWindow = UnitWindow(
            settings, self.counters, self.classes, fixed.tree_sizes
        )

    # ---- events and time

    def apply(self, events: GivenEvents) -> Rows:
        """Apply events, with or without class names as `classes.settle` has set them.

        Return the rows that fall due.

        Before, the caller must check the events' times by `check_times`. Afterwards, the caller sets
        `is_whole` once all events of an update are applied.
        """
        columns = self.begin(events)
        if self.signal is None:
            return self.reported(self.follow(columns))
        return self.reported(self.signal.follow(self.window, columns, self.follow))

    def begin(self, events: GivenEvents) -> Columns:
        """Return events, checked as for `apply`, in columns for `follow`; `reported` must end the update."""
        if self.evidence is not None and events.weights is not None:
            raise InputError(
                f"events of {self._names[0]!r} have weights, and nothing is proven about the evidence of "
                "weighted events; leave the weights out, or evidence_below= (--evidence-below)"
            )
        has_weights = self._fades or events.weights is not None or self.window.has_weights
        columns = self.classes.columns(events, has_weights)
        self.is_whole = False
        if has_weights and not self.window.has_weights:
            self._begin_weighted()
        if self.evidence is not None and self.classes.is_ranked:
            self.evidence.follow(columns.labels, columns.scores, columns.times, int(self.counters[SEQ]))
        return columns

    def _begin_weighted(self) -> None:
        """Replace the unit window by a weighted window of the same events, each of weight 1."""
        weighted = self._weighted()
        if len(self.window):
            weighted.load(self.window.held())
        self.window = weighted

    def _weighted(self) -> WeightedWindow:
        """Return an empty weighted window.

        The method imports the modules of weighted windows, since most jobs need none of them.
        """
        from .weighted.window import WeightedWindow

        return WeightedWindow(self._settings, self.counters, self.classes)

    def reported(self, parts: list[Rows]) -> Rows:
        """Join parts of rows into one, and set `reported_seq` to the event of the last row."""
        rows = Rows.concat(parts) if len(parts) > 1 else parts[0] if parts else self.fixed.no_rows
        if len(rows):
            self.reported_seq = int(rows.integers[-1, _SEQ])
        self._write_evidence(rows)
        return rows

    def _write_evidence(self, rows: Rows) -> None:
        """Write the evidence into the rows of an update, which must be all rows of the update.

        The rows of the next update read the latest block.
        """
        if self.evidence is None:
            return
        if len(rows) and self.classes.is_ranked:
            self.evidence.write(rows)
        self.evidence.settle()

    def follow(
        self,
        columns: Columns,
        given: Int64Array = NO_INT64,
        fed: Int8Array = NO_INT8,
        placements: FloatArray = NO_FLOATS,
        clock: int = NO_TIME,
    ) -> list[Rows]:
        """Apply events, or else advance the time to `clock`; return the rows that fall due.

        given, fed  only for adaptive windows, as in `plan_steps`: for each event the most events that the
                    window then holds, and 1 if ADWIN received the event's value
        placements  only for weighted windows: if not empty, filled with the events' placement values
        """
        parts = []
        events = len(columns.scores) if clock == NO_TIME else 0
        for plan in self._course.plan(events, columns.times, given, fed, clock):
            if not len(plan.integers):
                self._take(columns, plan, self.fixed.no_rows, placements)
                continue
            rows = self._blank(len(plan.integers))
            rows.integers[:] = plan.integers
            self._take(columns, plan, rows, placements)
            self._complete(rows, plan.drift)
            parts.append(rows)
        return parts

    def _take(self, columns: Columns, plan: Plan, rows: Rows, placements: FloatArray) -> None:
        """Apply the steps of a plan to the window; fill in the rows."""
        steps, start, end = plan.steps, plan.start, plan.start + plan.events
        if plan.events == len(steps.flags):
            self.window.follow(columns.part(start, end), steps, rows, placements[start:end])
            return
        # at steps without an event this value is left as it is, and nothing reads it
        placed = np.empty(len(steps.flags) if len(placements) else 0)
        self.window.follow(columns.take(np.maximum(steps.events, 0)), steps, rows, placed)
        if len(placements):
            placements[start:end] = placed[steps.events >= 0]

    def advance_to(self, clock: int) -> Rows:
        """Advance the time to `clock`, microseconds UTC.

        Return the rows of the grid points before `clock`.
        """
        if not self.fixed.rule.grid or not self.counters[SEQ]:
            return self.fixed.no_rows
        return self.reported(self.follow(self.classes.no_event(), clock=clock))

    @property
    def next_due(self) -> int:
        """The grid point at which the next row is due if no event comes.

        END_OF_TIME if there is no such point.
        """
        if not self.fixed.rule.grid or not self.counters[SEQ]:
            return END_OF_TIME
        due = self._course.next_due
        return END_OF_TIME if due == NO_TIME else due

    # ---- rows

    def row_now(self) -> Rows:
        """Return a row with the measures of the present window."""
        rows, counters = self._blank(1), self.counters
        self.window.write_row(rows.numbers[0], rows.reasons[0])
        integers = rows.integers[0]
        integers[[_ROW, _SEQ, _EVENTS, _TIME]] = counters[[NEXT_ROW, SEQ, HELD, GREATEST]]
        times = self._times_held()
        if times is not None:
            integers[[_START, _END]] = times[[0, -1]]
        self._complete(rows, counters[DRIFTED])
        self._write_evidence(rows)
        return rows

    def last_row(self) -> Rows:
        """Return a row with the measures of the present window, and the next row number."""
        rows = self.row_now()
        self.reported_seq = int(self.counters[SEQ])
        self.counters[NEXT_ROW] += 1
        self.counters[[CHANGED, DRIFTED]] = 0
        return rows

    def _blank(self, rows: int) -> Rows:
        none = self.fixed.no_rows
        return Rows.blank(rows, (self._names,), none.config, none.columns)

    def _complete(self, rows: Rows, drift: Any) -> None:
        """Write pane and drift into rows; make the measures null that the settings do not ask for."""
        if self.signal is not None:
            rows.drift[:] = drift
        self.fixed.complete(rows, self._pane)

    def _times_held(self) -> Int64Array | None:
        """Return the times of the events that the window holds, oldest first.

        None if the events have no times.
        """
        times = self.window.held().times if self.window.is_timed else self._course.times()
        return times if times is not None and len(times) else None

    # ---- state

    @property
    def _course_fields(self) -> list[int]:
        """Return the counters of the course that are a part of the state."""
        return list(WINDOW_FIELDS) if self.fixed.rule.grid or self.signal is not None else []

    def state(self) -> EvaluatorState:
        """Return everything that later rows depend on.

        Sorted scores are left out: a loaded engine sorts the scores again.
        """
        counters, classes, held = self.counters, self.classes, self.window.held()
        model, slice_ = self._names
        return EvaluatorState(
            **{**vars(held), "times": self._times_held()}, model=model, slice=slice_, pane=self._pane,
            multiclass=bool(classes.is_multiclass), class_names=classes.names,
            last_seen=classes.counts[LAST_SEEN, : counters[CLASSES]].copy(),
            last_label=int(counters[LAST_LABEL]), seq=int(counters[SEQ]), next_row=int(counters[NEXT_ROW]),
            reported_seq=self.reported_seq, greatest_time=int(counters[GREATEST]),
            course=tuple(counters[self._course_fields].tolist()) or None,
            signal=b"" if self.signal is None else self.signal.adwin.to_bytes(),
            evidence=b"" if self.evidence is None else self.evidence.detector.to_bytes(),
        )  # fmt: skip

    def load(self, state: EvaluatorState) -> None:
        """Load a state that has events. O(events in the window)."""
        counters = self.counters
        self.classes.load(state)
        counters[[SEQ, HELD, NEXT_ROW]] = state.seq, len(state.scores), state.next_row
        counters[[GREATEST, CLOCK]] = state.greatest_time
        if state.course is not None:
            counters[list(WINDOW_FIELDS)] = state.course
        if self.signal is not None:
            self.signal.adwin = Adwin.from_bytes(state.signal)
        if bool(state.evidence) > (self.evidence is not None):
            raise ValueError("it has evidence that its settings do not ask for")
        if self.evidence is not None and state.evidence:
            self.evidence.load(state.evidence, state.seq)
        self.reported_seq = state.reported_seq
        if state.times is not None:
            self._course.load(state.times)
        if state.weights is not None:
            self.window = self._weighted()
        self.window.load(state)

    def told_apart(self) -> WindowEngine:
        """Return an engine with the same events, in which -1 and 0 are two classes.

        In this engine they are one class.
        """
        engine = WindowEngine(self._settings, *self._names, self._pane)
        engine.load(told_apart(self.state()))
        return engine

    def remains(self) -> Remains:
        """Return the counters that remain when the evaluator is dropped; from these its rows can continue."""
        return Remains(*self._names, *self.counters[REMAINING].tolist())

    def go_on(self, remains: Remains) -> None:
        """Continue the rows of an evaluator that was dropped; the window stays empty."""
        self.counters[REMAINING] = remains[2:]
        self.reported_seq = remains.seq

    def snapshot_bytes(self) -> int:
        """Return the number of bytes that `state` takes in a snapshot. O(1)."""
        classes, window = self.classes, self.window
        return evaluator_bytes(
            len(window), self._name_bytes + classes.name_bytes, len(classes.names),
            bool(classes.is_multiclass), self._course.is_timed or window.is_timed, bool(self._course_fields),
            0 if self.signal is None else self.signal.adwin.snapshot_bytes(), window.has_weights,
            0 if self.evidence is None else self.evidence.detector.snapshot_bytes(),
        )  # fmt: skip

    def live_bytes(self) -> int:
        """Estimate the memory of the events in the window, in bytes."""
        evidence = 0 if self.evidence is None else self.evidence.detector.live_bytes()
        return self._course.nbytes + self.window.live_bytes() + evidence
