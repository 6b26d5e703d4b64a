"""Validation: splits a chunk of records into a batch (such as an `EventBatch`) and dead letters.

`Check` reads and checks the columns of the chunk one by one. `validate_as` makes the batch of a role.

Invariant
    Every record of the chunk is either in the batch or in the dead letters, in order. Whether a record is
    valid does not depend on other records of the chunk. Whether a record is late depends on the times before
    it in its source. No value raises an error.

Positions in files are 0-based ordinals of the records; a header is not a record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from ...core.arrays import BoolArray, FloatArray, Int8Array, Int64Array
from ...core.errors import InputError
from ...core.events.batch import NO_CLASS, EventBatch, LabelBatch, PredictionBatch
from ...core.events.columns import IdColumn, TextColumn
from ...core.events.numbers import number
from ...core.events.rejected import Reason, details_of, in_words
from ...core.events.times import NO_TIME
from ...core.settings.durations import duration_text
from .columns import class_text, ids, instants, numbers, read_scores, text_of, texts
from .dead_letters import NO_LETTERS, Chunk, DeadLetters, known_of, seconds, texts_of
from .doubts.classes import tell_predictions
from .doubts.labels import tell_labels
from .doubts.units import tell_doubt
from .faults import (
    Fault,
    Faults,
    Verdict,
    ahead_verdict,
    feature_verdict,
    label_verdict,
    score_verdict,
    time_verdict,
    weight_verdict,
)
from .fields import EventFields, Role
from .labels import ClassReader, binary_labels
from .lateness import Timing
from .periods import column_at, no_number
from .text import json_rows

MODEL_REMEDY = "; name its column with model=, or one name for all with model_name="
"""The remedy for a record without a model, if the settings do not say where to find the model."""

_Batch = TypeVar("_Batch", EventBatch, LabelBatch)
_Column = TypeVar("_Column", Int64Array, Int8Array, FloatArray, TextColumn, IdColumn, IdColumn | None)


@dataclass
class Check:
    """The records of one chunk, and their faults, while the chunk is checked.

    See `validate_as` for the fields.

    copies  how many events each record is: one for each column of scores. The events of a record are
            neighbours.
    """

    chunk: Chunk
    fields: EventFields
    source: str
    partition: int
    timing: Timing
    located: bool
    copies: int = 1
    faults: Faults = field(default_factory=Faults)

    def _column(self, name: str) -> pa.Array:
        """Return the column with this name; a column of nulls if the records lack it."""
        batch = self.chunk.batch
        places = batch.schema.get_all_field_indices(name)
        if len(places) > 1:
            raise InputError(f"the column {name!r} is there {len(places)} times; give each its own name")
        return column_at(batch, places[0]) if places else pa.nulls(batch.num_rows, pa.string())

    def _note(
        self,
        bad: BoolArray,
        role: str,
        name: str,
        column: pa.Array,
        verdict: Verdict | None = None,
        missing: str = "",
    ) -> None:
        """Store a fault of records: all events of a record have the fault. See `Faults.add`."""
        for start in range(self.copies):
            self.faults.add(bad, role, name, column, verdict, missing, start, self.copies)

    def _of_events(self, column: _Column) -> _Column:
        """Return the column of events for a column of records."""
        if column is None or self.copies == 1:
            return column
        rows = np.repeat(np.arange(self.chunk.batch.num_rows), self.copies)
        taken: _Column = column[rows] if isinstance(column, np.ndarray) else column.take(rows)
        return taken

    def _texts(
        self, role: str, name: str, read: Callable[[object], str | None] = text_of, remedy: str = ""
    ) -> TextColumn:
        """Read a column of text; each missing value is a fault."""
        column = self._column(name)
        found = texts(column, read)
        self._note(found.codes < 0, role, name, column, missing=remedy)
        return found

    def models(self) -> TextColumn:
        """Read the models' names."""
        fields = self.fields.resolved(self.chunk.batch.schema.names)
        if fields.model is None:
            found = TextColumn.repeated(str(fields.model_name), self.chunk.batch.num_rows)
        else:
            found = self._texts("model", fields.model, remedy="" if self.fields.model else MODEL_REMEDY)
        if not (names := fields.scores):
            return found
        codes = np.add.outer(found.codes * len(names), np.arange(len(names))).astype(np.int32)
        codes[found.codes < 0] = -1
        values = (f"{model}/{name}" if model else name for model in found.values for name in names)
        return TextColumn(codes.ravel(), tuple(values))

    def scores(self) -> FloatArray:
        """Read the scores."""
        found = []
        for place, name in enumerate(self.fields.score_columns):
            column = self._column(name)
            scores = read_scores(column)
            bad = ~np.isfinite(scores)
            if self.fields.probabilities:
                bad |= ~((scores >= 0.0) & (scores <= 1.0))
            self.faults.add(bad, "score", name, column, score_verdict, start=place, step=self.copies)
            found.append(scores)
        return found[0] if self.copies == 1 else np.stack(found, axis=1).ravel()

    def labels(self) -> tuple[TextColumn, Int8Array]:
        """Read the labels, as classes and as 1 and 0."""
        fields = self.fields
        column = self._column(fields.label)
        classes = texts(column, class_text)
        labels = binary_labels(classes, fields)
        tell_labels(fields, classes)
        if fields.positive is not None or fields.predicted is not None or fields.classes:
            self._note(classes.codes < 0, "label", fields.label, column)
        else:
            self._note(labels == NO_CLASS, "label", fields.label, column, label_verdict)
        return self._of_events(classes), self._of_events(labels)

    def predicted(self) -> TextColumn | None:
        """Read the predicted classes, if there are any."""
        if (name := self.fields.predicted) is None:
            return None
        classes = self._texts("predicted", name, class_text)
        tell_predictions(self.fields, classes)
        return self._of_events(classes)

    def times(self) -> Int64Array | None:
        """Read the times, if there are any."""
        name = self.fields.time
        if name is None:
            return None
        column = self._column(name)
        unit, form = self.fields.time_unit, self.fields.time_format
        times = instants(column, unit, form)
        self._note(times == NO_TIME, "time", name, column, time_verdict(unit, form, column.type))
        tell_doubt(name, column, times, unit, form)
        if self.timing.ahead is not None:
            latest = self.timing.now + self.timing.ahead
            self._note(times > latest, "time", name, column, ahead_verdict)
        return self._of_events(times)

    def weights(self) -> FloatArray | None:
        """Read the weights, if there are any."""
        name = self.fields.weight
        if name is None:
            return None
        column = self._column(name)
        weights = numbers(column)
        bad = ~((weights > 0.0) & np.isfinite(weights))
        self._note(bad, "weight", name, column, weight_verdict)
        return self._of_events(weights)

    def ids(self, *, needed: bool = False) -> IdColumn | None:
        """Read the ids, if there are any."""
        name = self.fields.id
        if name is None:
            return None
        column = self._column(name)
        found = ids(column)
        if needed:
            self._note(found.lengths < 0, "id", name, column)
        return self._of_events(found)

    def slices(self) -> tuple[tuple[str, TextColumn], ...]:
        """Read the columns of slices."""
        columns = self.fields.slice_columns
        return tuple((name, self._of_events(texts(self._column(name)))) for name in columns)

    def features(self) -> tuple[tuple[str, FloatArray], ...]:
        """Read the numeric features. NaN is a missing value; infinity, or no number, is a fault."""
        found = []
        for name in self.fields.features:
            column = no_number(self._column(name))
            values = numbers(column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column)
            bad = np.isinf(values)
            if not pa.types.is_floating(column.type):
                for row in np.flatnonzero(np.isnan(values)).tolist():
                    value = column[row].as_py()
                    bad[row] = value is not None and number(value) is None
            self.faults.add(bad, "feature", name, column, feature_verdict)
            found.append((name, values))
        return tuple(found)

    def split(self, read: _Batch) -> tuple[_Batch, DeadLetters]:
        """Return the valid records that are in time as one batch, and dead letters of the other records."""
        n, places = len(read), self.chunk.places()
        if places is not None:
            places = self._of_events(places)
        keep = np.ones(n, np.bool_)
        keep[list(self.faults)] = False
        late, behind = self.timing.late(read.times, keep)
        keep[late] = False
        kept = np.flatnonzero(keep)
        letters = NO_LETTERS
        if len(kept) < n:
            letters = self._dead_letters(read, places, late, behind)
            read = read.take(kept)
        positions = places[kept] if places is not None and self.located else None
        return replace(read, source=self.source, positions=positions), letters

    def _dead_letters(
        self, read: EventBatch | LabelBatch, places: Int64Array | None, late: Int64Array, behind: Int64Array
    ) -> DeadLetters:
        """Return a dead letter for every row that has a fault or is late, in order."""
        batch, raw = self.chunk.batch, self.chunk.raw
        allowed = self.timing.lateness or 0
        sentences = details_of(
            behind,
            lambda gap: (
                f"{in_words(gap)} behind the greatest time before it; {duration_text(allowed)} is allowed"
            ),
        ).to_list()
        whys = self.faults | {
            row: Fault(Reason.LATE, None, None, str(sentence))
            for row, sentence in zip(late.tolist(), sentences, strict=True)
        }
        rows = np.fromiter(sorted(whys), np.int64, len(whys))
        records = rows // self.copies
        reasons, columns, values, details = zip(*(whys[row] for row in rows.tolist()), strict=True)
        if self.chunk.rows is not None:
            numbers_in_message = self.chunk.rows[records].tolist()
            details = tuple(
                f"{detail} (row {number} of the message)"
                for detail, number in zip(details, numbers_in_message, strict=True)
            )
        is_late = np.isin(rows, late)
        gaps = np.full(len(rows), -1)
        gaps[is_late] = behind
        found = {
            **known_of(read.take(rows)),
            "kind": pa.array(["invalid", "late"]).take(pa.array(is_late.astype(np.int8))),
            "reason": pa.array([reason.value for reason in reasons], pa.string()),
            "source": texts_of(TextColumn.repeated(self.source, len(rows))),
            "position": None if places is None else pa.array(places[rows]),
            "raw": json_rows(batch, records) if raw is None else raw(records),
            "field": pa.array(columns, pa.string()),
            "value": pa.array(values, pa.string()),
            "detail": pa.array(details, pa.string()),
            "gap_seconds": seconds(gaps),
            "limit_seconds": seconds(np.where(is_late, allowed, -1)),
        }
        return DeadLetters.of_columns(found, len(rows))


