"""Rows as Arrow record batches, as Arrow tables and as pandas data frames.

`Rows.to_arrow` and `Rows.to_pandas` import this module when they are first called. Sinks import it at once. A
program that only evaluates never loads pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
from pyarrow import Table as Table

from ..arrays import FloatArray, Int8Array, Int32Array, Int64Array
from ..errors import MissingPackageError
from ..events.times import NO_TIME
from .columns import COLUMNS, COUNT_COLUMNS, TEXT_COLUMNS, TIME_COLUMNS

if TYPE_CHECKING:
    from pandas import DataFrame as DataFrame


class ColumnsOfRows(Protocol):
    """Rows in columns (`Rows`): the columns and methods that this module needs to make tables."""

    keys: tuple[tuple[str, str], ...]
    key_codes: Int32Array
    drift: Int8Array
    config: str

    def __len__(self) -> int: ...

    def integer(self, name: str) -> Int64Array:
        """Return a column of integers; NO_TIME stands for null."""

    def number(self, name: str) -> FloatArray:
        """Return a column of masses or measures; NaN stands for null."""

    def reason_texts(self) -> list[str | None]:
        """Return the column of reasons."""


def _field(name: str) -> pa.Field:
    if name in TEXT_COLUMNS:
        return pa.field(name, pa.string(), nullable=name == "reason")
    if name in COUNT_COLUMNS:
        return pa.field(name, pa.int64(), nullable=False)
    if name in TIME_COLUMNS:
        return pa.field(name, pa.timestamp("us", "UTC"))
    return pa.field(name, pa.bool_() if name == "drift" else pa.float64())


ROW_SCHEMA = pa.schema([_field(name) for name in COLUMNS])
"""The columns of a row, with their types, in every sink."""


def rows_to_arrow(rows: ColumnsOfRows) -> pa.RecordBatch:
    """Return rows as a record batch with ROW_SCHEMA. O(cells); Python only for each (model, slice)."""
    n = len(rows)
    codes = pa.array(np.ascontiguousarray(rows.key_codes))

    def column(name: str) -> pa.Array:
        if name in ("model", "slice"):
            place = 0 if name == "model" else 1
            return pa.array([key[place] for key in rows.keys], pa.string()).take(codes)
        if name in COUNT_COLUMNS:
            return pa.array(np.ascontiguousarray(rows.integer(name)))
        if name in TIME_COLUMNS:
            micros = np.ascontiguousarray(rows.integer(name))
            return pa.array(micros, mask=micros == NO_TIME).cast(pa.timestamp("us", "UTC"))
        if name == "drift":
            return pa.array(rows.drift == 1, mask=rows.drift < 0)
        if name == "reason":
            return pa.array(rows.reason_texts(), pa.string())
        if name == "config":
            return pa.array([rows.config]).take(pa.array(np.zeros(n, np.int8)))
        values = np.ascontiguousarray(rows.number(name))
        return pa.array(values, mask=np.isnan(values))

    return pa.RecordBatch.from_arrays([column(name) for name in COLUMNS], schema=ROW_SCHEMA)


def rows_to_table(rows: ColumnsOfRows) -> Table:
    """Return rows as a table of one record batch; see `Rows.to_arrow`."""
    return Table.from_batches([rows_to_arrow(rows)])


def rows_to_pandas(rows: ColumnsOfRows) -> DataFrame:
    """Return rows as a data frame; see `Rows.to_pandas`."""
    _pandas()  # pyarrow asks for pandas, too, and says less where it is missing
    return table_to_pandas(rows_to_table(rows))


def table_to_pandas(table: Table) -> DataFrame:
    """Return a table as a data frame of pandas. Raises MissingPackageError without pandas."""
    # pandas would make a column of objects of true, false and null.
    return table.to_pandas(types_mapper={pa.bool_(): _pandas().BooleanDtype()}.get)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise MissingPackageError(
            "to_pandas() needs the package pandas, which is not installed here; run: pip install pandas "
            "(to_arrow() does without)"
        ) from None
    return pandas
