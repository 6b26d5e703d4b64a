"""Reads rows, curves, comparisons and other tables from files that rocsteady wrote, in any format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from ...core.encoding.json import read_json
from ...core.errors import InputError
from ...core.rows.arrow import CLASS_ROW_SCHEMA, ROW_SCHEMA, with_columns
from ...core.rows.columns import measure_of
from ...core.settings.evaluator import config_of
from ..events.dead_letters import DEAD_LETTER_SCHEMA
from ..files.csv_chunks import CsvBatches
from ..files.formats import DAMAGE, SourceFile, arrow_buffer, unpacked
from ..files.lines import MOST_LINE_BYTES, line_blocks
from ..sinks.comparisons import COMPARISON_SCHEMA, MEAN_SCHEMA
from ..sinks.kinds import (
    ALERT_SCHEMA,
    CONFIDENCE_KEY,
    CURVE_SCHEMA,
    PAIR_SCHEMA,
    ROLL_UP_SCHEMA,
    SETTINGS_KEY,
)
from ..sources.files.listing import head_names, list_sources

_BLOCK_BYTES = 1 << 20
_MOST_LINE_BYTES = 8 * MOST_LINE_BYTES
"""The most bytes of a line. Lines may be long: a dead letter has a record as text, and a control character of
the record takes 7 bytes there."""

CLASS_ROWS = "rows of classes"
"""The name of the rows of models with a score of each class."""

ANY_ROWS = "any rows"
"""Rows, or rows of classes: the columns of a file decide which."""

NEEDED = {
    "rows": ("model", "slice", "seq", "window_events"),
    CLASS_ROWS: ("model", "slice", "class", "row", "seq", "window_events", "auc_macro", "classes"),
    "curves": ("model", "slice", "seq", "point", "threshold", "tp", "fp", "on_hull"),
    "dead letters": ("kind", "reason"),
    "comparisons": ("checkpoint", "seq", "measure", "learner_a", "learner_b", "test", "folds", "better"),
    "means": ("checkpoint", "seq", "model", "measure", "folds", "mean"),
    "alerts": ("rule", "state", "model", "row", "since_row", "message"),
    "roll-ups": ("group", "row", "due", "members", "auc_mean"),
    "pairs": ("model", "against", "row", "seq", "difference", "verdict"),
}
"""Columns that every file by rocsteady has. Any other column may be missing, and is then null."""

_COUNTED = {
    "rows": ("seq", "window_events"),
    CLASS_ROWS: ("row", "seq", "window_events"),
    "curves": ("seq", "point", "tp", "fp"),
    "dead letters": (),
    "comparisons": ("checkpoint", "seq", "folds"),
    "means": ("checkpoint", "seq", "folds"),
    "alerts": ("row", "since_row"),
    "roll-ups": ("row", "members"),
    "pairs": ("row", "seq"),
}
"""Columns of whole numbers and of sums of weights; rocsteady never writes null or infinity into them."""

_KINDS = {
    "rows": (ROW_SCHEMA, "rocsteady evaluate --output"),
    CLASS_ROWS: (CLASS_ROW_SCHEMA, "rocsteady evaluate --class-scores --output"),
    "curves": (CURVE_SCHEMA, "rocsteady evaluate --curves"),
    "dead letters": (DEAD_LETTER_SCHEMA, "rocsteady evaluate --dead-letters"),
    "comparisons": (COMPARISON_SCHEMA, "rocsteady compare --output"),
    "means": (MEAN_SCHEMA, "rocsteady prequential --output"),
    "alerts": (ALERT_SCHEMA, "rocsteady evaluate --alerts"),
    "roll-ups": (ROLL_UP_SCHEMA, "rocsteady evaluate --roll-ups"),
    "pairs": (PAIR_SCHEMA, "rocsteady evaluate --pairs"),
}
"""The columns of each kind of table, and the command that writes such tables."""


def read_tables(paths: Sequence[str], what: str) -> tuple[pa.Table, list[str]]:
    """Read files or globs; return one table, and notes on missing or unknown columns.

    what  a kind in `_KINDS`, or ANY_ROWS

    Without files the table is empty. Raises InputError, which names the file, for a file that is missing,
    damaged, or of another kind.
    """
    notes: list[str] = []
    tables = [read_table(source, what, notes) for source in (list_sources(paths) if paths else ())]
    if what == ANY_ROWS:
        return joined_rows(tables), list(dict.fromkeys(notes))
    tables = tables or [_KINDS[what][0].empty_table()]
    table = pa.concat_tables(tables, promote_options="default")
    return in_order(table) if what in ("rows", CLASS_ROWS) else table, list(dict.fromkeys(notes))


def joined_rows(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of several tables in one table.

    Raises InputError if rows of classes stand beside other rows.
    """
    found = [table for table in tables if table.num_rows] or [*tables[:1]] or [ROW_SCHEMA.empty_table()]
    if len({"class" in table.column_names for table in found}) > 1:
        raise InputError(
            "some of these rows are of models with a score of each class, and others are not; give them apart"
        )
    return in_order(pa.concat_tables(found, promote_options="default"))


