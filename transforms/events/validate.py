"""Validation: splits a chunk of records into a batch (such as an `EventBatch`) and dead letters.

Invariant
    Every record of the chunk is either in the batch or in the dead letters, in order. Whether a record is
    valid does not depend on other records of the chunk. Whether a record is late depends on the times before
    it in its source. No value raises an error.

Positions in files are 0-based ordinals of the records; a header is not a record.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...core.errors import InputError
from ...core.events.batch import EventBatch
from ...core.events.columns import IdColumn, TextColumn
from ...core.events.unjoined import LabelBatch, PredictionBatch
from .check import Check
from .chunk import Chunk
from .dead_letters import DeadLetters
from .fields import EventFields, Role
from .lateness import Timing


def validate_as(
    role: Role,
    chunk: Chunk,
    fields: EventFields,
    source: str,
    partition: int,
    timing: Timing,
    located: bool = False,
) -> tuple[EventBatch | PredictionBatch | LabelBatch, DeadLetters]:
    """Split the records of a chunk into a batch of their role and dead letters.

    O(n), by columns; only faults cost Python per row.

    chunk      columns of any types. Columns that `fields` does not name are used only for raw records. A
               column that `fields` names and the chunk lacks is missing in every record
    source     the name of the partition of the records; `partition` is this partition's number.
    timing     the limits for times; late records are dead letters of the kind "late".
    located    whether events keep their positions, so that an event refused later can be identified.

    A prediction needs an id and a time, but no label. A label has an id, a time and a label. An instance has
    features but no score; an instance without an id is identified by its position. All three keep their
    positions.

    The batch's `high_water` is the greatest time in it. Raises InputError where a needed column is there
    twice.
    """
    check = Check(chunk, fields, source, partition, timing, located or role != "event")
    if role == "prediction":
        return _predictions(check)
    if role == "instance":
        return _instances(check)
    return _labels(check) if role == "label" else _events(check)


def _events(check: Check) -> tuple[EventBatch, DeadLetters]:
    models, scores = check.models(), check.scores()
    classes, labels = check.labels()
    predicted = check.predicted()
    times = check.times()
    events = EventBatch(
        models=models,
        scores=scores,
        labels=labels,
        times=times,
        ids=check.ids(),
        weights=check.weights(),
        label_classes=None if predicted is None else classes,
        predicted=predicted,
        slices=check.slices(),
        source=check.source,
        partition=check.partition,
    )
    return check.split(events)


def _predictions(check: Check) -> tuple[PredictionBatch, DeadLetters]:
    models, scores = check.models(), check.scores()
    predicted = check.predicted()
    times, found = check.times(), check.ids(needed=True)
    predictions = PredictionBatch.of(
        models=models,
        scores=scores,
        times=times,
        ids=found,
        weights=check.weights(),
        predicted=predicted,
        slices=check.slices(),
        source=check.source,
        partition=check.partition,
    )
    events, letters = check.split(predictions.events)
    return PredictionBatch(events), letters


def _instances(check: Check) -> tuple[EventBatch, DeadLetters]:
    fields = check.fields
    classes, labels = check.labels()
    rows = len(labels)
    events = EventBatch(
        models=TextColumn.repeated("", rows),
        scores=np.zeros(rows),
        labels=labels,
        times=check.times(),
        ids=check.ids(needed=True),
        label_classes=classes if fields.classes else None,
        predicted=TextColumn.repeated("", rows) if fields.classes else None,
        slices=check.slices(),
        features=check.features(),
        source=check.source,
        partition=check.partition,
    )
    instances, letters = check.split(events)
    if fields.id is None and instances.positions is not None:
        names = (f"{check.partition}:{position}" for position in instances.positions.tolist())
        instances = replace(instances, ids=IdColumn.of([*names]))
    return instances, letters


def _labels(check: Check) -> tuple[LabelBatch, DeadLetters]:
    classes, labels = check.labels()
    times, found = check.times(), check.ids(needed=True)
    if times is None or found is None:
        raise InputError(f"labels of {check.source!r} need a time and an id; name their columns")
    fields = check.fields
    made = LabelBatch(
        found,
        times,
        labels,
        None if fields.predicted is None and fields.positive is None else classes,
        source=check.source,
        partition=check.partition,
    )
    return check.split(made)
