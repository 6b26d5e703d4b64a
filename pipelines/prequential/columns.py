"""Finds a source's features, their kinds, and the classes of its labels, from the first records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ...core.errors import ConfigError, InputError
from ...core.events.numbers import number
from ...core.settings.classes import class_name, class_text
from ...transforms.events.columns import numbers, texts
from ...transforms.events.dead_letters import Chunk
from ...transforms.events.fields import EventFields
from ...transforms.events.labels import LABELS
from ...transforms.events.periods import column_at, no_number
from ...transforms.files.formats import SourceFile
from ...transforms.sources.files.generated import GENERATED
from ...transforms.sources.files.read import read_batches

_SHOWN = 6


class InstanceColumns(NamedTuple):
    """The columns and classes found in the first records of a source.

    fields   the roles of the columns; features that are numbers stand apart from features that are text
    classes  the classes of the labels among the first records, sorted
    doubts   sentences on columns that count as text although most of their values are numbers
    """

    fields: EventFields
    classes: tuple[str, ...]
    doubts: tuple[str, ...] = ()


def instance_columns(
    source: SourceFile, fields: EventFields, features: Sequence[str], categories: Sequence[str]
) -> InstanceColumns:
    """Return the columns and classes of a source, from its first records, some 100,000.

    fields      the roles of the columns, without the features
    features    the columns to learn from; if empty, every column except label, time and id
    categories  the features to read as text, whatever their values

    A feature is a number if each of its values is a number or missing. Raises InputError for a source
    without records or features, or for labels that cannot be read as the fields say.
    """
    head = _head(source, fields)
    there = head.schema.names
    taken = {fields.label, fields.time, fields.id}
    told = taken | ({"id", "time"} if source.format == GENERATED else set())
    chosen = [*features] or [name for name in there if name not in told]
    for name in (*chosen, *categories):
        if name not in there:
            raise InputError(f"{source.name} has no column {name!r}; it has {', '.join(there[:30])}")
        if name in taken:
            raise ConfigError(f"--feature {name}: it is the label, the time or the id; name other columns")
    if stray := next((name for name in categories if name not in chosen), None):
        raise ConfigError(f"--category {stray} is none of the features; name it with --feature too")
    if twice := next((name for name in (fields.label, *chosen) if there.count(name) > 1), None):
        raise InputError(
            f"{source.name} has {there.count(twice)} columns named {twice!r}; give each its own name"
        )
    if not chosen:
        raise InputError(f"{source.name} has no columns beside the label, the time and the id to learn from")
    columns = {name: no_number(column_at(head, there.index(name))) for name in chosen}
    words = {name: _word(columns[name]) for name in chosen if name not in categories}
    text = [name for name in chosen if name in categories or words[name] is not None]
    known = replace(
        fields,
        features=tuple(name for name in chosen if name not in text),
        slices=tuple((name,) for name in text),
    )
    doubts = tuple(
        _doubt(name, columns[name], word)
        for name, word in words.items()
        if word is not None and 2 * word.numbers > word.there  # the column was probably meant to hold numbers
    )
    return InstanceColumns(known, _classes(source, head, known), doubts)


def _head(source: SourceFile, fields: EventFields) -> pa.RecordBatch:
    first: Chunk | None = next((chunk for chunk in read_batches(source) if chunk.batch.num_rows), None)
    if first is None:
        raise InputError(f"{source.name} has no records; give a source that has some")
    for what, name in (("label", fields.label), ("time", fields.time), ("id", fields.id)):
        if name is not None and name not in first.batch.schema.names:
            shown = ", ".join(first.batch.schema.names[:30])
            raise InputError(
                f"{source.name} has no column {name!r}; it has {shown}. Say which with --{what} COL"
            )
    return first.batch


class _Word(NamedTuple):
    """The evidence that a column is text.

    row      the row of the first value that is not a number; 0 if the column is empty
    numbers  how many values are numbers
    there    how many values are not missing
    """

    row: int
    numbers: int
    there: int


def _word(column: pa.Array) -> _Word | None:
    """Return the evidence that a column is text; None for a column whose values are all numbers.

    A missing value and NaN fit either kind of column.
    """
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_floating(kind) or pa.types.is_integer(kind):
        return None
    there = len(column) - column.null_count
    if not there:
        return _Word(0, 0, 0)
    is_number = ~np.isnan(numbers(column))
    is_there = column.is_valid().to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(~is_number & is_there).tolist():
        if number(column[row].as_py()) is None:
            return _Word(row, int(np.count_nonzero(is_number)), there)
    return None


def _doubt(name: str, column: pa.Array, word: _Word) -> str:
    return (
        f"{name} is text to the learners: {word.numbers:,} of its first {word.there:,} values are numbers, "
        f"and record {word.row + 1:,} has {column[word.row].as_py()!r}; mend it, or say --category {name} if "
        "that is meant"
    )


def _classes(source: SourceFile, head: pa.RecordBatch, fields: EventFields) -> tuple[str, ...]:
    found = texts(head.column(fields.label)).to_list()
    names = {class_text(label): class_name(label) for label in found if label is not None}
    classes = tuple(sorted(names.values()))
    shown = ", ".join(classes[:_SHOWN]) + (", ..." if len(classes) > _SHOWN else "")
    if not classes:
        raise InputError(
            f"{source.name}: the column {fields.label!r} is empty; name that of the labels with --label"
        )
    if fields.classes:
        return classes
    if fields.positive is None and names.keys().isdisjoint(LABELS):
        raise InputError(
            f"{source.name}: the labels in {fields.label!r} are {shown}, and none is 1, 0, true or false; "
            "name the positive one with --positive VALUE, or learn all of them with --class-scores '*'"
        )
    if fields.positive is not None and fields.positive not in names:
        raise InputError(
            f"--positive {fields.positive}: the first {head.num_rows:,} labels of {source.name} are {shown}; "
            "name one of them"
        )
    return classes
