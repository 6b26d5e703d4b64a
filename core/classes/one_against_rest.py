"""The events of a model in the forms that its evaluators take.

The forms are for all classes together, and for one class against the rest.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Int64Array
from ..events.columns import TextColumn
from ..events.inputs import GivenEvents
from ..settings.classes import class_text
from .class_settings import ClassSettings
from .events import ClassEvents


def of_each(
    settings: ClassSettings,
    classes: int,
    events: ClassEvents,
    times: Int64Array | None,
    decided: Int64Array | None,
) -> list[GivenEvents]:
    """Return events in the form that each evaluator takes.

    First for the model, then for the first `classes` classes.

    decided  the number of the class decided for each event; None with `multi_label`
    """
    of_classes = [_of_one(settings, number, events, times, decided) for number in range(classes)]
    return [_of_all(settings, events, times, decided), *of_classes]


def _of_all(
    settings: ClassSettings, events: ClassEvents, times: Int64Array | None, decided: Int64Array | None
) -> GivenEvents:
    """Return the events for the decisions of all classes, which use no score to rank."""
    none = np.zeros(events.size)
    classes = predicted = None
    if decided is not None:
        classes = TextColumn(events.labels.astype(np.int32), settings.decided)
        predicted = TextColumn(decided.astype(np.int32), settings.decided)
    return GivenEvents(none, none.astype(np.int8), times, classes, predicted, events.weights)


def _of_one(
    settings: ClassSettings,
    number: int,
    events: ClassEvents,
    times: Int64Array | None,
    decided: Int64Array | None,
) -> GivenEvents:
    """Return the events for one class, given by its number, against all others; `decided` as in `of_each`."""
    scores = np.ascontiguousarray(events.scores[:, number])
    if decided is None:
        labels = events.labels[:, number].astype(np.int8)
        return GivenEvents(scores, labels, times, None, None, events.weights)
    # the first side has the name that `of_class` gives to the positive class
    sides = class_text(settings.classes[number]), ""
    is_label, is_decided = events.labels == number, decided == number
    return GivenEvents(
        scores, is_label.view(np.int8), times, TextColumn((~is_label).astype(np.int32), sides),
        TextColumn((~is_decided).astype(np.int32), sides), events.weights,
    )  # fmt: skip
