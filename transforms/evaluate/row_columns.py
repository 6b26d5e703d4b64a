"""The columns of a table of rows as arrays, for code that reads rows again.

The module does not import Beam.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...core.arrays import FloatArray, Int64Array
from ...core.errors import InputError
from ...core.events.times import NO_TIME


@dataclass(frozen=True)
class RowColumns:
    """The columns of a table of rows (ROW_SCHEMA) by name. Each array takes O(rows).

    rows      the table
    reader    the name of the reader that needs the columns, in errors: "an alert"
    how       the remedy in errors: which tables have the columns
    optional  columns that are null where the table lacks them

    Raises InputError, which names the column, for any other missing column, and for a column of another type.
    """

    rows: pa.Table | pa.RecordBatch
    reader: str
    how: str
    optional: Collection[str]

    def texts(self, name: str) -> list[str | None]:
        """Return a column of texts; None stands for null."""
        found: list[str | None] = self._column(name, pa.string()).to_pylist()
        return found

    def names(self, name: str) -> list[str]:
        """Return a column of texts; "" stands for null."""
        return [text or "" for text in self.texts(name)]

    def integers(self, *names: str) -> Int64Array:
        """Return columns of counts and times, int64[n, columns]; NO_TIME stands for null."""
        columns = [pc.fill_null(self._column(name, pa.int64()), NO_TIME) for name in names]
        return np.stack([np.asarray(column, np.int64) for column in columns], axis=1)

    def number(self, name: str) -> FloatArray:
        """Return a column of numbers; for a column of lists, the lengths of the lists.

        NaN stands for null.
        """
        kind = self.rows.schema.field(name).type if name in self.rows.schema.names else None
        if kind is not None and (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
            lengths = pc.cast(pc.list_value_length(self.rows.column(name)), pa.float64())
            return np.asarray(lengths.to_numpy(zero_copy_only=False), np.float64)
        return np.asarray(self._column(name, pa.float64()).to_numpy(zero_copy_only=False), np.float64)

    def _column(self, name: str, kind: pa.DataType) -> Any:
        if name not in self.rows.schema.names:
            if name in self.optional:
                return pa.nulls(self.rows.num_rows, kind)
            raise InputError(f"rows have no column {name!r}, which {self.reader} needs; {self.how}")
        values = self.rows.column(name)
        try:
            if pa.types.is_timestamp(values.type):
                values = values.cast(pa.timestamp("us", values.type.tz))
            return values.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise InputError(
                f"the column {name!r} holds {values.type}, where rows of measures hold {kind}; {self.how}"
            ) from None
