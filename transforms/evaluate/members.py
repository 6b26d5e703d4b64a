"""Rows of measures in tables of Arrow, as the input of roll-ups. The module does not import Beam."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...core.arrays import FloatArray, Int64Array
from ...core.errors import InputError
from ...core.events.times import NO_TIME
from ...core.fleet.members import INTEGERS, NUMBERS, MemberRows, are_possible
from ...core.fleet.settings import RollUpSettings

_OPTIONAL = ("pane_start", "pane_end", "reason", "config")


def members_of_table(rows: pa.Table | pa.RecordBatch, settings: RollUpSettings, how: str) -> MemberRows:
    """Return the rows of a table (ROW_SCHEMA) for their groups. O(cells).

    how  the remedy in errors: which tables have the columns that are needed

    A missing column of a pane, `reason` or `config` is null. Raises InputError, which names the column, for
    any other missing column, and for a column of another type.
    """
    n = rows.num_rows

    def column(name: str, kind: pa.DataType) -> Any:
        if name not in rows.schema.names:
            if name in _OPTIONAL:
                return pa.nulls(n, kind)
            raise InputError(f"rows have no column {name!r}, which a roll-up needs; {how}")
        values = rows.column(name)
        try:
            if pa.types.is_timestamp(values.type):
                values = values.cast(pa.timestamp("us", values.type.tz))
            return values.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise InputError(
                f"the column {name!r} holds {values.type}, where rows of measures hold {kind}; {how}"
            ) from None

    def texts(name: str) -> list[Any]:
        found: list[Any] = column(name, pa.string()).to_pylist()
        if name != "reason":
            return ["" if text is None else text for text in found]
        return found

    def integer(name: str) -> Int64Array:
        return np.asarray(pc.fill_null(column(name, pa.int64()), NO_TIME), np.int64)

    def number(name: str) -> FloatArray:
        return np.asarray(column(name, pa.float64()).to_numpy(zero_copy_only=False), np.float64)

    numbers = np.stack([number(name) for name in NUMBERS], axis=1)
    if not are_possible(numbers):
        raise InputError(f"rows have an AUC beyond 0 and 1, or a count that is none; {how}")
    return MemberRows.of_columns(
        texts("model"),
        texts("slice"),
        texts("reason"),
        texts("config"),
        np.stack([integer(name) for name in INTEGERS], axis=1),
        numbers,
        settings,
    )
