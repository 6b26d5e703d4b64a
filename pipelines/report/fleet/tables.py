"""Roll-up rows, and rows of pairs, cut into series in order of time, each row once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....core.arrays import FloatArray, Int64Array
from ..report_rows import coded, floats

POINTS = 20_000
"""The most points of all charts of a section."""


class Series(NamedTuple):
    """The rows of one group, or of one pair and slice.

    names    the texts that name the series
    rows     places of its rows in the table, in order
    """

    names: tuple[str, ...]
    rows: Int64Array

    @property
    def name(self) -> str:
        """The first text, with the series' settings if the table has several (its second text)."""
        return " ".join(self.names)


def series_of_table(table: pa.Table, names: Sequence[str]) -> list[Series]:
    """Return the series of a table, in order of their names.

    names  columns of texts; rows of one series have equal texts, and one `config`

    Of rows that came twice, the later one in the table counts. If a series of the same names has rows of
    several settings, "(config HASH)" is the last of its texts. O(n log n).
    """
    texts = [pc.fill_null(table.column(name), "") for name in (*names, "config")]
    codes, labels = zip(*map(coded, texts), strict=True)
    moments = [np.nan_to_num(floats(table.column(name)), nan=-np.inf) for name in ("pane_start", "pane_end")]
    row = floats(table.column("row"))
    keys = (row, moments[1], moments[0], *codes[::-1])
    order = np.lexsort(keys)
    same = np.all([key[order[1:]] == key[order[:-1]] for key in keys], axis=0)
    order = order[np.append(~same, True)] if len(order) else order
    fresh = np.any([np.diff(code[order]) != 0 for code in codes], axis=0)
    parts = np.split(order, np.flatnonzero(fresh) + 1) if len(order) else []
    found = [tuple(label[code[part[0]]] for code, label in zip(codes, labels, strict=True)) for part in parts]
    named = [one[:-1] for one in found]
    return [
        Series(name if named.count(name) == 1 else (*name, f"(config {config})"), part)
        for name, (*_, config), part in zip(named, found, parts, strict=True)
    ]


def last_rows(table: pa.Table, series: Sequence[Series]) -> list[dict[str, Any]]:
    """Return the last row of each series. Times are microseconds."""
    places = pa.array([int(one.rows[-1]) for one in series], pa.int64())
    part = table.take(places)
    columns = {
        field.name: part.column(field.name).cast(pa.int64())
        if pa.types.is_timestamp(field.type)
        else part.column(field.name)
        for field in table.schema
    }
    rows: list[dict[str, Any]] = pa.table(columns).to_pylist()
    return rows


def drawn(series: Sequence[Series], most: int = POINTS) -> tuple[list[Int64Array], int]:
    """Return the rows of each series that a chart draws, and the step between them; the last row stays.

    Every row is drawn if there are `most` at most; else every second, third, ... one.
    """
    total = sum(len(one.rows) for one in series)
    step = max(1, -(-total // most))
    return [one.rows[::-1][::step][::-1] for one in series], step


def numbers(column: FloatArray, rows: Int64Array, digits: int = 5) -> list[float | None]:
    """Return values as JSON holds them: rounded, None for null."""
    return [None if not np.isfinite(value) else value for value in np.round(column[rows], digits).tolist()]
