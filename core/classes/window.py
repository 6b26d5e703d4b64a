"""ClassWindow: makes the figures of rows from the events of one model with a score of each class.

`Course` (evaluator/eviction.py) plans which events the window holds and when a row is due, as for the rows of
each class. A fading event weighs 2^(-a / T), where a is its age and T the half-life. It is dropped when it
weighs less than 2^-64 of the heaviest event of its class.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from ..arrays import NO_INT8, NO_INT64, FloatArray, Int64Array
from ..encoding.fields import Reader
from ..evaluator.eviction import (
    CHANGED,
    GREATEST,
    NEXT_ROW,
    REMAINING,
    TIME_HEAD,
    WINDOW_FIELDS,
    Course,
    WindowRule,
)
from ..evaluator.state import Remains
from ..events.times import NO_TIME
from ..measures.decisions import HELD, SEQ
from ..measures.event_buffer import EventBuffer, entering
from ..rows.class_columns import ClassMeans
from .class_settings import ClassSettings
from .current import CurrentPairs, keeps_orders
from .events import ClassEvents
from .figures import ClassFigures, figures_of_labels, figures_of_window
from .means import MeansOfLines, means_of, means_of_rows

_COUNTERS = [SEQ, NEXT_ROW, GREATEST, *WINDOW_FIELDS]
_STATE = struct.Struct(f"<{len(_COUNTERS)}qq??")


class ClassWindow:
    """The window of one model; see the module."""

    def __init__(self, settings: ClassSettings) -> None:
        self._settings = settings
        window, every = settings.evaluator.window, settings.evaluator.every
        self._half_life, self._by_time = window.ticks, window.by_time
        self._course = Course(
            WindowRule(*window.rule, every.events, every.micros), window.size, keeps_times=not window.ticks
        )
        classes = len(settings.classes)
        labels = np.empty((0, classes), np.bool_) if settings.multi_label else NO_INT64
        ticks = NO_INT64 if window.ticks else None
        none = ClassEvents(labels, np.empty((0, classes)), None, ticks)
        self._buffer = EventBuffer(none, window.ticks)
        self._current = CurrentPairs(classes, self._buffer) if keeps_orders(settings) else None

    def __len__(self) -> int:
        return len(self._buffer)

    def apply(
        self,
        events: ClassEvents,
        times: Int64Array | None,
        clock: int = NO_TIME,
        given: Int64Array = NO_INT64,
    ) -> Sequence[ClassMeans]:
        """Apply events, or advance time to `clock`; return the means of the rows that fall due.

        given  for adaptive windows: see `plan_steps`

        If classes have rows, the means of each class follow those of the model.
        """
        counters = self._course.counters
        due: list[ClassMeans] = []
        lines: list[FloatArray] = []
        if events.weights is not None:
            self._current = None
        for plan in self._course.plan(events.size, times, given, NO_INT8, clock):
            steps = plan.steps
            part = events.part(slice(plan.start, plan.start + plan.events))
            if self._half_life:
                ticks = int(counters[SEQ]) + 1 + np.arange(plan.events)
                if self._by_time and times is not None:
                    ticks = times[plan.start : plan.start + plan.events]
                part = part._replace(ticks=ticks)
            if self._current is not None:
                lines.append(self._current.follow(entering(part, steps, plan.start), steps))
            else:
                for _ in self._buffer.follow_to_rows(part, steps, plan.start):
                    due += self._means_of_rows()
            counters[SEQ] += plan.events
            counters[HELD] = len(self)
        return MeansOfLines(self._settings, np.concatenate(lines)) if lines else due

    def advance_to(self, clock: int) -> Sequence[ClassMeans]:
        """Advance time to `clock`, microseconds UTC; return the means of the rows that fall due."""
        if not self._course.rule.grid or not self._course.counters[SEQ]:
            return []
        return self.apply(self._buffer.events().part(slice(0)), None, clock)

    def finish(self) -> Sequence[ClassMeans]:
        """Make the last row due now; return its means, as `apply` does."""
        self._course.counters[NEXT_ROW] += 1
        self._course.counters[CHANGED] = 0
        return self._means_of_rows()

    def _means_of_rows(self) -> list[ClassMeans]:
        return means_of_rows(self._settings, self.figures(), self.counts())

    def means(self) -> ClassMeans:
        """Return the means of the window now."""
        return means_of(self._settings, self.figures(), self.counts())

    def figures(self) -> ClassFigures | None:
        """Return the figures of the window now; None if fewer than two classes have events."""
        events = self._buffer.events()
        ages: FloatArray | None = None
        if events.ticks is not None and events.size:
            ages = (events.ticks.max() - events.ticks) / self._half_life
        if self._settings.multi_label:
            return figures_of_labels(events.labels.astype(np.bool_), events.scores, events.weights, ages)
        return figures_of_window(events.labels.astype(np.int64), events.scores, events.weights, ages)

    def counts(self) -> Int64Array:
        """Return how many events the window holds of each class."""
        labels = self._buffer.events().labels
        if self._settings.multi_label:
            return np.asarray(np.count_nonzero(labels, axis=0))
        return np.bincount(labels, minlength=len(self._settings.classes))

    # ---- state

    def go_on(self, remains: Remains) -> None:
        """Continue the rows of a window that was dropped, from its `remains`; this window stays empty."""
        self._course.counters[REMAINING] = remains[2:]

    @property
    def snapshot_bytes(self) -> int:
        """About how many bytes `pack` gives."""
        events = self._buffer.events()
        beside = sum(column is not None for column in (events.weights, events.ticks)) + self._course.is_timed
        return _STATE.size + len(self) * (8 * int(events.scores.shape[1]) + 4 + 8 * beside)

    def pack(self) -> list[bytes]:
        """Return the wire form, little-endian.

        `_STATE`; the labels (i4; one byte for each class if events have several labels) and scores (f8) of
        the events held, then their weights (f8), ticks and times (i8), each only if events have them.
        """
        events, times = self._buffer.events(), self._course.times()
        head = _STATE.pack(
            *self._course.counters[_COUNTERS].tolist(),
            events.size,
            events.weights is not None,
            len(times) > 0,
        )
        labels = events.labels.astype("i1" if self._settings.multi_label else "<i4")
        columns = [labels, events.scores.astype("<f8")]
        if events.weights is not None:
            columns.append(events.weights.astype("<f8"))
        if events.ticks is not None:
            columns.append(events.ticks.astype("<i8"))
        return [head, *(column.tobytes() for column in columns), times.astype("<i8").tobytes()]

    def keep_newest(self, held: int) -> None:
        """Drop the oldest events, until the window holds `held` events."""
        times, gone = self._course.times(), len(self) - held
        self._buffer.drop(gone)
        self._course.counters[HELD] = held
        if len(times):
            self._course.counters[TIME_HEAD] = 0
            self._course.load(times[gone:])
        if self._current is not None:
            self._current = CurrentPairs(len(self._settings.classes), self._buffer)

    def read(self, reader: Reader) -> None:
        """Load the wire form into a window without events.

        Raises ValueError or struct.error for bytes that `pack` cannot have written.
        """
        *counters, held, has_weights, has_times = reader.numbers(_STATE.format)
        classes, labels = len(self._settings.classes), None
        if self._settings.multi_label:
            labels = reader.array("i1", held * classes).reshape(held, classes) == 1
        else:
            labels = reader.array("<i4", held).astype(np.int64)
            if held and not 0 <= labels.min() <= labels.max() < classes:
                raise ValueError(f"an event of class {labels.max()} of {classes}")
        scores = reader.array("<f8", held * classes).reshape(held, classes)
        weights = reader.array("<f8", held) if has_weights else None
        ticks = reader.array("<i8", held) if self._half_life else None
        times = reader.array("<i8", held) if has_times else NO_INT64
        if not np.isfinite(scores).all() or min(counters[:2]) < 0 or held > counters[0]:
            raise ValueError(f"{held} of {counters[0]} events are held, or a score is not finite")
        if weights is not None and not ((weights > 0) & np.isfinite(weights)).all():
            raise ValueError("a weight is not a finite number above 0")
        self._course.counters[_COUNTERS] = counters
        self._course.counters[HELD] = held
        self._buffer.add(ClassEvents(labels, scores, weights, ticks))
        if weights is not None:
            self._current = None
        elif self._current is not None:
            self._current = CurrentPairs(classes, self._buffer)
        if has_times:
            self._course.load(times)
