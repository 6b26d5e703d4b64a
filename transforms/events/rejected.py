"""Turns records that a machine refused into dead letters, with the user's names of fields."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...core.arrays import Int8Array
from ...core.events.batch import NO_CLASS, EventBatch
from ...core.events.columns import TextColumn
from ...core.events.rejected import Rejected
from ...core.events.times import NO_TIME
from ...core.events.unjoined import LabelBatch
from .dead_letters import DEAD_LETTER_SCHEMA, DeadLetters, seconds
from .fields import EventFields
from .text import json_objects

_TIME = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class RejectedLetters:
    """Makes dead letters of refused records, whose own fields have the names that `fields` says.

    `raw` shows the fields that the job reads: nothing else of a record goes along with it.
    label_time  the name of a label's time, where labels came by themselves
    instances   the records have features and no score; their model is the learner that failed
    """

    fields: EventFields
    label_time: str | None = None
    instances: bool = False

    def __call__(self, rejected: Rejected) -> DeadLetters:
        """Return a dead letter of every record."""
        records = rejected.records
        n = len(records)
        ids = (
            pa.nulls(n, pa.string()) if records.ids is None else pa.array(records.ids.to_list(), pa.string())
        )
        times = pa.nulls(n, _TIME)
        if records.times is not None:
            times = pa.array(records.times, mask=records.times == NO_TIME).cast(_TIME)
        positions = pa.nulls(n, pa.int64())
        if records.positions is not None:
            positions = pa.array(records.positions, mask=records.positions < 0)
        if isinstance(records, LabelBatch):
            models, own = pa.nulls(n, pa.string()), self._label(records, ids, times)
        else:
            models = _text(records.models)
            own = self._event(records, ids, times, labelled=not rejected.unlabelled)
        columns = [
            _text(TextColumn.repeated(rejected.kind, n)),
            _text(TextColumn.repeated(rejected.reason.value, n)),
            _text(records.event_sources()),
            positions,
            times,
            models,
            ids,
            json_objects(pa.RecordBatch.from_pydict(own)),
            pa.nulls(n, pa.string()),
            pa.nulls(n, pa.string()),
            _text(rejected.details),
            seconds(rejected.gaps, n),
            seconds(None if rejected.limit is None else np.full(n, rejected.limit), n),
        ]
        return DeadLetters(pa.RecordBatch.from_arrays(columns, schema=DEAD_LETTER_SCHEMA))

    def _label(self, labels: LabelBatch, ids: pa.Array, times: pa.Array) -> dict[str, pa.Array]:
        fields = self.fields
        own = {
            fields.id or "id": ids,
            self.label_time or "time": times,
            fields.label: self._labels(labels.labels, labels.label_classes),
        }
        return {name: column for name, column in own.items() if column is not None}

    def _event(
        self, events: EventBatch, ids: pa.Array, times: pa.Array, *, labelled: bool
    ) -> dict[str, pa.Array]:
        fields = self.fields
        own = {
            fields.model or "model": _text(events.models),
            fields.score: pa.array(events.scores),
            fields.label: self._labels(events.labels, events.label_classes) if labelled else None,
            fields.time or "time": None if events.times is None else times,
            fields.id or "id": None if events.ids is None else ids,
            fields.weight or "weight": None if events.weights is None else pa.array(events.weights),
            fields.predicted or "predicted": None if events.predicted is None else _text(events.predicted),
            **{name: _text(column) for name, column in events.slices},
        }
        if self.instances:
            for name in (fields.model or "model", fields.score, fields.predicted or "predicted"):
                del own[name]
            own |= {name: pa.array(column, from_pandas=True) for name, column in events.features}
        return {name: column for name, column in own.items() if column is not None}

    def _labels(self, labels: Int8Array, classes: TextColumn | None) -> pa.Array:
        """Return labels as they may be read again: of words only the positive one is known."""
        if classes is not None:
            return _text(classes)
        if self.fields.positive is not None:
            words = (f"not {self.fields.positive}", self.fields.positive)
            return _text(TextColumn(labels.astype(np.int32), words))
        return pa.array(labels, mask=labels == NO_CLASS)


def _text(column: TextColumn) -> pa.Array:
    return pa.DictionaryArray.from_arrays(
        pa.array(column.codes, mask=column.codes < 0), pa.array(column.values, pa.string())
    ).cast(pa.string())
