"""The common parts of windows: the columns of events that come, and the classes that came.

`UnitWindow` (unit_window.py) is the window of events that count 1 each, `WeightedWindow` (weighted/window.py)
the window of events with weights. An evaluator has one of the two.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import NO_FLOATS, FloatArray, Int8Array, Int32Array, Int64Array
from ..encoding.fields import packed_text
from ..errors import InputError
from ..events.columns import TextColumn
from ..events.inputs import GivenEvents
from ..measures.decisions import CLASSES, LAST_LABEL, LAST_SEEN
from ..rows.measure_table import RANKING_MEASURES
from ..settings.evaluator import EvaluatorSettings
from .negatives import LABEL, PREDICTION, Negatives
from .state import Codes, EvaluatorState

RANKING = slice(0, RANKING_MEASURES)
"""The measures that are null while no class is known to be positive."""


class Columns(NamedTuple):
    """The columns of events or steps: scores, labels (1 for positives), codes of classes, times, and weights.

    `weights` is empty if every event counts once.
    """

    scores: FloatArray
    labels: Int8Array
    label_codes: Codes
    predicted_codes: Codes
    times: Int64Array | None
    weights: FloatArray

    def part(self, start: int, end: int) -> Columns:
        """Return the events `start` to `end` - 1."""
        if start == 0 and end == len(self.scores):
            return self
        return self.take(slice(start, end))

    def take(self, events: slice | Int64Array) -> Columns:
        """Return the events of a slice, or the events at some indices."""
        times = None if self.times is None else self.times[events]
        return Columns(
            self.scores[events], self.labels[events], self.label_codes[events], self.predicted_codes[events],
            times, self.weights[events] if len(self.weights) else self.weights,
        )  # fmt: skip


class Classes:
    """The classes of an evaluator's events.

    It has the code of each class, and how many events of each class the window holds.

    Labels 1 and 0 have the codes 1 and 0. Named classes are numbered in the order in which they appear. A
    positive class that the settings name gets the code 0.

    counts         int64 (4, classes or more), with the lines LABELS, PREDICTIONS, CORRECT, LAST_SEEN
                   (measures/decisions.py)
    is_multiclass  whether classes have names; None before the first event
    is_ranked      whether the positive class is known, so that scores can be ranked
    positive       the code of the positive class; -1 if it is not known
    first_class    the class that both baselines predict before any label (`apply_decisions`)
    name_bytes     the length of the names in UTF-8, in bytes
    """

    def __init__(self, settings: EvaluatorSettings, counters: Int64Array) -> None:
        self._settings = settings
        self._counters = counters
        self._codes: dict[str, int] = {}
        self._negatives = Negatives()
        self.counts: Int64Array = np.zeros((4, 2), np.int64)
        self.is_multiclass: bool | None = None
        self.is_ranked = True
        self.positive = 1
        self.first_class = 0
        self.name_bytes = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The named classes, in the order of their codes."""
        return tuple(self._codes)

    @property
    def dtype(self) -> Any:
        """The type of the codes."""
        return np.int32 if self.is_multiclass else np.int8

    def settle(self, is_multiclass: bool) -> None:
        """Set whether events have named classes; raises InputError if earlier events differ."""
        if self.is_multiclass is None:
            self.is_multiclass = is_multiclass
            if not is_multiclass:
                self._counters[CLASSES] = 2
            elif self._settings.positive is None:
                self.is_ranked, self.positive, self.first_class = False, -1, -1
            else:
                self.positive, self.first_class = self._code(self._settings.positive), -2
                self._negatives = Negatives(self._codes)
        elif self.is_multiclass != is_multiclass:
            had, got = ("with", "without") if self.is_multiclass else ("without", "with")
            raise InputError(
                f"events {got} predicted classes follow events {had} them in one evaluator; "
                "use one evaluator for each kind"
            )

    def first_apart(self, events: GivenEvents) -> int:
        """Return the first event from which on -1 and 0 are two classes, not one class (`Negatives`).

        Return the number of events if there is no such event.
        """
        if events.label_classes is None or events.predicted is None:
            return len(events.scores)
        found = self._negatives.first_apart(events.label_classes, events.predicted)
        if self._negatives.apart and (name := self._negatives.name).startswith(" "):
            self._rename(name, name.strip(" |"))
        return found

    def columns(self, events: GivenEvents, has_weights: bool) -> Columns:
        """Return events in columns for a window; in a window with weights, the default weight is 1."""
        scores = events.scores + 0.0  # makes 0.0 of -0.0, which is the same score
        if events.label_classes is None or events.predicted is None:
            # copies the labels: they are kept until the next row, while the caller may change its array
            labels = np.array(events.labels, np.int8)
            label_codes: Codes = labels
            predicted_codes: Codes = (scores >= self._settings.threshold).view(np.int8)
        else:
            label_codes = self._encode(events.label_classes, LABEL)
            predicted_codes = self._encode(events.predicted, PREDICTION)
            labels = (label_codes == 0).view(np.int8)
        weights = events.weights
        if weights is None:
            weights = np.ones(len(scores)) if has_weights else NO_FLOATS
        return Columns(scores, labels, label_codes, predicted_codes, events.times, weights)

    def no_event(self) -> Columns:
        """Return columns of one event of zeros, for steps at which only time advances.

        The columns of steps repeat this event, and no step reads it.
        """
        codes: Codes = np.zeros(1, self.dtype)
        return Columns(np.zeros(1), np.zeros(1, np.int8), codes, codes, None, np.zeros(1))

    def load(self, state: EvaluatorState) -> None:
        """Load the classes of a stored evaluator. The window's own `load` counts the events of each class."""
        self.settle(state.multiclass)
        for name in state.class_names:
            self._code(name)
        self._negatives = Negatives(self._codes)
        self.counts[LAST_SEEN, : int(self._counters[CLASSES])] = state.last_seen
        self._counters[LAST_LABEL] = state.last_label

    def _encode(self, column: TextColumn, side: int) -> Codes:
        """Return the codes of labels or of predictions; new classes get the next numbers."""
        used, first = np.unique(column.codes, return_index=True)
        table = np.zeros(len(column.values), np.int32)
        for entry in used[np.argsort(first, kind="stable")].tolist():
            table[entry] = self._code_on(side, column.values[entry])
        codes: Int32Array = table[column.codes]
        return codes

    def _code_on(self, side: int, name: str) -> int:
        """Return the code of a class, which a label or a prediction has."""
        if not self._negatives.takes(name):
            return self._code(name)
        before, after = self._negatives.meet(name, side)
        if before and before != after:
            self._rename(before, after)
        return self._code(after)

    def _rename(self, before: str, after: str) -> None:
        self._codes = {after if name == before else name: code for name, code in self._codes.items()}
        self.name_bytes += len(packed_text(after)) - len(packed_text(before))

    def _code(self, name: str) -> int:
        code = self._codes.get(name)
        if code is not None:
            return code
        code = self._codes[name] = len(self._codes)
        self._counters[CLASSES] = len(self._codes)
        self.name_bytes += len(packed_text(name)) - 4
        if code >= self.counts.shape[1]:
            self.counts = np.concatenate([self.counts, np.zeros_like(self.counts)], axis=1)
        return code
