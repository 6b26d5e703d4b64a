"""Single records (NamedTuples) in columns: the fields of their class are the columns, by name and type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args, get_type_hints

import pyarrow as pa

from ...core.rows.columns import TIME_COLUMNS

TIME = pa.timestamp("us", "UTC")
_KINDS = {str: pa.string(), int: pa.int64(), float: pa.float64()}


def schema_of(record: type) -> pa.Schema:
    """Return the columns of a NamedTuple's fields, with types by the fields' hints; times by their names.

    >>> from typing import NamedTuple
    >>> schema_of(NamedTuple("Named", [("model", str), ("time", int | None)])).types
    [DataType(string), TimestampType(timestamp[us, tz=UTC])]
    """
    columns = []
    for name, hint in get_type_hints(record).items():
        kind, *null = get_args(hint) or (hint,)
        is_time = name in (*TIME_COLUMNS, "since_time")
        columns.append(pa.field(name, TIME if is_time else _KINDS[kind], nullable=bool(null)))
    return pa.schema(columns)


def in_columns(records: Iterable[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Return records as a record batch with the schema of their class. O(cells), in Python."""
    columns = list(zip(*records, strict=True)) or [()] * len(schema)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