def validate_as(
    role: Role,
    chunk: Chunk,
    fields: EventFields,
    source: str,
    partition: int,
    timing: Timing,
    located: bool = False,
) -> tuple[EventBatch | PredictionBatch | LabelBatch, DeadLetters]:
    """Split the records of a chunk into a batch of their role and dead letters. O(n), by columns.

    An event, or a prediction, with several columns of scores becomes one event for each column: the batch and
    the dead letters are those of a chunk in the long form, with a row for each event. Only faults cost Python
    per row.

    chunk      columns of any types. Columns that `fields` does not name are used only for raw records. A
               column that `fields` names and the chunk lacks is missing in every record
    source     the name of the partition of the records; `partition` is this partition's number.
    timing     the limits for times; late records are dead letters of the kind "late".
    located    whether events keep their positions, so that an event refused later can be identified.

    A prediction needs an id and a time, but no label. A label has an id, a time and a label. An instance has
    features but no score; an instance without an id is identified by its position. All three keep their
    positions.

    The batch's `high_water` is the greatest time in it. Raises InputError if a needed column is there twice.
    """
    copies = max(len(fields.score_columns), 1) if role in ("event", "prediction") else 1
    check = Check(chunk, fields, source, partition, timing, located or role != "event", copies)
    if role == "label":
        return _labels(check)
    if role == "instance":
        return _instances(check)
    return _class_events(check, role) if fields.class_scores else _events(check, role)


