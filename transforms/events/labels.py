"""Labels as 1 and 0, and the columns of events that have a score of each class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...core.arrays import FloatArray, Int8Array
from ...core.events.batch import NEGATIVE, NO_CLASS, POSITIVE
from ...core.events.columns import TextColumn
from ...core.settings.classes import named_classes
from .columns import class_text, read_scores, texts
from .faults import Faults, class_verdict, membership_verdict, score_verdict
from .fields import EventFields

LABELS = {"1": POSITIVE, "0": NEGATIVE, "-1": NEGATIVE}
"""The labels that are understood if no positive class is named, by their `class_text`."""


def binary_labels(classes: TextColumn, fields: EventFields) -> Int8Array:
    """Return the 1/0 labels of a column of classes, int8[n].

    A label is NO_CLASS if it is missing or unknown, or if there is no positive class to compare it with.
    """
    if fields.positive is not None:
        of_class = [POSITIVE if value == fields.positive else NEGATIVE for value in classes.values]
    elif fields.predicted is not None or fields.classes:
        of_class = [NO_CLASS] * len(classes.values)
    else:
        of_class = [LABELS.get(value, NO_CLASS) for value in classes.values]
    return np.array([*of_class, NO_CLASS], np.int8)[classes.codes]


@dataclass(frozen=True)
class ClassReader:
    """Reads the scores and labels of classes from the columns of records, and stores their faults.

    column  returns a column by its name
    """

    fields: EventFields
    column: Callable[[str], pa.Array]
    faults: Faults

    def scores_and_decisions(self) -> dict[str, Any]:
        """Return the scores of classes, and the class decided for each event.

        Without predicted classes, the greatest score decides. If an event may be of many classes, none is
        decided.
        """
        fields = self.fields
        scores = np.stack([self._scores(name) for name in fields.class_scores], axis=1)
        if fields.class_labels:
            return {"class_scores": scores}
        if fields.predicted is not None:
            return {"class_scores": scores, "predicted": self.classes("predicted", fields.predicted)}
        decided = np.argmax(scores, axis=1).astype(np.int32)
        return {"class_scores": scores, "predicted": TextColumn(decided, fields.class_names)}

    def labels(self) -> dict[str, Any]:
        """Return the labels: one class of each event, or, for each class, whether the event is of it."""
        fields = self.fields
        if fields.class_labels:
            members = [self._members(name) for name in fields.class_labels]
            return {"class_labels": np.stack(members, axis=1)}
        return {"label_classes": self.classes("label", fields.label)}

    def _scores(self, name: str) -> FloatArray:
        column = self.column(name)
        scores = read_scores(column)
        bad = ~np.isfinite(scores)
        if self.fields.probabilities:
            bad |= ~((scores >= 0.0) & (scores <= 1.0))
        self.faults.add(bad, "score", name, column, score_verdict)
        return scores

    def classes(self, role: str, name: str) -> TextColumn:
        """Read a column of classes, by name; a value that is none of the classes is a fault."""
        column = self.column(name)
        names = named_classes(self.fields.class_names)
        found = texts(column, lambda value: names.get(class_text(value) or ""))
        self.faults.add(found.codes < 0, role, name, column, class_verdict(role, self.fields.class_names))
        return found

    def _members(self, name: str) -> Int8Array:
        """Read a column that says whether an event is of a class."""
        column = self.column(name)
        classes = texts(column)
        of_class = [LABELS.get(class_text(value) or "", NO_CLASS) for value in classes.values]
        labels = np.array([*of_class, NO_CLASS], np.int8)[classes.codes]
        self.faults.add(labels == NO_CLASS, "label", name, column, membership_verdict)
        return labels
