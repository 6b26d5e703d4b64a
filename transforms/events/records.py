"""Record batches made of Python records, whatever their values."""

from __future__ import annotations

import datetime
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa

from ...core.events.moments import beam_micros, instant, is_period
from ...core.events.numbers import decimal_text
from ...core.events.times import AFTER_LAST_TIME, EPOCH, FIRST_TIME
from .columns import json_text, text_of, valid_text

_EPOCH = datetime.datetime(1970, 1, 1)
_SCALARS = (bool, int, float, str, bytes, datetime.datetime, datetime.date, Decimal)


def _python(value: object) -> object:
    """Return a scalar in a form that is safe for Arrow, which ends the process for some nested values.

    Numpy scalars become Python's scalars, pandas' missing values become None, all other values become text.
    """
    if isinstance(value, np.generic):
        value = _moment(value) if isinstance(value, np.datetime64 | np.timedelta64) else value.item()
    if (micros := beam_micros(value)) is not None and FIRST_TIME <= micros < AFTER_LAST_TIME:
        return EPOCH + datetime.timedelta(microseconds=micros)
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, np.ndarray):
        return json_text(value)
    return value if type(value) in _SCALARS else _as_text(value)


def _moment(value: np.datetime64 | np.timedelta64) -> datetime.datetime | str | None:
    """Return a moment of numpy as a datetime; a moment out of range, or a span, as text."""
    if np.isnat(value):
        return None
    micros = instant(value)
    return repr(value) if micros is None else _EPOCH + datetime.timedelta(microseconds=micros)


def _as_text(value: object) -> str | None:
    return value.isoformat() if isinstance(value, datetime.date) else text_of(value)


def column_of(values: Sequence[object], *, as_numbers: bool, as_times: bool = False) -> pa.Array:
    """Return Python values as a column; values of several types become text. No value raises an error.

    as_numbers  whether NaN is a number that is not finite; otherwise NaN is a missing value
    as_times    whether the values are times
    """
    if as_numbers or as_times:  # else the text of a Period, such as "2024", would be read as a number
        values = [repr(value) if is_period(value) else value for value in values]
    kinds = set(map(type, values)) - {type(None)}
    if not kinds <= {*_SCALARS}:
        values = [_python(value) for value in values]
        kinds = set(map(type, values)) - {type(None)}
    if not kinds:
        return pa.nulls(len(values))
    if len(kinds) == 1 or kinds == {int, float}:
        try:
            return pa.array(values)
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            pass  # the value is too large, or not UTF-8
    values = [_python(value) for value in values]
    words = [_number_text(value) if as_numbers else _as_text(value) for value in values]
    return pa.array(words, pa.string())


def _number_text(value: object) -> str | None:
    """Return a value of a column of numbers as text that is read as the same number."""
    if isinstance(value, Decimal):
        return decimal_text(value)
    return "nan" if isinstance(value, float) and math.isnan(value) else _as_text(value)


def _by_text(record: Mapping[str, object]) -> Mapping[str, object]:
    """Return a record whose keys are text.

    If two keys have the same text, the value of the key that was text counts.
    """
    if set(map(type, record)) <= {str}:
        return record
    others = {str(key): value for key, value in record.items() if not isinstance(key, str)}
    return {**others, **{str(key): value for key, value in record.items() if isinstance(key, str)}}


def records_to_batch(
    records: Iterable[Mapping[str, object]],
    columns: Iterable[str] | None = None,
    numbers: Collection[str] = (),
    times: Collection[str | None] = (),
) -> pa.RecordBatch:
    """Put Python records into columns. A missing key is a null; columns come in order of appearance.

    columns  the keys that become columns; other keys cost nothing. None = every key that occurs, with memory
             for every record and key.
    numbers  the columns where NaN is a number that is not finite. In other columns, NaN is a missing value.
    times    the columns of times

    Numbers, text, booleans, times, None and numpy's scalars keep their types. Lists, dicts and other objects
    become JSON. A column that mixes types other than int and float becomes text. No value raises an error.

    >>> records_to_batch([{"score": 0.5, "label": 1}, {"score": "n/a"}]).to_pylist()
    [{'score': '0.5', 'label': 1}, {'score': 'n/a', 'label': None}]
    """
    rows = [_by_text(record) for record in records]
    keys = dict.fromkeys((key for row in rows for key in row) if columns is None else columns)
    if not keys:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
    return pa.RecordBatch.from_arrays(
        [
            column_of([row.get(key) for row in rows], as_numbers=key in numbers, as_times=key in times)
            for key in keys
        ],
        names=[valid_text(key) for key in keys],
    )