def in_order(table: pa.Table) -> pa.Table:
    """Return rows with their columns in the order of their schema."""
    return table.select(schema_of_rows(table.column_names).names)


def schema_of_rows(names: Sequence[str]) -> pa.Schema:
    """Return the schema of rows whose columns have these names: of classes or not, with which values."""
    return with_columns(CLASS_ROW_SCHEMA if "class" in names else ROW_SCHEMA, filter(measure_of, names))


def rows_confidence(paths: Sequence[str]) -> set[float]:
    """Return the confidence levels of the intervals in files of rows; only Parquet files state the level."""
    return {float(metadata[CONFIDENCE_KEY]) for metadata in _metadata(paths) if CONFIDENCE_KEY in metadata}


def rows_settings(paths: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the settings of Parquet files of rows, by `config`, in the order of the files."""
    found = {}
    for metadata in _metadata(paths):
        text = metadata.get(SETTINGS_KEY, b"").decode("utf-8", "replace")
        try:
            settings = read_json(text, "the settings of rows")
        except ValueError:
            continue
        if isinstance(settings, dict):
            found[config_of(text)] = settings
    return found


def _metadata(paths: Sequence[str]) -> Iterator[Mapping[bytes, bytes]]:
    return (file_metadata(source) for path in paths for source in list_sources([path]))


def file_metadata(source: SourceFile) -> Mapping[bytes, bytes]:
    """Return a file's metadata on how its rows were made; empty for formats other than Parquet."""
    if source.format != "parquet":
        return {}
    with source.open() as raw:
        metadata: Mapping[bytes, bytes] = pa.parquet.read_schema(raw).metadata or {}
    return metadata


def read_table(source: SourceFile, what: str, notes: list[str]) -> pa.Table:
    """Read a file as `read_tables` does; add notes on missing or unknown columns to `notes`."""
    try:
        names = head_names(source, _MOST_LINE_BYTES)
    except (pa.ArrowInvalid, *DAMAGE) as error:
        raise InputError(f"{source.name} cannot be read: {first_line(error)}") from None
    if what == ANY_ROWS:
        what = CLASS_ROWS if names is not None and "auc_macro" in names else "rows"
    schema, command = _KINDS[what]
    if names is None:
        return schema.empty_table()
    missing = [name for name in NEEDED[what] if name not in names]
    if what == "rows" and not missing and "point" in names:
        raise InputError(f"{source.name} holds curves, not rows; give it with --curves")
    if what == "rows" and not missing and "against" in names:
        raise InputError(
            f"{source.name} holds rows of pairs of models, not rows of measures; give a file that {command} "
            "wrote"
        )
    if what == "rows" and not missing:
        refuse_classes(source.name, names)
    if missing:
        shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
        raise InputError(
            f"{source.name} holds no {what} of rocsteady: it has no column {missing[0]!r} (it has {shown}); "
            f"give a file that {command} wrote"
        )
    if what in ("rows", CLASS_ROWS):
        schema = with_columns(schema, filter(measure_of, names))
    known = [column for column in schema if column.name in names]
    try:
        schema_of_file = pa.schema(known)
        tables = [_checked(table, source, what, command) for table in _tables(source, schema_of_file)]
        table = pa.concat_tables(tables or [schema_of_file.empty_table()])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, *DAMAGE) as error:
        raise InputError(
            f"{source.name} cannot be read as {what}: {first_line(error)}; give a file that {command} wrote"
        ) from None
    if what in ("rows", CLASS_ROWS) and len(known) < len(schema):
        absent = [name for name in schema.names if name not in names]
        notes.append(f"{source.name} was written by another version: it has no {', '.join(absent)}.")
    if what in ("rows", CLASS_ROWS) and (unknown := [name for name in names if name not in schema.names]):
        notes.append(f"{source.name} has columns that this version does not show: {', '.join(unknown)}.")
    columns = [
        table.column(column.name) if column.name in names else pa.nulls(table.num_rows, column.type)
        for column in schema
    ]
    found = pa.Table.from_arrays(columns, schema=pa.schema([column.with_nullable(True) for column in schema]))
    return of_all_classes(found) if what == "roll-ups" else found


def of_all_classes(roll_ups: pa.Table) -> pa.Table:
    """Return the roll-up rows without a class, as a page shows them."""
    return roll_ups.filter(pc.is_null(roll_ups.column("class")))


def refuse_classes(name: str, columns: Sequence[str]) -> None:
    """Raise InputError for rows of models with a score of each class, which few commands read."""
    if "class" in columns:
        raise InputError(
            f"{name} holds rows of models with a score of each class, which this command does not read "
            "in this version; give rows of models with one score"
        )


