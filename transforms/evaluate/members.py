"""Rows of measures in tables of Arrow, as the input of roll-ups. The module does not import Beam."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...core.errors import InputError
from ...core.fleet.members import INTEGERS, NUMBERS, MemberRows, are_possible
from ...core.fleet.settings import RollUpSettings
from .row_columns import RowColumns

_OPTIONAL = ("pane_start", "pane_end", "reason", "config")


def members_of_table(rows: pa.Table | pa.RecordBatch, settings: RollUpSettings, how: str) -> MemberRows:
    """Return the rows of a table (ROW_SCHEMA) for their groups. O(cells).

    how  the remedy in errors: which tables have the columns that are needed

    A missing column of a pane, `reason` or `config` is null. Raises InputError, which names the column, for
    any other missing column, and for a column of another type.
    """
    columns = RowColumns(rows, "a roll-up", how, _OPTIONAL)
    numbers = np.stack([columns.number(name) for name in NUMBERS], axis=1)
    if not are_possible(numbers):
        raise InputError(f"rows have an AUC beyond 0 and 1, or a count that is none; {how}")
    return MemberRows.of_columns(
        columns.names("model"),
        columns.names("slice"),
        columns.texts("reason"),
        columns.names("config"),
        columns.integers(*INTEGERS),
        numbers,
        settings,
    )
