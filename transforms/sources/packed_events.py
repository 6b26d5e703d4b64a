"""Checks whether packed events from the user fit the settings of an evaluation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...core.errors import InputError
from ...core.events.batch import EventBatch
from ...core.events.columns import TextColumn
from ...core.events.times import AFTER_LAST_TIME, FIRST_TIME
from ...core.events.wire import UNORDERED
from ..events.check import binary_labels
from ..events.fields import EventFields


def fitting(batch: EventBatch, fields: EventFields, *, needs_ids: bool = False) -> EventBatch:
    """Return the columns of a batch that the fields ask for. Raises InputError for a batch that does not fit.

    With needs_ids, a batch without ids does not fit. Relies on the checks of `EventBatch.unpack`. O(n).
    """
    for what, option, column, is_asked in (
        ("weights", "weight=", batch.weights, fields.weight is not None),
        ("predicted classes", "predicted=", batch.predicted, fields.predicted is not None),
        ("times", "time=", batch.times, fields.time is not None),
        ("ids", "deduplicate=", batch.ids, needs_ids),
    ):
        if column is None and is_asked:
            raise _unfit(f"it has no {what}, and {option} is given; pack them with it, or leave {option} out")
        if column is not None and not is_asked and what in ("weights", "predicted classes"):
            raise _unfit(f"it has {what}; say so with {option}, or pack it without")
    if batch.times is not None and not ((batch.times >= FIRST_TIME) & (batch.times < AFTER_LAST_TIME)).all():
        raise _unfit("it has a time that is missing or not within the years 1 to 9999")
    if fields.probabilities and not ((batch.scores >= 0.0) & (batch.scores <= 1.0)).all():
        raise _unfit("it has a score that is no probability, which lies between 0 and 1")
    names = [name for name, _ in batch.slices]
    for name in fields.slice_columns:
        if names.count(name) != 1:
            many = "no" if name not in names else f"{names.count(name)} times the"
            raise _unfit(f"it has {many} slice column {name!r}; pack it with each column of slices= once")
    texts = {"models": batch.models, "label_classes": batch.label_classes, "predicted": batch.predicted}
    for name, column in (*texts.items(), *batch.slices):
        if column is not None:
            _check_text(name, column, missing=name not in texts)
    _check_classes(batch, fields)
    slices = dict(batch.slices)
    return replace(
        batch,
        times=None if fields.time is None else batch.times,
        ids=None if fields.id is None else batch.ids,
        positions=None,
        sources=None,
        slices=tuple((name, slices[name]) for name in fields.slice_columns),
        source="",
        sequence=UNORDERED,
    )


def _check_text(name: str, column: TextColumn, *, missing: bool) -> None:
    for value in column.values:
        if not value and not missing:
            raise _unfit(f"a value of {name} is the empty text, which is a missing one")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _unfit(f"{value[:60]!r} in {name} is not UTF-8") from None


def _check_classes(batch: EventBatch, fields: EventFields) -> None:
    if batch.label_classes is None or batch.predicted is None:
        return
    for column in (batch.label_classes, batch.predicted):
        for value in column.values:
            if (spelled := fields.class_of(value)) != value:
                raise _unfit(f"the class {value[:60]!r} is spelled {spelled!r} here; pack it so")
    if not np.array_equal(batch.labels, binary_labels(batch.label_classes, fields)):
        said = (
            "no class is said to be positive" if fields.positive is None else f"positive={fields.positive!r}"
        )
        raise _unfit(f"its labels are not what its classes say where {said}; pack it with that setting")


def _unfit(why: str) -> InputError:
    return InputError(f"a packed batch of events does not fit the settings: {why}")
