"""The classes -1 and 0 of one evaluator: they are one class together with 1, or two classes.

Labels of some tools are 1 and -1 where predictions are 1 and 0. The classes -1 and 0 are then one class. They
are two classes as soon as labels have both, predictions have both, or any other class than 1 comes. They are
two classes from the start if the positive class is another class than 1.

Invariant: whether -1 and 0 are one class after an event depends on the events up to this event, not on how
the events were cut into calls. When one class becomes two classes, the events in the window are told apart:
all labels of the class have one of the spellings, and all predictions have the other.

While -1 and 0 can still become one class, a name in the evaluator's table of classes says where the class
came: " -1|" in labels alone, " |0" in predictions alone, " -1|0" as -1 in labels and 0 in predictions. The
plain name "0" says that labels and predictions had 0. No `class_text` begins with a blank, so these names are
no class of a user.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ..events.columns import TextColumn
from ..settings.classes import MINUS_ONE, ONE, ZERO
from .state import EvaluatorState

_BINARY = frozenset((MINUS_ONE, ZERO, ONE))
_PAIR = MINUS_ONE, ZERO
_NAMES = {
    f" {label}|{predicted}": (label, predicted)
    for label in ("", *_PAIR)
    for predicted in ("", *_PAIR)
    if label != predicted
}
"""The spelling that labels had and the spelling that predictions had, by the name of -1 or 0 where they
differ.
"""

LABEL, PREDICTION = 0, 1
"""The numbers of the two sides of an event."""


class Negatives:
    """Which of -1 and 0 the labels have had, and which the predictions: on each side neither, one or both.

    had    the spelling that labels, and that predictions, have had; "" if neither came yet
    apart  whether -1 and 0 are two classes from now on
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        """Read the state from the names of an evaluator's classes.

        Raises ValueError for names that contradict each other.
        """
        self.had, self.apart = ["", ""], False
        known = set(names)
        plain = known & _BINARY
        if pair := next(iter(known & _NAMES.keys()), None):
            self.had = [*_NAMES[pair]]
            if known - {pair, ONE}:
                raise ValueError(f"-1 or 0 is named {pair!r} beside the classes {sorted(known - {pair})}")
            return
        if len(plain - {ONE}) == 1:
            self.had = [*plain - {ONE}] * 2
        self.apart = not known <= _BINARY or len(plain - {ONE}) == 2

    @property
    def name(self) -> str:
        """The name under which the table of classes has -1 or 0; "" if neither came yet."""
        label, predicted = self.had
        return label if label == predicted else f" {label}|{predicted}"

    def takes(self, name: str) -> bool:
        """Return whether the code of a class depends on the side, label or prediction, that has the class."""
        return not self.apart and name in _PAIR

    def meet(self, name: str, side: int) -> tuple[str, str]:
        """Note that -1 or 0 came on a side.

        Return the name of the class in the table of classes so far, and the name from now on.
        """
        before = self.name
        self.had[side] = name
        return before, self.name

    def first_apart(self, labels: TextColumn, predicted: TextColumn) -> int:
        """Return the first event at which one class becomes two classes.

        Return the number of events if there is no such event.

        If -1 and 0 become two classes before they were one, the method sets `apart`.
        """
        count = len(labels)
        if self.apart:
            return count
        columns = labels, predicted
        if all({ONE, had}.issuperset(column.values) for had, column in zip(self.had, columns, strict=True)):
            return count  # this is nearly always the case: no side has a new class
        used = [{column.values[code] for code in np.unique(column.codes).tolist()} for column in columns]
        firsts = [column.first(used[side] - _BINARY) for side, column in enumerate(columns)]
        for had, column in zip(self.had, columns, strict=True):
            firsts.append(max(0 if had == name else column.first({name}) for name in _PAIR))
        end = min(firsts)
        self.apart = end < count and not self._is_one_before(end, columns)
        return count if self.apart else end

    def _is_one_before(self, end: int, columns: tuple[TextColumn, TextColumn]) -> bool:
        """Return whether -1 and 0 are one class after the first `end` events.

        No side may have both before `end`.
        """
        label, predicted = (
            had or next((name for name in _PAIR if column.first({name}) < end), "")
            for had, column in zip(self.had, columns, strict=True)
        )
        return bool(label and predicted) and label != predicted


def told_apart(state: EvaluatorState) -> EvaluatorState:
    """Return a state in which -1 and 0 are two classes, from a state in which they are one class."""
    code = next(place for place, name in enumerate(state.class_names) if name in _NAMES)
    label, predicted = _NAMES[state.class_names[code]]
    names = (*state.class_names[:code], label, *state.class_names[code + 1 :], predicted)
    predictions = state.predictions.copy()
    predictions[predictions == code] = len(names) - 1
    last_seen = np.append(state.last_seen, 0)
    return replace(state, class_names=names, predictions=predictions, last_seen=last_seen)
