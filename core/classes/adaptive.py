"""The signal of an adaptive window of a model with a score of each class.

One signal decides how many events all windows of the model hold: the signal of the model, computed from the
scores of all classes.

placement  The placement value of the event in the window before the event: its score of its own class, among
           the scores of this class of all events of other classes. The mean placement over the events of a
           class is the AUC of the class. An event is placed if its class has no more mass than all other
           classes together; of two classes with equal masses only the second class is placed.
error      1 if the decided class is not the label, else 0.
brier      Half the sum over classes of (score - 1 if the event is of the class, else score)^2.

For two classes with scores 1 - p and p, placements and errors are those of a binary evaluator with the score
p and the threshold 1/2, where the second class is the positive class. Squared errors are equal up to the
rounding of 1 - p.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..arrays import FloatArray, Int8Array, Int64Array
from ..evaluator.adaptive_signal import AdaptiveSignal
from ..evaluator.engine import WindowEngine
from ..evaluator.evaluator import ModelEvaluator
from ..evaluator.event_columns import Columns
from ..evaluator.unit_window import UnitWindow
from ..events.inputs import GivenEvents
from ..rows.class_columns import ClassMeans
from ..rows.rows import Rows
from .class_settings import ClassSettings
from .events import ClassEvents
from .one_against_rest import of_each
from .window import ClassWindow


class ClassSignal(AdaptiveSignal):
    """The signal of a model's events, and the ADWIN that receives it. Columns have scores float64[n, C]."""

    def squared_errors(self, columns: Columns) -> FloatArray:
        """Return half the sum of the squared errors of each event's scores. O(n C)."""
        total = np.zeros(len(columns.labels))
        for number in range(columns.scores.shape[1]):
            total += (columns.scores[:, number] - (columns.labels == number)) ** 2
        return total / 2

    def apply(
        self,
        settings: ClassSettings,
        evaluators: Sequence[ModelEvaluator],
        window: ClassWindow,
        events: ClassEvents,
        times: Int64Array | None,
        decided: Int64Array,
    ) -> Iterator[tuple[list[Rows], list[ClassMeans]]]:
        """Apply events in parts; a part ends where a curve is due.

        Yields the rows of each evaluator that fall due, with their curves, and the means of `window` for
        these rows.

        evaluators  the evaluator of the model, then those of the classes
        decided     the number of the class decided for each event
        """
        model, *classes = evaluators
        stride, start = settings.evaluator.curve_stride or sys.maxsize, 0
        while start < events.size:
            piece = slice(start, start + stride - model.seq % stride)
            some, chosen = events.part(piece), decided[piece]
            moments = None if times is None else times[piece]
            given = of_each(settings, len(classes), some, moments, chosen)
            rows, means = self._apply(evaluators, given, window, some, chosen)
            if model.seq % stride == 0:
                due = [(each.curve_due(),) for each in classes]
                rows[1:] = [each.with_curves(curve) for each, curve in zip(rows[1:], due, strict=True)]
            yield rows, means
            start = piece.stop

    def _apply(
        self,
        evaluators: Sequence[ModelEvaluator],
        given: Sequence[GivenEvents],
        window: ClassWindow,
        events: ClassEvents,
        decided: Int64Array,
    ) -> tuple[list[Rows], list[ClassMeans]]:
        engines = [evaluator.prepare(each) for evaluator, each in zip(evaluators, given, strict=True)]
        pairs = list(zip(engines, given, strict=True))
        # The model comes last: if an event cannot be applied, a class refuses the event before anything has
        # changed.
        columns = [engine.begin(each) for engine, each in pairs[::-1]][::-1]
        parts: list[list[Rows]] = [[] for _ in engines]
        means: list[ClassMeans] = []
        done = 0

        def follow(some: Columns, staying: Int64Array, fed: Int8Array, placements: FloatArray) -> list[Rows]:
            nonlocal done
            start, done = done, done + len(some.labels)
            for number, engine in enumerate(engines):
                placed = np.empty(len(placements) if number else 0)
                parts[number] += engine.follow(columns[number].part(start, done), staying, fed, placed)
                if len(placed):
                    own = some.labels == number - 1
                    placements[own] = placed[own]
            means.extend(window.apply(events.part(slice(start, done)), some.times, given=staying))
            return []

        labels: Any = events.labels.astype(np.int32)
        codes = labels, decided.astype(np.int32)
        one = Columns(events.scores + 0.0, labels, *codes, columns[0].times, columns[0].weights)
        self.follow(ClassWindows(engines[0], engines[1:]), one, follow)
        rows = [engine.reported(each) for engine, each in zip(engines, parts, strict=True)]
        for engine in engines:
            engine.is_whole = True
        return rows, means


class ClassWindows:
    """The windows of a model and of its classes, in the form that `AdaptiveSignal` takes.

    A label is a class's number.

    model    the engine of the decisions of all classes
    classes  the engines of the classes; empty if nothing is placed
    """

    def __init__(self, model: WindowEngine, classes: Sequence[WindowEngine]) -> None:
        self._model, self._classes = model, classes

    @property
    def has_weights(self) -> bool:
        """Whether events have weights."""
        return self._model.window.has_weights

    def __len__(self) -> int:
        return len(self._model.window)

    def hits(self) -> Int8Array:
        """Return the hits of the events held, oldest first."""
        return self._model.window.hits()

    def rarer(self, columns: Columns) -> Int8Array:
        """Return 1 for each event that is placed; see the module. O(n C)."""
        if len(self._classes) == 2:
            return self._classes[1].window.rarer(_of_class(columns, 1))
        placed = np.zeros(len(columns.labels), np.int8)
        for number in np.unique(columns.labels).tolist():
            own = columns.labels == number
            placed[own] = self._classes[number].window.rarer(_of_class(columns, number))[own]
        return placed

    def placements_ahead(self, labels: Int8Array, scores: FloatArray, chosen: Int64Array) -> FloatArray:
        """Return the placements of chosen events, if all events enter and no event leaves."""
        placements = np.empty(len(chosen))
        for number in np.unique(labels[chosen]).tolist():
            own = labels[chosen] == number
            window = self._classes[number].window
            assert isinstance(window, UnitWindow)
            found = window.placements_ahead(
                (labels == number).view(np.int8), np.ascontiguousarray(scores[:, number]), chosen[own]
            )
            placements[own] = found
        return placements

    def masses(self) -> tuple[float, float]:
        """Return equal masses, because about half of the events, or more, are placed.

        The masses decide speed alone.
        """
        return 1.0, 1.0

    def placement(self, label: int, score: FloatArray) -> float:
        """Return the placement of an event that would come now; NaN if all events are of its class."""
        window = self._classes[label].window
        assert not isinstance(window, UnitWindow)
        return window.placement(1, float(score[label]))


def _of_class(columns: Columns, number: int) -> Columns:
    """Return columns of one class against all others, given the number of the class."""
    labels = (columns.labels == number).view(np.int8)
    scores = np.ascontiguousarray(columns.scores[:, number])
    return columns._replace(scores=scores, labels=labels, label_codes=labels, predicted_codes=labels)
