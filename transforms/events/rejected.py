"""Turns records that a machine refused into dead letters, with the user's names of fields."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...core.arrays import Int8Array
from ...core.events.batch import NO_CLASS, EventBatch
from ...core.events.columns import TextColumn
from ...core.events.rejected import Rejected
from ...core.events.unjoined import LabelBatch
from .dead_letters import DeadLetters, known_of, seconds, texts_of
from .fields import EventFields
from .text import json_objects

_Columns = dict[str, pa.Array | None]
"""Columns by name; None = absent."""


@dataclass(frozen=True)
class RejectedLetters:
    """Makes dead letters of refused records; `fields` has the user's names of their fields.

    `raw` shows only the fields that the job reads, because a machine has no other fields of a record.
    label_time  the name of a label's time, if labels have an input of their own.
    instances   whether the records have features and no score; their model is the learner that failed.
    """

    fields: EventFields
    label_time: str | None = None
    instances: bool = False

    def __call__(self, rejected: Rejected) -> DeadLetters:
        """Return a dead letter of every record."""
        records = rejected.records
        n = len(records)
        known = known_of(records)
        if isinstance(records, LabelBatch):
            own = self._label(records, known)
        else:
            own = self._event(records, known, labelled=not rejected.unlabelled)
        positions, limit = records.positions, rejected.limit
        columns = {
            **known,
            "kind": texts_of(TextColumn.repeated(rejected.kind, n)),
            "reason": texts_of(TextColumn.repeated(rejected.reason.value, n)),
            "source": texts_of(records.event_sources()),
            "position": None if positions is None else pa.array(positions, mask=positions < 0),
            "raw": json_objects(
                pa.RecordBatch.from_pydict({name: each for name, each in own.items() if each is not None})
            ),
            "detail": texts_of(rejected.details),
            "gap_seconds": None if rejected.gaps is None else seconds(rejected.gaps),
            "limit_seconds": None if limit is None else seconds(np.full(n, limit)),
        }
        return DeadLetters.of_columns(columns, n)

    def _label(self, labels: LabelBatch, known: _Columns) -> _Columns:
        fields = self.fields
        return {
            fields.id or "id": known["id"],
            self.label_time or "time": known["time"],
            fields.label: self._labels(labels.labels, labels.label_classes),
        }

    def _event(self, events: EventBatch, known: _Columns, *, labelled: bool) -> _Columns:
        fields = self.fields
        own = {
            fields.model or "model": known["model"],
            fields.score: pa.array(events.scores),
            fields.label: self._labels(events.labels, events.label_classes) if labelled else None,
            fields.time or "time": known["time"],
            fields.id or "id": known["id"],
            fields.weight or "weight": None if events.weights is None else pa.array(events.weights),
            fields.predicted or "predicted": None if events.predicted is None else texts_of(events.predicted),
            **{name: texts_of(column) for name, column in events.slices},
        }
        if self.instances:
            for name in (fields.model or "model", fields.score, fields.predicted or "predicted"):
                del own[name]
            own |= {name: pa.array(column, from_pandas=True) for name, column in events.features}
        return own

    def _labels(self, labels: Int8Array, classes: TextColumn | None) -> pa.Array:
        """Return labels as values that can be read again; of named classes, only the positive is known."""
        if classes is not None:
            return texts_of(classes)
        if self.fields.positive is not None:
            words = (f"not {self.fields.positive}", self.fields.positive)
            return texts_of(TextColumn(labels.astype(np.int32), words))
        return pa.array(labels, mask=labels == NO_CLASS)
