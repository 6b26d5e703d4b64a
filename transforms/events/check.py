"""Checks the columns of a chunk one by one: converts the values, and finds the invalid records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np
import pyarrow as pa

from ...core.arrays import FloatArray, Int8Array, Int64Array
from ...core.errors import InputError
from ...core.events.batch import NEGATIVE, NO_CLASS, POSITIVE, EventBatch
from ...core.events.columns import IdColumn, TextColumn
from ...core.events.reasons import Reason
from ...core.events.rejected import details_of, in_words
from ...core.events.times import NO_TIME
from ...core.events.unjoined import LabelBatch
from ...core.settings.durations import duration_text
from .chunk import Chunk
from .columns import ids, instants, number, numbers, text_of, texts
from .dead_letters import NO_LETTERS, DeadLetters, known_of, seconds, texts_of
from .faults import (
    Fault,
    Faults,
    ahead_verdict,
    feature_verdict,
    label_verdict,
    score_verdict,
    time_verdict,
    weight_verdict,
)
from .fields import EventFields
from .lateness import Timing
from .text import json_objects
from .time_doubts import tell_doubt

MODEL_REMEDY = "; name its column with model=, or one name for all with model_name="
"""The remedy for a record without a model, if the settings do not say where to find the model."""

LABELS = {"1": POSITIVE, "true": POSITIVE, "0": NEGATIVE, "-1": NEGATIVE, "false": NEGATIVE}
"""The labels that are understood if no positive class is named, by their `class_text`."""

_Batch = TypeVar("_Batch", EventBatch, LabelBatch)
NO_ROWS = np.empty(0, np.int64)


def column_named(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return the column `name`; a column of nulls where the batch lacks it."""
    places = batch.schema.get_all_field_indices(name)
    if len(places) > 1:
        raise InputError(f"the column {name!r} is there {len(places)} times; give each its own name")
    return batch.column(places[0]) if places else pa.nulls(batch.num_rows, pa.string())


def binary_labels(classes: TextColumn, fields: EventFields) -> Int8Array:
    """Return the labels of classes, int8[n].

    A label is NO_CLASS if it is missing or unknown, or if there is no positive class to compare it with.
    """
    if fields.positive is not None:
        of_class = [POSITIVE if value == fields.positive else NEGATIVE for value in classes.values]
    elif fields.predicted is not None or fields.classes:
        of_class = [NO_CLASS] * len(classes.values)
    else:
        of_class = [LABELS.get(value, NO_CLASS) for value in classes.values]
    return np.array([*of_class, NO_CLASS], np.int8)[classes.codes]


