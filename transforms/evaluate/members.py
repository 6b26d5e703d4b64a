"""Rows of measures in tables of Arrow, as the input of roll-ups. The module does not import Beam."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...core.errors import InputError
from ...core.fleet.members import COLUMNS, EVIDENCE, INTEGERS, MemberRows, are_possible, with_log_e
from ...core.fleet.roll_up_settings import RollUpSettings
from .row_columns import RowColumns

_OPTIONAL = ("pane_start", "pane_end", "reason", "config", "seq", *EVIDENCE)


def members_of_table(rows: pa.Table | pa.RecordBatch, settings: RollUpSettings, how: str) -> MemberRows:
    """Return the rows of a table (ROW_SCHEMA or CLASS_ROW_SCHEMA) for their groups. O(cells).

    how  the remedy in errors: where tables with the needed columns come from

    A missing column of a pane, of evidence, `reason` or `config` is null. Raises InputError, which names the
    column, for any other missing column, and for a column of another type.
    """
    columns = RowColumns(rows, "a roll-up", how, _OPTIONAL)
    events = columns.integers("seq")[:, 0].astype(np.float64)
    numbers = with_log_e([columns.number(name) for name in (*COLUMNS, *EVIDENCE)], events)
    if not are_possible(numbers):
        raise InputError(f"rows have an AUC beyond 0 and 1, or a count that is none; {how}")
    has_classes = "class" in rows.schema.names
    return MemberRows.of_columns(
        columns.names("model"),
        columns.names("slice"),
        columns.texts("reason"),
        columns.names("config"),
        columns.integers(*INTEGERS),
        numbers,
        settings,
        (columns.names("class"), columns.number) if has_classes else None,
    )