def _checked(table: pa.Table, source: SourceFile, what: str, command: str) -> pa.Table:
    """Return `table` unchanged; raise InputError if a number that every row needs is missing."""
    for name in _COUNTED[what]:
        if bad := table.num_rows - int(pc.sum(pc.is_finite(table.column(name))).as_py() or 0):
            raise InputError(
                f"{source.name} is damaged: {bad:,} of its {what} have no number in the column {name!r}; "
                f"give a file that {command} wrote"
            )
    return table


def _tables(source: SourceFile, schema: pa.Schema) -> Iterator[pa.Table]:
    """Read the columns of a schema, with its types, some rows at a time.

    A gzip file of a few MB may unpack to GB of rows that lack a needed number. In blocks, the first block of
    such a file is refused.
    """
    nullable = pa.schema([column.with_nullable(True) for column in schema])
    lists = [column.name for column in schema if pa.types.is_list(column.type)]
    if source.format == "jsonl":
        yield from _json_tables(source, nullable)
        return
    if source.format == "parquet":
        with source.open() as raw:
            file = pa.BufferReader(arrow_buffer(raw.read()))
        table = pa.parquet.read_table(file, columns=schema.names, coerce_int96_timestamp_unit="us")
        yield table.select(schema.names).cast(nullable)
        return
    texts = [column.with_type(pa.string()) if column.name in lists else column for column in nullable]
    convert = pa.csv.ConvertOptions(
        column_types=pa.schema(texts),
        include_columns=schema.names,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    for batch in _csv_batches(source, convert):
        table = pa.Table.from_batches([batch])
        for name in lists:
            parts: list[list[Any] | None] = [
                None if text is None else _values_in(text) for text in table[name].to_pylist()
            ]
            kind = nullable.field(name).type
            if pa.types.is_floating(kind.value_type):
                parts = [part and [float(text) if text else None for text in part] for part in parts]
            place = table.schema.get_field_index(name)
            table = table.set_column(place, nullable.field(name), pa.array(parts, kind))
        yield table


def _csv_batches(source: SourceFile, convert: pa.csv.ConvertOptions) -> Iterator[pa.RecordBatch]:
    """Read a CSV file as record batches.

    Raises InputError if text is not UTF-8, or if a quote swallows records.
    """
    how = pa.csv.ReadOptions(use_threads=False, block_size=MOST_LINE_BYTES)
    with unpacked(source) as (stream, _), CsvBatches(stream, source, refuses=False) as batches:
        yield from batches.read(how, convert)
        fault, replaced = batches.fault, batches.replaced
    if fault is not None:
        raise InputError(fault.of(source.name))
    if replaced:
        raise InputError(f"{source.name} is not UTF-8; write the rows again, or restore the file")


def _values_in(text: str) -> list[str]:
    r"""Return the values of a list in CSV, which are joined by commas.

    >>> _values_in(r"a,b\,c,"), _values_in("")
    (['a', 'b,c', ''], [])
    """
    if "\\" not in text:
        return text.split(",") * bool(text)
    values, at = [], -1
    while at < len(text):  # behind a comma, or at the beginning
        found = _VALUE.match(text, at + 1)
        values.append(re.sub(r"\\(.)", r"\1", found[0] if found else "", flags=re.DOTALL))
        at = found.end() if found else len(text)
    return values


_VALUE = re.compile(r"(?:[^\\,]|\\.|\\\Z)*", re.DOTALL)
"""A value of a list in CSV: the text before the next comma that has no backslash before it."""


def _json_tables(source: SourceFile, schema: pa.Schema) -> Iterator[pa.Table]:
    with unpacked(source) as (stream, _):
        for long, block in line_blocks(stream, _BLOCK_BYTES, _MOST_LINE_BYTES):
            if long is not None:
                raise pa.ArrowInvalid(f"{long}, is longer than {_MOST_LINE_BYTES:,}")
            if not block.isspace():
                yield parse_lines(block, schema)


def parse_lines(lines: bytes, schema: pa.Schema) -> pa.Table:
    """Read JSON lines that `json_lines` made, as the columns of a schema. Raises pa.ArrowInvalid.

    A time may also be whole microseconds since 1970, as in the records of the transforms
    (`json.dumps(row._asdict())`). Arrow's parser refuses 1e999, which is infinity in these lines, so 1e999
    becomes `Infinity`. Only values change, because the quote before a value ends a key, and has no backslash;
    a quote within a text has a backslash.
    """
    finite = re.sub(rb'(?<!\\)": (-?)1e999\b', rb'": \g<1>Infinity', lines)
    times = [column.name for column in schema if pa.types.is_timestamp(column.type)]
    a_number = rb'(?<!\\)"(%b)":\s*-?\d' % "|".join(times).encode()
    numbers = {found.decode() for found in re.findall(a_number, finite)} if times else set()
    fields = [column.with_type(pa.int64()) if column.name in numbers else column for column in schema]
    parse = pa.json.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore")
    lines_read = pa.BufferReader(arrow_buffer(finite))
    how = pa.json.ReadOptions(block_size=len(finite) + 1)
    return pa.json.read_json(lines_read, how, parse).select(schema.names).cast(schema)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
