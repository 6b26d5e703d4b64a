"""Instances that a matcher has found, in columns, in the order in which they became complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays import NO_INT64, Int32Array, Int64Array
from ..events.columns import TextColumn
from ..events.times import END_OF_TIME
from .window_instances import PairInstances

OWN = END_OF_TIME
"""The `moment` of an instance that is not an event whose wait has ended."""


class Instances(NamedTuple):
    """Instances in order: the model of each instance, labels, scores and times, and slice values.

    The values of each column of texts are in the order in which they first come.
    """

    models: TextColumn
    pairs: PairInstances
    slices: tuple[TextColumn, ...]

    def __len__(self) -> int:
        return len(self.models)


class Single(NamedTuple):
    """An instance that was found by itself, not with others of its batch; `Finding` describes the fields."""

    at: int
    moment: int
    number: int
    model: str
    label: int
    score: float
    against: float
    time: int
    slices: tuple[str, ...]


class Finding(NamedTuple):
    """Instances of a batch in columns, in any order. A number stands for a column whose values are all equal.

    at       the event at which an instance is complete
    moment   the time at which the wait of an event ended, if the instance is an event without a partner; else
             OWN
    number   the event that was given up, or the model's event
    place    the order of the instances of one event
    model    the number of the model's name
    row      the row of the batch that has the slice values
    """

    at: Int64Array
    moment: Any
    number: Any
    place: Any
    model: Int64Array
    label: Any
    score: Any
    against: Any
    time: Int64Array
    row: Int64Array


_TYPES = (np.int64, np.int64, np.int64, np.int64, np.int64, np.int8, np.float64, np.float64, np.int64)


def in_order(
    singles: Sequence[Single],
    findings: Sequence[Finding] = (),
    names: Sequence[str] = (),
    slices: Sequence[TextColumn] = (),
) -> Instances:
    """Put instances in order: by `at`, `moment`, `number` and `place`; `singles` are put in the same order.

    names, slices  of the batch of `findings`
    """
    index = {name: code for code, name in enumerate(names)}
    columns: list[Sequence[Any]] = [
        [np.broadcast_to(column, len(each.at)) for column in each[:-1]] for each in findings
    ]
    rows = np.concatenate([NO_INT64, *(each.row for each in findings)])
    if singles:
        at, moment, number, models, *values, _ = zip(*singles, strict=True)
        codes = [index.setdefault(model, len(index)) for model in models]
        columns.append([at, moment, number, range(len(at)), codes, *values])
    whole: list[Any] = [
        np.concatenate([np.asarray(part[place], kind) for part in columns] or [np.empty(0, kind)])
        for place, kind in enumerate(_TYPES)
    ]
    order = _order(*whole[:4])
    model, label, score, against, time = (column[order] for column in whole[4:])
    texts = [column.take(rows) for column in slices] if len(rows) else []
    if singles:
        own = [TextColumn.of([*each]) for each in zip(*(each.slices for each in singles), strict=True)]
        texts = [TextColumn.concat(each) for each in zip(texts, own, strict=True)] if texts else own
    return Instances(
        _by_appearance(TextColumn(model.astype(np.int32), tuple(index))),
        PairInstances(label, score, against, time),
        tuple(_by_appearance(TextColumn(column.codes[order], column.values)) for column in texts),
    )


def _order(at: Int64Array, moment: Int64Array, number: Int64Array, place: Int64Array) -> Int64Array:
    if len(moment) and moment.min() < OWN:
        return np.lexsort((place, number, moment, at))
    # nearly always: to sort by two numbers at once is twice as fast
    if not place.any() and len(at):
        least = int(number.min())
        spread = int(number.max()) - least + 1
        first = int(at.min())
        if (int(at.max()) - first + 1) * spread < END_OF_TIME:
            return np.argsort((at - first) * spread + (number - least), kind="stable")
    return np.lexsort((place, number, at))


def first_rows(codes: Int32Array | Int64Array, count: int) -> Int64Array:
    """Return the first row of each of `count` codes; the number of rows for a code that no row has. O(n).

    A negative code stands for null.
    """
    rows = np.flatnonzero(codes >= 0)[::-1]
    first = np.full(count, len(codes))
    first[codes[rows]] = rows  # numpy keeps the last of several rows: in this order that is the first row
    return first


def _by_appearance(column: TextColumn) -> TextColumn:
    """Return a column with its values in the order in which they first appear.

    Values that no row has are dropped.
    """
    count = len(column.values)
    first = first_rows(column.codes, count)
    order = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(column))]
    table = np.full(count + 1, -1, np.int32)
    table[order] = np.arange(len(order), dtype=np.int32)
    return TextColumn(table[column.codes], tuple(column.values[code] for code in order.tolist()))
