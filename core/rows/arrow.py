"""Rows as Arrow record batches, as Arrow tables and as pandas data frames.

`Rows.to_arrow` and `Rows.to_pandas` import this module when they are first called. Sinks import the module
when they are imported. A program that only evaluates never loads pyarrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
from pyarrow import Table as Table

from ..arrays import NO_TIME, FloatArray, Int8Array, Int32Array, Int64Array
from ..errors import MissingPackageError
from .class_columns import CLASS_ROW_COLUMNS, MEANS_COLUMNS, ClassColumns
from .columns import COLUMNS, COUNT_COLUMNS, NUMBER_COLUMNS, TEXT_COLUMNS, TIME_COLUMNS

if TYPE_CHECKING:
    from pandas import DataFrame as DataFrame


_MOMENT = pa.timestamp("us", "UTC")


class ColumnsOfRows(Protocol):
    """Rows in columns (`Rows`), reduced to the columns and methods that this module needs to make tables."""

    keys: tuple[tuple[str, str], ...]
    key_codes: Int32Array
    integers: Int64Array
    numbers: FloatArray
    drift: Int8Array
    config: str
    classes: ClassColumns | None

    def __len__(self) -> int: ...

    def reason_texts(self) -> list[str | None]:
        """Return the column of reasons."""


def _field(name: str) -> pa.Field:
    if name in TEXT_COLUMNS:
        return pa.field(name, pa.string(), nullable=name == "reason")
    if name in COUNT_COLUMNS:
        return pa.field(name, pa.int64(), nullable=False)
    if name in TIME_COLUMNS:
        return pa.field(name, _MOMENT)
    return pa.field(name, pa.bool_() if name == "drift" else pa.float64())


ROW_SCHEMA = pa.schema([_field(name) for name in COLUMNS])
"""The columns of a row, with their types, in every sink."""

_OF_CLASSES: dict[str, pa.DataType] = {
    **dict.fromkeys(MEANS_COLUMNS, pa.float64()),
    **dict.fromkeys(("class", "worst_class", "worst_pair"), pa.string()),
    **dict.fromkeys(("classes", "classes_absent"), pa.list_(pa.string())),
    "pair_aucs": pa.list_(pa.float64()),
}

CLASS_ROW_SCHEMA = pa.schema(
    [pa.field(name, _OF_CLASSES[name]) if name in _OF_CLASSES else _field(name) for name in CLASS_ROW_COLUMNS]
)
"""The columns, with their types, of rows of models with more than two classes."""


def rows_to_arrow(rows: ColumnsOfRows) -> pa.RecordBatch:
    """Return rows as a record batch with ROW_SCHEMA.

    The time is O(cells), with Python code only for each (model, slice).

    Rows of models with more than two classes get CLASS_ROW_SCHEMA, with Python code for each row.

    The columns of one type are converted together, and are slices of one array. When each column was
    converted alone, one row took 0.2 ms.
    """
    n = len(rows)
    codes = pa.array(np.ascontiguousarray(rows.key_codes))
    times = rows.integers[:, len(COUNT_COLUMNS) :].ravel(order="F")
    columns = {
        "model": pa.array([model for model, _ in rows.keys], pa.string()).take(codes),
        "slice": pa.array([slice_ for _, slice_ in rows.keys], pa.string()).take(codes),
        **_parts(pa.array(rows.integers[:, : len(COUNT_COLUMNS)].ravel(order="F")), COUNT_COLUMNS, n),
        **_parts(pa.array(times, mask=times == NO_TIME).cast(_MOMENT), TIME_COLUMNS, n),
        **_parts(pa.array(rows.numbers.ravel(order="F"), from_pandas=True), NUMBER_COLUMNS, n),
        "drift": pa.array(rows.drift == 1, mask=rows.drift < 0),
        "reason": pa.array(rows.reason_texts(), pa.string()),
        "config": pa.repeat(rows.config, n),
    }
    schema = ROW_SCHEMA
    if rows.classes is not None:
        schema = CLASS_ROW_SCHEMA
        columns["class"] = pa.array([rows.classes.name(index) for index in range(n)], pa.string())
        of_means = zip(*rows.classes.means, strict=True) if n else [()] * len(MEANS_COLUMNS)
        for name, values in zip(MEANS_COLUMNS, of_means, strict=False):
            columns[name] = pa.array(values, _OF_CLASSES[name])
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _parts(together: pa.Array, names: Sequence[str], n: int) -> dict[str, pa.Array]:
    """Cut an array into columns of n values, one after another."""
    return {name: together.slice(place * n, n) for place, name in enumerate(names)}


def rows_to_table(rows: ColumnsOfRows) -> Table:
    """Return rows as a table of one record batch: the columns are those of `Rows.to_arrow`."""
    return Table.from_batches([rows_to_arrow(rows)])


def rows_to_pandas(rows: ColumnsOfRows) -> DataFrame:
    """Return rows as a data frame: the columns are those of `Rows.to_pandas`."""
    _pandas()  # pyarrow imports pandas, too, and its error says less where pandas is missing
    return table_to_pandas(rows_to_table(rows))


def table_to_pandas(table: Table) -> DataFrame:
    """Return a table as a data frame of pandas. Raises MissingPackageError without pandas."""
    # Without this type, pandas would make a column of the objects True, False and None.
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
