"""Validation: a record batch becomes an `EventBatch`, and what cannot count becomes dead letters.

Invariant
    Every record of the batch is in exactly one of the two, in order, and its verdict does not depend
    on the other records of the batch. Nothing is raised for a value.

Positions are 0-based ordinals of the records of a source; a header is no record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..core.errors import ConfigError, InputError
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
from .columns import PER_SECOND, class_text, ids, instant, instants, number, numbers, plain, texts
from .dead_letters import DEAD_LETTER_SCHEMA, DeadLetter, DeadLetters
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

OPTIONS = {
    "score": "--score", "label": "--label", "model": "--model", "time": "--time", "id": "--id",
    "weight": "--weight", "predicted": "--predicted", "slices": "--slice",
}  # fmt: skip
"""The command line's word for each field that names columns."""

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class EventFields:
    """Which columns of the input are what.

    score, label   column names
    positive       the label's value that is the positive class; every other one is then negative. None:
                   1/0, 1/-1 and true/false are understood. Numbers compare as numbers, the rest as text.
    model          the column of the model's name, or else
    model_name     the model of every event. Neither: the column "model" where there is one; if there
                   is none, the reader's own name for the source (a file's stem)
    time           column of event times; time_unit: what numbers in it count ("s", "ms", "us", "ns")
    id, weight     columns, or None
    predicted      column of predicted classes: labels are then classes too
    slices         each slice is the columns that it crosses: (("carrier",), ("carrier", "origin"))
    probabilities  scores are probabilities: outside [0, 1] they are dead letters

    Raises ConfigError, which names the field, the value and the remedy.
    """

    score: str = "score"
    label: str = "label"
    positive: str | None = None
    model: str | None = None
    model_name: str | None = None
    time: str | None = None
    time_unit: str = "s"
    id: str | None = None
    weight: str | None = None
    predicted: str | None = None
    slices: tuple[tuple[str, ...], ...] = ()
    probabilities: bool = False

    def __post_init__(self) -> None:
        if self.positive is not None:
            text = class_text(self.positive)
            if text is None:
                raise ConfigError(f"positive={self.positive!r}: give a value that the label can have")
            object.__setattr__(self, "positive", text)
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("slices", "probabilities", "positive"):
                continue
            if value is None and field.default is None:
                continue
            if not isinstance(value, str) or not value:
                what = "a name" if field.name == "model_name" else "the name of a column"
                raise ConfigError(f"{field.name}={value!r}: give {what}, as text")
        if self.model is not None and self.model_name is not None:
            raise ConfigError(
                f"model={self.model!r} and model_name={self.model_name!r}: give one of them, the column "
                "with the models' names or the one name of them all"
            )
        if self.time_unit not in PER_SECOND:
            raise ConfigError(f"time_unit={self.time_unit!r}: give one of {', '.join(PER_SECOND)}")
        if not isinstance(self.probabilities, bool):
            raise ConfigError(f"probabilities={self.probabilities!r}: give True or False")
        object.__setattr__(self, "slices", self._checked_slices())

    def _checked_slices(self) -> tuple[tuple[str, ...], ...]:
        asked: object = self.slices
        if isinstance(asked, str) or not isinstance(asked, Iterable):
            raise ConfigError(
                f"slices={asked!r}: give a tuple of slices, each a tuple of the columns that it crosses"
            )
        checked: list[tuple[str, ...]] = []
        for one in asked:
            columns = (one,) if isinstance(one, str) else tuple(one)
            if not columns or not all(isinstance(name, str) and name for name in columns):
                raise ConfigError(f"slices={asked!r}: a slice is one or more names of columns")
            if len(set(columns)) < len(columns):
                raise ConfigError(f"slice {','.join(columns)!r} names a column twice; name each once")
            checked.append(columns)
        if len(set(checked)) < len(checked):
            raise ConfigError(f"slices={asked!r}: a slice is named twice; name each once")
        return tuple(checked)

    @property
    def slice_columns(self) -> tuple[str, ...]:
        """Every column that a slice uses, once, in the order asked."""
        return tuple(dict.fromkeys(name for one in self.slices for name in one))

    @property
    def roles(self) -> tuple[tuple[str, str], ...]:
        """(field, column) of every column that is needed; a column may serve several fields."""
        single = ("score", "label", "model", "time", "id", "weight", "predicted")
        named = ((role, getattr(self, role)) for role in single)
        return (
            *((role, column) for role, column in named if column is not None),
            *(("slices", column) for column in self.slice_columns),
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is needed, once."""
        return tuple(dict.fromkeys(column for _, column in self.roles))

    def resolved(self, columns: Iterable[str], default_model: str | None = None) -> EventFields:
        """Settle where the model comes from, for an input that has these columns.

        >>> EventFields().resolved(["score", "label"], "churn").model_name
        'churn'
        """
        if self.model is not None or self.model_name is not None:
            return self
        if "model" in columns or default_model is None:
            return replace(self, model="model")
        return replace(self, model_name=default_model)


class _Faults:
    """What is wrong with which rows. One event can have several faults; its reason tells them all."""

    def __init__(self) -> None:
        self.reasons: dict[int, str] = {}

    def add(self, bad: BoolArray, role: str, column: pa.Array, fault: Callable[[object], str]) -> None:
        """Note the rows where `bad` holds; `fault` puts one value into words."""
        rows = np.flatnonzero(bad)
        if not len(rows):
            return
        words: dict[object, str] = {}
        for row, value in zip(rows.tolist(), _values(column.take(pa.array(rows))), strict=True):
            known = value if isinstance(value, str) else None
            said = words.get(known) if known else None
            if said is None:
                said = f"{role}: {'missing' if value is None or value == '' else fault(value)}"
                if known and len(words) < 10_000:
                    words[known] = said
            before = self.reasons.get(row)
            self.reasons[row] = said if before is None else f"{before}; {said}"


def _values(column: pa.Array) -> list[object]:
    column = plain(column)
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.string())
    values: list[object] = column.to_pylist()
    return values


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"


def _number_fault(value: object) -> str:
    found = number(value)
    if found is None:
        return f"{_shown(value)} is not a number"
    return f"{_shown(value)} is not finite"


def _score_fault(value: object) -> str:
    found = number(value)
    if found is not None and math.isfinite(found):
        return f"{_shown(value)} is no probability, which lies between 0 and 1"
    return _number_fault(value)


def _weight_fault(value: object) -> str:
    found = number(value)
    if found is not None and math.isfinite(found):
        return f"{_shown(value)} is not above 0"
    return _number_fault(value)


def _label_fault(value: object) -> str:
    if isinstance(value, float) and math.isnan(value):
        return "missing"
    return f"{_shown(value)} is none of 1, 0, -1, true, false; name the positive class with --positive"


def _class_fault(_: object) -> str:
    return "missing"


def _time_fault(unit: str) -> Callable[[object], str]:
    def fault(value: object) -> str:
        found = number(value)
        if found is None or not math.isfinite(found):
            likely = instant(str(value)[:10]) is not None
            form = "" if likely else f" (RFC 3339, a date, or a number in {unit})"
            return f"{_shown(value)} is not a time{form}"
        return f"{_shown(value)} in {unit} is not within the years 1 to 9999; set --time-unit"

    return fault


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return the column; all of it missing where the batch does not have it."""
    places = batch.schema.get_all_field_indices(name)
    if len(places) > 1:
        raise InputError(f"the column {name!r} is there {len(places)} times; give each its own name")
    return batch.column(places[0]) if places else pa.nulls(batch.num_rows, pa.string())


def _labels(classes: TextColumn, fields: EventFields) -> Int8Array:
    """int8[n]; NO_CLASS where the label is missing, unknown, or has no positive class to compare with."""
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
) -> tuple[EventBatch, DeadLetters]:
    """Split records into events and dead letters. O(n), by columns; only faults cost Python per row.

    batch           columns of any types; those that `fields` does not name matter to `raw` alone, and a
                    column that it names and the batch lacks is missing in every record
    source          name of the partition that the records come from, `partition` its place among all
    first_position  ordinal of the first record in its source, or -1: unknown
    positions       ordinal of every record, where they are not consecutive

    The events' `high_water` is the greatest time in this batch. Raises InputError where a needed column
    is there twice.
    """
    n = batch.num_rows
    fields = fields.resolved(batch.schema.names)
    faults = _Faults()

    if fields.model is not None:
        column = _column(batch, fields.model)
        models = texts(column)
        faults.add(models.codes < 0, "model", column, _class_fault)
    else:
        models = TextColumn(np.zeros(n, np.int32), (str(fields.model_name),))

    column = _column(batch, fields.score)
    scores = numbers(column)
    bad = ~np.isfinite(scores)
    if fields.probabilities:
        bad |= ~((scores >= 0.0) & (scores <= 1.0))
    faults.add(bad, "score", column, _score_fault)

    column = _column(batch, fields.label)
    classes = texts(column, class_text)
    labels = _labels(classes, fields)
    if fields.positive is None and fields.predicted is None:
        faults.add(labels == NO_CLASS, "label", column, _label_fault)
    else:
        faults.add(classes.codes < 0, "label", column, _class_fault)

    predicted = times = weights = None
    if fields.predicted is not None:
        column = _column(batch, fields.predicted)
        predicted = texts(column, class_text)
        faults.add(predicted.codes < 0, "predicted", column, _class_fault)
    if fields.time is not None:
        column = _column(batch, fields.time)
        times = instants(column, fields.time_unit)
        faults.add(times == NO_TIME, "time", column, _time_fault(fields.time_unit))
    if fields.weight is not None:
        column = _column(batch, fields.weight)
        weights = numbers(column)
        faults.add(~((weights > 0.0) & np.isfinite(weights)), "weight", column, _weight_fault)

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
        letters = _dead_letters(batch, events, faults, places)
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
    batch: pa.RecordBatch, events: EventBatch, faults: _Faults, places: Int64Array | None
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
                json_objects(batch.take(pa.array(rows))),
            ],
            schema=DEAD_LETTER_SCHEMA,
        )
    )