class Check:
    """The records of one chunk, and their faults."""

    def __init__(
        self,
        chunk: Chunk,
        fields: EventFields,
        source: str,
        partition: int,
        timing: Timing,
        located: bool,
    ) -> None:
        self._chunk = chunk
        self._batch = chunk.batch
        self._nobody_named = fields.model is None
        self.fields = fields.resolved(chunk.batch.schema.names)
        self.source = source
        self.partition = partition
        self._timing = timing
        self._located = located
        self._faults = Faults()

    def _texts(
        self, role: str, name: str, read: Callable[[object], str | None] = text_of, remedy: str = ""
    ) -> TextColumn:
        """Read a column of text; each missing value is a fault."""
        column = column_named(self._batch, name)
        found = texts(column, read)
        self._faults.add(found.codes < 0, role, name, column, missing=remedy)
        return found

    def models(self) -> TextColumn:
        """Read the models' names."""
        name = self.fields.model
        if name is None:
            return TextColumn.repeated(str(self.fields.model_name), self._batch.num_rows)
        return self._texts("model", name, remedy=MODEL_REMEDY if self._nobody_named else "")

    def scores(self) -> FloatArray:
        """Read the scores."""
        column = column_named(self._batch, self.fields.score)
        scores = numbers(column)
        bad = ~np.isfinite(scores)
        if self.fields.probabilities:
            bad |= ~((scores >= 0.0) & (scores <= 1.0))
        self._faults.add(bad, "score", self.fields.score, column, score_verdict)
        return scores

    def labels(self) -> tuple[TextColumn, Int8Array]:
        """Read the labels, as classes and as 1 and 0."""
        fields = self.fields
        if fields.positive is not None or fields.predicted is not None or fields.classes:
            classes = self._texts("label", fields.label, fields.class_of)
            return classes, binary_labels(classes, fields)
        column = column_named(self._batch, fields.label)
        classes = texts(column, fields.class_of)
        labels = binary_labels(classes, fields)
        self._faults.add(labels == NO_CLASS, "label", fields.label, column, label_verdict)
        return classes, labels

    def predicted(self) -> TextColumn | None:
        """Read the predicted classes, if there are any."""
        name = self.fields.predicted
        return None if name is None else self._texts("predicted", name, self.fields.class_of)

    def times(self) -> Int64Array | None:
        """Read the times, if there are any."""
        name = self.fields.time
        if name is None:
            return None
        column = column_named(self._batch, name)
        unit, form = self.fields.time_unit, self.fields.time_format
        times = instants(column, unit, form)
        self._faults.add(times == NO_TIME, "time", name, column, time_verdict(unit, form))
        if form is None:
            tell_doubt(name, column, times, unit)
        if self._timing.ahead is not None:
            latest = self._timing.now + self._timing.ahead
            self._faults.add(times > latest, "time", name, column, ahead_verdict)
        return times

    def weights(self) -> FloatArray | None:
        """Read the weights, if there are any."""
        name = self.fields.weight
        if name is None:
            return None
        column = column_named(self._batch, name)
        weights = numbers(column)
        bad = ~((weights > 0.0) & np.isfinite(weights))
        self._faults.add(bad, "weight", name, column, weight_verdict)
        return weights

    def ids(self, *, needed: bool = False) -> IdColumn | None:
        """Read the ids, if there are any."""
        name = self.fields.id
        if name is None:
            return None
        column = column_named(self._batch, name)
        found = ids(column)
        if needed:
            self._faults.add(found.lengths < 0, "id", name, column)
        return found

    def slices(self) -> tuple[tuple[str, TextColumn], ...]:
        """Read the columns of slices."""
        return tuple((name, texts(column_named(self._batch, name))) for name in self.fields.slice_columns)

    def features(self) -> tuple[tuple[str, FloatArray], ...]:
        """Read the numeric features. NaN is a missing value; infinity, or no number, is a fault."""
        found = []
        for name in self.fields.features:
            column = column_named(self._batch, name)
            values = numbers(column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column)
            bad = np.isinf(values)
            if not pa.types.is_floating(column.type):
                for row in np.flatnonzero(np.isnan(values)).tolist():
                    value = column[row].as_py()
                    bad[row] = value is not None and number(value) is None
            self._faults.add(bad, "feature", name, column, feature_verdict)
            found.append((name, values))
        return tuple(found)

    def split(self, read: _Batch) -> tuple[_Batch, DeadLetters]:
        """Return the valid records that are in time, and dead letters of the others."""
        n, places = self._batch.num_rows, self._chunk.places()
        keep = np.ones(n, np.bool_)
        keep[list(self._faults.by_row)] = False
        late, behind = self._timing.late(read.times, keep)
        keep[late] = False
        kept = np.flatnonzero(keep)
        letters = NO_LETTERS
        if len(kept) < n:
            letters = self._dead_letters(read, places, late, behind)
            read = read.take(kept)
        first_position, high_water, positions = self._chunk.first_position, NO_TIME, None
        if len(kept):
            if places is not None:
                first_position = int(places[kept[0]])
            if read.times is not None:
                high_water = int(read.times.max())
        if self._located and places is not None:
            positions = places[kept]
        return replace(
            read, first_position=first_position, high_water=high_water, positions=positions
        ), letters

    def _dead_letters(
        self, read: EventBatch | LabelBatch, places: Int64Array | None, late: Int64Array, behind: Int64Array
    ) -> DeadLetters:
        """Return a dead letter for every row that has a fault or is late, in order."""
        batch, raw = self._batch, self._chunk.raw
        allowed = self._timing.lateness or 0
        sentences = details_of(
            behind,
            lambda gap: (
                f"{in_words(gap)} behind the greatest time before it; {duration_text(allowed)} is allowed"
            ),
        ).to_list()
        whys = self._faults.by_row | {
            row: Fault(Reason.LATE, None, None, str(sentence))
            for row, sentence in zip(late.tolist(), sentences, strict=True)
        }
        rows = np.fromiter(sorted(whys), np.int64, len(whys))
        reasons, columns, values, details = zip(*(whys[row] for row in rows.tolist()), strict=True)
        is_late = np.isin(rows, late)
        gaps = np.full(len(rows), -1)
        gaps[is_late] = behind
        found = {
            **known_of(read.take(rows)),
            "kind": pa.array(["invalid", "late"]).take(pa.array(is_late.astype(np.int8))),
            "reason": pa.array([reason.value for reason in reasons], pa.string()),
            "source": texts_of(TextColumn.repeated(self.source, len(rows))),
            "position": None if places is None else pa.array(places[rows]),
            "raw": json_objects(batch.take(pa.array(rows))) if raw is None else raw(rows),
            "field": pa.array(columns, pa.string()),
            "value": pa.array(values, pa.string()),
            "detail": pa.array(details, pa.string()),
            "gap_seconds": seconds(gaps),
            "limit_seconds": seconds(np.where(is_late, allowed, -1)),
        }
        return DeadLetters.of_columns(found, len(rows))
