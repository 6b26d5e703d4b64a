"""Frames of polars, pandas, pyarrow and others that narwhals knows.

They are read as Arrow columns, and made from tables.

Only the columns that an evaluation needs are read. A lazy frame is collected with only these columns.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import narwhals as nw
import pyarrow as pa

from ...core.errors import InputError
from ...core.rows.arrow import table_to_pandas
from ...transforms.events.fields import EventFields, check_names
from ...transforms.events.records import column_of

NAME = "frame"
"""The name of a frame as the source of its events, in errors and dead letters."""

MODEL = "model"
"""The model of the events of a frame without a column of models. A file gives its own name instead."""


_NOT_ARROW = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""The errors that packages raise for a column that is no column of Arrow."""


class Frame:
    """A user's frame, and the roles of its columns.

    fields  the roles, with the source of the model's name
    kind    the package of the frame, which makes frames of the results

    Raises InputError for an object that is no frame, and for columns that are missing or there twice.
    """

    def __init__(self, given: Any, fields: EventFields) -> None:
        frame = _as_narwhals(given)
        names = names_of(given)
        self.fields = fields.resolved(names, MODEL)
        check_names(f"the {NAME}", names, self.fields, keywords=True)
        selected = frame.select([name for name in self.fields.columns if name in names])
        eager = selected.collect() if isinstance(selected, nw.LazyFrame) else selected
        self.kind = eager.implementation
        self._columns = eager

    def table(self) -> pa.Table:
        """Return the needed columns, in the order of `EventFields.columns`, as a Parquet file is read."""
        frame, fields = self._columns, self.fields
        try:
            if not (self.kind.is_polars() and nw.Object in frame.schema.dtypes()):
                table: pa.Table = frame.to_arrow()
                return table
        except _NOT_ARROW:
            pass  # a column of pandas may mix types
        columns = (_column(frame[name], name, fields) for name in frame.columns)
        return pa.table(dict(zip(frame.columns, columns, strict=True)))


def names_of(given: Any) -> list[str]:
    """Return the names of the columns of a frame that are text.

    Raises InputError for an object that is no frame.
    """
    return [name for name in _as_narwhals(given).collect_schema().names() if isinstance(name, str)]


def _as_narwhals(given: Any) -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
    if isinstance(given, pa.RecordBatch):
        given = pa.Table.from_batches([given])
    try:
        frame: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(given)
    except nw.exceptions.DuplicateError as error:
        twice = ", ".join(line[2:] for line in str(error).splitlines() if line.startswith("- "))
        raise InputError(f"the {NAME} has columns of one name ({twice}); give each its own name") from None
    except TypeError:
        raise InputError(
            f"evaluate() is given {type(given).__name__!r}, which is no frame; give a frame of polars, "
            "pandas or pyarrow; for files there is the command rocsteady evaluate"
        ) from None
    return frame


def _column(column: nw.Series[Any], name: str, fields: EventFields) -> pa.Array:
    """Return a column in Arrow's form; a column that mixes types becomes text."""
    is_of_objects = column.implementation.is_polars() and column.dtype == nw.Object
    with suppress(*_NOT_ARROW):
        if not is_of_objects:  # polars would give the addresses of the objects
            return column.to_arrow()
    return column_of(column.to_list(), as_numbers=name in fields.number_columns, as_times=name == fields.time)


def frame_of(table: pa.Table, kind: nw.Implementation) -> Any:
    """Return a table as a frame of a package."""
    if kind is nw.Implementation.PYARROW:
        return table
    if kind is nw.Implementation.PANDAS:
        return table_to_pandas(table)
    package: Any = kind
    return nw.from_arrow(table, backend=package).to_native()
