"""Tables that a user gives besides the rows of an evaluation: roll-up rows, and rows of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import pyarrow as pa

from ...core.errors import InputError
from ...core.rows.pairs import PairRow
from ...core.rows.roll_ups import RollUpRow
from ...transforms.events.dead_letters import in_columns
from ...transforms.sinks.kinds import PAIR_SCHEMA, ROLL_UP_SCHEMA
from ...transforms.tables.read import NEEDED, first_line, of_all_classes

_KINDS: dict[str, tuple[type[Any], pa.Schema, str]] = {
    "roll-ups": (RollUpRow, ROLL_UP_SCHEMA, "the result of roll_up()"),
    "pairs": (PairRow, PAIR_SCHEMA, "the rows of a PairEvaluator, or a file of --pairs as a frame"),
}


def given_table(given: Any, what: str) -> pa.Table:
    """Return a frame, or a list of records, as a table; a column that it lacks is null.

    given  a frame of polars, pandas or pyarrow, or a list of RollUpRows or PairRows
    what   "roll-ups" or "pairs"

    Raises InputError for any other object.
    """
    record, schema, expected = _KINDS[what]
    if isinstance(given, Sequence) and all(isinstance(each, record) for each in given):
        return _of_page(pa.Table.from_batches([in_columns(given, schema)], schema), what)
    try:
        frame = nw.from_native(given)
    except TypeError:
        raise InputError(f"{type(given).__name__!r} holds no {what}; give {expected}") from None
    eager = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    table: pa.Table = eager.to_arrow()
    if missing := [name for name in NEEDED[what] if name not in table.column_names]:
        raise InputError(f"the frame holds no {what}: it has no column {missing[0]!r}; give {expected}")
    try:
        columns = [
            table.column(field.name).cast(field.type)
            if field.name in table.column_names
            else pa.nulls(table.num_rows, field.type)
            for field in schema
        ]
    except pa.ArrowException as error:
        raise InputError(f"the frame holds no {what}: {first_line(error)}; give {expected}") from None
    nullable = pa.schema([field.with_nullable(True) for field in schema])
    return _of_page(pa.Table.from_arrays(columns, schema=nullable), what)


def _of_page(table: pa.Table, what: str) -> pa.Table:
    return of_all_classes(table) if what == "roll-ups" else table
