"""An instance of named features as numbers in columns, for learners that take single instances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..arrays import FloatArray
from ..encoding.json import text_of
from ..errors import InputError

Column = str | tuple[str, str]
"""A number by its name; a text by its name and value, which is a column of 0 and 1."""


def columns_head(columns: Iterable[Column]) -> list[str | list[str]]:
    """Return columns in a form for JSON: each is a name, or a name and its text."""
    return [column if isinstance(column, str) else [*column] for column in columns]


def columns_of_head(head: object) -> dict[Column, int]:
    """Return the place of each column of `columns_head`. ValueError for any other head."""
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
"""Features may be so large, either sign: sums of their squares are finite."""


def columns_of(x: Mapping[str, Any]) -> list[tuple[Column, float]]:
    """Return columns and values of an instance, without missing values. Raises InputError."""
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
    """Raise InputError if the least or the greatest value of a feature, (m,) each, is beyond `MOST`."""
    size = np.maximum(-low, high)
    far = np.flatnonzero(size > MOST)
    if len(far):
        raise InputError(
            f"feature {far[0]} has a value of size {size[far[0]]:g}, and squares of more than {MOST:g} are "
            "beyond what a float holds; divide the feature"
        )
