"""ScoreOfEachClass: a window of the last k events that have a score of each class.

No class is known beforehand. A class begins with its first label, or with its first score. Its scores in
earlier events are 0, as if it had been known from the start.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays import NO_INT64, FloatArray
from ..classes.current import MOST_ORDERED, SPARSE, CurrentPairs
from ..classes.events import ClassEvents
from ..classes.figures import figures_of_window
from ..classes.values import Values, values_of_line
from ..evaluator.eviction import sliding_steps
from ..measures.event_buffer import EventBuffer
from ..measures.steps import ROW_DUE


class ClassScores(NamedTuple):
    """The scores that a model gives to an event, and the weight of the event.

    of      the score of each class; a class that is missing has 0. Empty: all classes have one score
    weight  finite and above 0
    """

    of: dict[Hashable, float]
    weight: float


class ScoreOfEachClass:
    """Labels and scores of the last `size` events.

    An event without scores has the score 1 / C for each of the C classes that the window has met so far. If C
    grows, the scores of such events change with it.

    Cost: if values are asked for often and all events count 1, orders are kept current, and an event with its
    values takes O(C (log k + k / 96 + 96) + C^2). Otherwise values take O(C k log k) at each request. A new
    class takes O(C k log k). Both ways give the same values to the last bit. Memory: O(C k).

    >>> window = ScoreOfEachClass(4)
    >>> window.extend(["a", "b", "c"], [ClassScores({"a": 0.6, "b": 0.4}, 1.0)] * 2 + [ClassScores({}, 1.0)])
    >>> round(window.values().macro, 3)  # the scores of c are 0, 0 and 1/3
    0.833
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._numbers: dict[Hashable, int] = {}
        self._say_nothing: deque[bool] = deque(maxlen=size)
        """For each event held, whether the model gave no scores."""
        self._begin(ClassEvents(NO_INT64, np.empty((0, 0))))

    def _begin(self, held: ClassEvents) -> None:
        """Hold these events, whose scores have a column for each class."""
        self._buffer = EventBuffer(held.part(slice(0)))
        self._buffer.add(held)
        self._current: CurrentPairs | None = None
        self._line: FloatArray | None = None
        """The line of means that `CurrentPairs` gives for the events held; None if it has not been computed.
        """
        self._unasked = 0
        """How many events came since values were last asked for."""

    def __len__(self) -> int:
        return len(self._buffer)

    def extend(self, labels: Sequence[Hashable], predictions: Sequence[ClassScores]) -> None:
        """Apply events in order; the oldest events leave when the window is full."""
        numbers = self._numbers
        for label, prediction in zip(labels, predictions, strict=True):
            numbers.setdefault(label, len(numbers))
            for name in prediction.of:
                numbers.setdefault(name, len(numbers))
        if len(numbers) > self._buffer.events().scores.shape[1]:
            self._widen()
        coming = ClassEvents(
            np.array([numbers[label] for label in labels], np.int64),
            np.array([self._scores(prediction.of) for prediction in predictions]),
        )
        if any(prediction.weight != 1.0 for prediction in predictions):
            coming = coming._replace(weights=np.array([prediction.weight for prediction in predictions]))
        self._unasked += coming.size
        if coming.weights is not None or self._unasked >= SPARSE:
            self._current = None
        self._line = None
        steps = sliding_steps(coming.size, len(self), self._size)
        if self._current is None:
            self._buffer.follow(coming, steps)
        else:
            flags = steps.flags.copy()
            flags[-1] |= ROW_DUE
            self._line = self._current.follow(coming, steps._replace(flags=flags))[-1]
        self._say_nothing.extend(not prediction.of for prediction in predictions)

    def _scores(self, of: dict[Hashable, float]) -> list[float]:
        """Return the score of each class, in the order of their numbers."""
        if not of:
            return [1.0 / len(self._numbers)] * len(self._numbers)
        scores = [0.0] * len(self._numbers)
        for name, score in of.items():
            scores[self._numbers[name]] = score
        return scores

    def _widen(self) -> None:
        """Give the events held a score of each new class."""
        held, classes = self._buffer.events(), len(self._numbers)
        scores = np.zeros((held.size, classes))
        scores[:, : held.scores.shape[1]] = held.scores
        scores[np.flatnonzero(self._say_nothing)] = 1.0 / classes
        unasked = self._unasked
        self._begin(held._replace(scores=scores))
        self._unasked = unasked

    def take_out(self, label: Hashable, prediction: ClassScores) -> bool:
        """Remove the oldest event with this label and prediction; return False if there is no such event.

        O(C k).
        """
        if label not in self._numbers or not self._numbers.keys() >= prediction.of.keys():
            return False
        held = self._buffer.events()
        weights = 1.0 if held.weights is None else held.weights
        candidates = (held.labels == self._numbers[label]) & (weights == prediction.weight)
        places = np.flatnonzero(candidates)
        same = places[(held.scores[places] == self._scores(prediction.of)).all(axis=1)].tolist()
        place = next((place for place in same if self._say_nothing[place] == (not prediction.of)), None)
        if place is None:
            return False
        self._line = None if self._current is None else self._current.take_out(place)
        if self._current is None:
            self._buffer.take_out(place)
        del self._say_nothing[place]
        return True

    def values(self) -> Values | None:
        """Return the values of the window; None if fewer than two classes have events."""
        if not len(self):
            return None
        if self._line is None:
            held = self._buffer.events()
            is_weighted = held.weights is not None and bool((held.weights != 1.0).any())
            is_sparse, self._unasked = self._unasked >= SPARSE, 0
            if is_weighted or is_sparse or len(self._numbers) > MOST_ORDERED:
                labels, weights = held.labels.astype(np.int64), held.weights if is_weighted else None
                found = figures_of_window(labels, held.scores, weights)
                return None if found is None else found.values
            self._current = CurrentPairs(len(self._numbers), self._buffer)
            self._line = self._current.now()
        self._unasked = 0
        return values_of_line(self._line)

    def __getstate__(self) -> dict[str, Any]:
        """Return the events without the orders, which are made again when they are needed."""
        return {
            "_size": self._size,
            "_numbers": self._numbers,
            "_say_nothing": self._say_nothing,
            "held": tuple(self._buffer.events()),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        held = ClassEvents(*state.pop("held"))
        self.__dict__.update(state)
        self._begin(held)