def _events(check: Check, role: Role) -> tuple[EventBatch | PredictionBatch, DeadLetters]:
    models, scores = check.models(), check.scores()
    given = check.labels() if role == "event" else None
    columns: dict[str, Any] = {
        "models": models,
        "scores": scores,
        "predicted": check.predicted(),
        "times": check.times(),
        "ids": check.ids(needed=given is None),
        "weights": check.weights(),
        "slices": check.slices(),
    }
    if given is None:
        events, letters = check.split(PredictionBatch.of(**columns).events)
        return PredictionBatch(events), letters
    classes, labels = given
    known_classes = None if columns["predicted"] is None else classes
    return check.split(EventBatch(labels=labels, label_classes=known_classes, **columns))


def _class_events(check: Check, role: Role) -> tuple[EventBatch | PredictionBatch, DeadLetters]:
    """Return events, or predictions, with a score of each class."""
    reader = ClassReader(check.fields, check._column, check.faults)
    is_event = role == "event"
    columns: dict[str, Any] = {"models": check.models(), **reader.scores_and_decisions()}
    columns |= reader.labels() if is_event else {}
    columns |= {"times": check.times(), "ids": check.ids(needed=not is_event), "weights": check.weights()}
    columns["slices"] = check.slices()
    if is_event:
        return check.split(EventBatch.of_classes(**columns))
    events, letters = check.split(PredictionBatch.of(**columns).events)
    return PredictionBatch(events), letters


def _instances(check: Check) -> tuple[EventBatch, DeadLetters]:
    fields = check.fields
    if fields.class_names:
        classes = ClassReader(fields, check._column, check.faults).classes("label", fields.label)
        labels = binary_labels(classes, fields)
    else:
        classes, labels = check.labels()
    nothing = TextColumn.repeated("", len(labels))
    events = EventBatch(
        models=nothing,
        scores=np.zeros(len(labels)),
        labels=labels,
        times=check.times(),
        ids=check.ids(needed=True),
        label_classes=classes if fields.classes else None,
        predicted=nothing if fields.classes else None,
        slices=check.slices(),
        features=check.features(),
    )
    instances, letters = check.split(events)
    if fields.id is None and instances.positions is not None:
        names = (f"{check.partition}:{position}" for position in instances.positions.tolist())
        instances = replace(instances, ids=IdColumn.of([*names]))
    return instances, letters


def _labels(check: Check) -> tuple[LabelBatch, DeadLetters]:
    fields = check.fields
    columns: dict[str, Any] = {}
    if fields.class_scores:
        columns = ClassReader(check.fields, check._column, check.faults).labels()
        labels = np.full(check.chunk.batch.num_rows, NO_CLASS, np.int8)
    else:
        classes, labels = check.labels()
        if fields.predicted is not None or fields.positive is not None:
            columns["label_classes"] = classes
    times, found = check.times(), check.ids(needed=True)
    if times is None or found is None:
        raise InputError(f"labels of {check.source!r} need a time and an id; name their columns")
    return check.split(LabelBatch(found, times, labels, **columns))
