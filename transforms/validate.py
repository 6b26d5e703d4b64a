"""Validation: a record batch becomes an `EventBatch`, and what cannot count becomes dead letters.

Invariant
    Every record of the batch is in exactly one of the two, in order, and its verdict does not depend
    on the other records of the batch. Nothing is raised for a value.

Positions are 0-based ordinals of the records of a source; a header is no record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ..core.errors import InputError
from ..core.events import (
    NEGATIVE,
    NO_CLASS,
    NO_TIME,
    POSITIVE,
    EventBatch,
    IdColumn,
    Int8Array,
    Int64Array,
    TextColumn,
)
from .columns import ids, instants, numbers, texts
from .dead_letters import DEAD_LETTER_SCHEMA, DeadLetter, DeadLetters, RawRecords
from .event_fields import EventFields
from .faults import Faults, class_verdict, label_verdict, score_verdict, time_verdict, weight_verdict
from .record_batches import records_to_batch
from .text_forms import json_objects

__all__ = [
    "DEAD_LETTER_SCHEMA",
    "DeadLetter",
    "DeadLetters",
    "EventFields",
    "records_to_batch",
    "validate",
]

LABELS = {"1": POSITIVE, "true": POSITIVE, "0": NEGATIVE, "-1": NEGATIVE, "false": NEGATIVE}
"""What a label may say where no positive class is named, by `class_text`."""

MODEL_REMEDY = "; name its column with model=, or one name for all with model_name="
"""For a record without a model, where nobody said where to find it."""


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return the column; all of it missing where the batch does not have it."""
    places = batch.schema.get_all_field_indices(name)
    if len(places) > 1:
        raise InputError(f"the column {name!r} is there {len(places)} times; give each its own name")
    return batch.column(places[0]) if places else pa.nulls(batch.num_rows, pa.string())


def binary_labels(classes: TextColumn, fields: EventFields) -> Int8Array:
    """Return the labels of classes, int8[n].

    NO_CLASS where a label is missing, unknown, or has no positive class to compare with.
    """
    if fields.positive is not None:
        of_class = [POSITIVE if value == fields.positive else NEGATIVE for value in classes.values]
    elif fields.predicted is not None:
        of_class = [NO_CLASS] * len(classes.values)
    else:
        of_class = [LABELS.get(value, NO_CLASS) for value in classes.values]
    return np.array([*of_class, NO_CLASS], np.int8)[classes.codes]


def validate(
    batch: pa.RecordBatch,
    fields: EventFields,
    *,
    source: str,
    partition: int,
    first_position: int,
    positions: Sequence[int] | Int64Array | None = None,
    raw: RawRecords | None = None,
) -> tuple[EventBatch, DeadLetters]:
    """Split records into events and dead letters. O(n), by columns; only faults cost Python per row.

    batch           columns of any types; those that `fields` does not name matter to `raw` alone, and a
                    column that it names and the batch lacks is missing in every record
    source          name of the partition that the records come from, `partition` its place among all
    first_position  ordinal of the first record in its source, or -1: unknown
    positions       ordinal of every record, where they are not consecutive
    raw             gives the whole records of rows, where the batch does not have all of their fields

    The events' `high_water` is the greatest time in this batch. Raises InputError where a needed column
    is there twice.
    """
    n = batch.num_rows
    nobody_named = fields.model is None
    fields = fields.resolved(batch.schema.names)
    faults = Faults()

    if fields.model is not None:
        column = _column(batch, fields.model)
        models = texts(column)
        faults.add(models.codes < 0, "model", column, class_verdict, MODEL_REMEDY if nobody_named else "")
    else:
        models = TextColumn(np.zeros(n, np.int32), (str(fields.model_name),))

    column = _column(batch, fields.score)
    scores = numbers(column)
    bad = ~np.isfinite(scores)
    if fields.probabilities:
        bad |= ~((scores >= 0.0) & (scores <= 1.0))
    faults.add(bad, "score", column, score_verdict)

    column = _column(batch, fields.label)
    classes = texts(column, fields.class_of)
    labels = binary_labels(classes, fields)
    if fields.positive is None and fields.predicted is None:
        faults.add(labels == NO_CLASS, "label", column, label_verdict)
    else:
        faults.add(classes.codes < 0, "label", column, class_verdict)

    predicted = times = weights = None
    if fields.predicted is not None:
        column = _column(batch, fields.predicted)
        predicted = texts(column, fields.class_of)
        faults.add(predicted.codes < 0, "predicted", column, class_verdict)
    if fields.time is not None:
        column = _column(batch, fields.time)
        times = instants(column, fields.time_unit)
        faults.add(times == NO_TIME, "time", column, time_verdict(fields.time_unit))
    if fields.weight is not None:
        column = _column(batch, fields.weight)
        weights = numbers(column)
        faults.add(~((weights > 0.0) & np.isfinite(weights)), "weight", column, weight_verdict)

    events = EventBatch(
        models=models,
        scores=scores,
        labels=labels,
        times=times,
        ids=None if fields.id is None else ids(_column(batch, fields.id)),
        weights=weights,
        label_classes=None if predicted is None else classes,
        predicted=predicted,
        slices=tuple((name, texts(_column(batch, name))) for name in fields.slice_columns),
        source=source,
        partition=partition,
        first_position=first_position,
    )
    places = None if positions is None else np.asarray(positions, np.int64)
    letters = DeadLetters.of(())
    if faults.reasons:
        letters = _dead_letters(batch, events, faults, places, raw)
        keep = np.ones(n, np.bool_)
        keep[list(faults.reasons)] = False
        kept = np.flatnonzero(keep)
        if first_position >= 0 and len(kept):
            first_position += int(kept[0])
        if places is not None:
            places = places[kept]
        events = events.take(kept)
    if places is not None and len(places):
        first_position = int(places[0])
    high_water = NO_TIME
    if events.times is not None and len(events):
        high_water = int(events.times.max())
    return replace(events, first_position=first_position, high_water=high_water), letters


def _dead_letters(
    batch: pa.RecordBatch,
    events: EventBatch,
    faults: Faults,
    places: Int64Array | None,
    raw: RawRecords | None,
) -> DeadLetters:
    rows = np.fromiter(sorted(faults.reasons), np.int64, len(faults.reasons))
    if places is not None:
        positions = pa.array(places[rows])
    elif events.first_position >= 0:
        positions = pa.array(rows + events.first_position)
    else:
        positions = pa.nulls(len(rows), pa.int64())
    times = pa.nulls(len(rows), pa.timestamp("us", "UTC"))
    if events.times is not None:
        known = events.times[rows]
        times = pa.array(known, mask=known == NO_TIME).cast(times.type)
    id_column: IdColumn | None = None if events.ids is None else events.ids.take(rows)
    return DeadLetters(
        pa.RecordBatch.from_arrays(
            [
                pa.array(["invalid"]).take(pa.array(np.zeros(len(rows), np.int8))),
                pa.array([faults.reasons[row] for row in rows.tolist()], pa.string()),
                pa.array([events.source]).take(pa.array(np.zeros(len(rows), np.int8))),
                positions,
                times,
                pa.array(events.models.take(rows).to_list(), pa.string()),
                pa.array([None] * len(rows) if id_column is None else id_column.to_list(), pa.string()),
                json_objects(batch.take(pa.array(rows))) if raw is None else raw(rows),
            ],
            schema=DEAD_LETTER_SCHEMA,
        ),
        TextColumn.of([faults.kinds[row] for row in rows.tolist()]),
    )
