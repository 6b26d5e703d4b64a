"""Finds labels and predicted classes that are probably spelled differently: too few classes are in both.

`ClassDoubt` collects the classes of both as events come. It reports two findings, each with examples: no
class in common, and one class in common of three or more.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable

from ..errors import ClassesWarning
from ..settings.classes import MINUS_ONE, ONE, ZERO, shared_classes
from .inputs import GivenEvents

_MOST = 1_000
"""The most classes of labels, and of predictions, that are collected."""

_SHOWN = 3

_ENOUGH = {0: 5, 1: 1_000}
"""For each number of common classes, the number of events from which on a doubt is reported before the input
ends.

Few events may have few classes in common by chance: for a model that is right at every second event, 3 of 100
groups of 5 events have no class in common.
"""


class ClassDoubt:
    """The classes of labels and of predictions so far, and the doubt that they are spelled differently.

    whose     how the sentence names the labels and the predictions
    positive  the positive class; None: no class is named as positive
    """

    def __init__(self, whose: tuple[str, str], positive: str | None) -> None:
        self._whose = whose
        self._positive = positive
        self._classes: tuple[dict[str, None], dict[str, None]] = {}, {}
        self._events = [0, 0]
        self._is_settled = False

    def add(self, side: int, classes: Iterable[str], events: int) -> None:
        """Note the classes of events: side 0 are labels, side 1 predictions."""
        if self._is_settled:
            return
        self._events[side] += events
        known = self._classes[side]
        for name in classes:
            if len(known) < _MOST:
                known.setdefault(name)

    def sentence(self, *, at_end: bool = False) -> str | None:
        """Return the sentence that states the doubt, once.

        None if there is no doubt, or too few events to be sure.

        at_end  whether no more events will come: any number of events is then enough
        """
        labels, predicted = self._classes
        if self._is_settled or not labels or not predicted:
            return None
        common = shared_classes(labels, predicted, self._positive)
        if len(common) > 1:
            self._is_settled = True
            return None
        several = len({*labels, *predicted}) >= 3
        if (common and not several) or not (at_end or min(self._events) >= _ENOUGH[len(common)]):
            return None
        self._is_settled = True
        shared = "no class in common" if not common else f"only the class {next(iter(common))!r} in common"
        mine, other = self._whose
        remedy = "spell each class alike in both, if they are not meant to differ"
        if {MINUS_ONE, ZERO} <= {*labels, *predicted} <= {MINUS_ONE, ZERO, ONE}:
            remedy = "-1 and 0 are one class only where 1 is positive; write one of them in both"
        return f"{mine} are {_some(labels)}, {other} are {_some(predicted)}: they have {shared}; {remedy}"


def doubt_classes(doubt: ClassDoubt | None, events: GivenEvents, positive: str | None) -> ClassDoubt | None:
    """Collect the classes of the events that a user gave to a method, and warn once.

    Return the collected classes.
    """
    if events.label_classes is None or events.predicted is None:
        return doubt
    doubt = doubt or ClassDoubt(("labels", "predicted"), positive)
    doubt.add(0, events.label_classes.values, len(events.scores))
    doubt.add(1, events.predicted.values, len(events.scores))
    _warn(doubt.sentence(), stacklevel=4)
    return doubt


def doubt_classes_at_end(doubt: ClassDoubt | None) -> None:
    """Warn at the end of the events that a user gave to a method, unless the warning was given."""
    if doubt is not None:
        _warn(doubt.sentence(at_end=True), stacklevel=4)


def _warn(sentence: str | None, stacklevel: int) -> None:
    """Give a `ClassesWarning` at the line that called a method of an evaluator."""
    if sentence is not None:
        warnings.warn(sentence, ClassesWarning, stacklevel=stacklevel)


def _some(names: Collection[str]) -> str:
    shown = ", ".join(map(repr, [*names][:_SHOWN]))
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN:,} more"
