"""Turns an instance of named features into numbers in columns, for learners that take single instances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..arrays import FloatArray
from ..encoding.json import text_of
from ..errors import InputError

Column = str | tuple[str, str]
"""The key of a column: the name of a number, or the name and value of a text. The column of a text is 1 for
this value, else 0.
"""


def columns_head(columns: Iterable[Column]) -> list[str | list[str]]:
    """Return columns in a form that JSON stores: each is a name, or a list of a name and a text value."""
    return [column if isinstance(column, str) else [*column] for column in columns]


def columns_of_head(head: object) -> dict[Column, int]:
    """Return the place of each column, from the result of `columns_head`.

    Raises ValueError for any other value.
    """
    if not isinstance(head, list):
        raise ValueError("there is no list of columns")  # noqa: TRY004 - of all wrong content
    columns: dict[Column, int] = {}
    for place, each in enumerate(head):
        if isinstance(each, list):
            name, text = each
            columns[text_of(name), text_of(text)] = place
        else:
            columns[text_of(each)] = place
    if len(columns) < len(head):
        raise ValueError("a column is there twice")
    return columns


MOST = 1e150
"""The largest size of a feature, of either sign: sums of their squares are finite."""


def columns_of(x: Mapping[str, Any]) -> list[tuple[Column, float]]:
    """Return the columns of an instance with their values, without missing values.

    Raises InputError for a value that is neither a finite number nor text.
    """
    if not isinstance(x, Mapping):
        raise InputError(f"features are of type {type(x).__name__}: give a mapping of names to values")
    found: list[tuple[Column, float]] = []
    for name, value in x.items():
        if isinstance(value, str):
            found.append(((name, value), 1.0))
            continue
        if value is None:
            continue
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"feature {name!r} is {value!r}; give a finite number, or text") from None
        if abs(number) > MOST:
            raise InputError(f"feature {name!r} is {value!r}; give a finite number, or text; up to {MOST:g}")
        if number == number:
            found.append((name, number))
    return found


def ranges_of(features: Any) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest value of each column, (m,), of rows, dense or sparse. O(values)."""
    ends = features.min(axis=0), features.max(axis=0)
    low, high = (
        np.asarray(each.toarray() if hasattr(each, "toarray") else each, np.float64).ravel() for each in ends
    )
    return low, high


def sparse_squares(rows: Any, weights: FloatArray, mean: FloatArray, total: float) -> FloatArray:
    """Return the weighted sums of squares around the mean of each column, (m,), of CSR rows.

    total  sum of the weights.

    Entries that the matrix does not store are 0. O(entries + columns).
    """
    of_entries = np.repeat(weights, np.diff(rows.indptr))
    apart = rows.data - mean[rows.indices]
    present = np.bincount(rows.indices, of_entries, len(mean))
    squares = np.bincount(rows.indices, of_entries * apart * apart, len(mean))
    return np.asarray(squares + np.maximum(0.0, total - present) * mean * mean, np.float64)


def check_size(low: FloatArray, high: FloatArray) -> None:
    """Raise InputError if a feature is larger than `MOST`, by its least and greatest value, (m,) each."""
    size = np.maximum(-low, high)
    far = np.flatnonzero(size > MOST)
    if len(far):
        raise InputError(
            f"feature {far[0]} has a value of size {size[far[0]]:g}, and squares of more than {MOST:g} are "
            "beyond what a float holds; divide the feature"
        )
