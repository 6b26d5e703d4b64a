"""Columns of folders: a file in a folder `key=value` has the column `key`, with this value in every record.

Hive, Spark and pyarrow write data sets in such folders, and leave the columns out of the files. A value is
text, as in CSV; if a number, a time or a class is needed, the text is read as one.

Invariant
    A record has one value in a column of a folder. If the file also has the column, each of its values must
    be missing or equal to the folder's value; any other value is an error, which names the record.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath
from urllib.parse import unquote_to_bytes

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....core.arrays import BoolArray, Int64Array
from ....core.errors import InputError, RocsteadyError
from ...events.columns import json_record, plain, text_of
from ...events.dead_letters import Chunk, RawRecords
from ...files.formats import SourceFile, has_scheme

_NO_VALUE = ("", "__HIVE_DEFAULT_PARTITION__")
"""Values of a folder that stand for a missing value."""

FolderColumns = Mapping[str, str | None]
"""The columns of a file's folders, and the value of each; None = missing."""


def folder_columns(path: str) -> FolderColumns:
    """Return the columns of all folders above a file, given by its path or URL. Escapes such as %2F are read.

    Raises InputError if a name or a value is not UTF-8, or if two folders give a column two values.

    >>> folder_columns("data/model=churn%2Fv2/date=2026-01-01/part-0.parquet")
    {'model': 'churn/v2', 'date': '2026-01-01'}
    """
    columns: dict[str, str | None] = {}
    whole = path if has_scheme(path) else os.path.abspath(path)  # noqa: PTH100 - `absolute` leaves ".." there
    for folder in PurePosixPath(whole.replace("\\", "/")).parent.parts:
        name, sign, value = folder.partition("=")
        if not (name and sign):
            continue
        try:
            name, value = (unquote_to_bytes(os.fsencode(text)).decode() for text in (name, value))
        except UnicodeDecodeError:
            shown = os.fsencode(folder).decode("utf-8", "backslashreplace")
            raise InputError(
                f"{path!a}: the folder {shown} has escapes that are not UTF-8; rename it"
            ) from None
        found = None if value in _NO_VALUE else value
        if columns.setdefault(name, found) != found:
            raise InputError(
                f"{path}: two folders give the column {name!r} two values, {columns[name]!r} and {found!r}; "
                "move the file into folders that give it one"
            )
    return columns


def names_with_folders(names: Sequence[str], source: SourceFile) -> list[str]:
    """Return the columns of a file, and behind them the columns of its folders that the file lacks."""
    return [*names, *(name for name in folder_columns(source.path) if name not in names)]


def with_folders(chunk: Chunk, source: SourceFile, wanted: Sequence[str] | None) -> Chunk:
    """Return a chunk of a file with the columns of the file's folders. O(records).

    wanted  the columns that are asked for; None = all columns

    Raises RocsteadyError if a record of the file has another value than the folder.
    """
    found = folder_columns(source.path)
    columns = {name: value for name, value in found.items() if wanted is None or name in wanted}
    if found and chunk.raw is not None:
        chunk = chunk._replace(raw=partial(_completed, chunk.raw, found))
    if not columns:
        return chunk
    batch = chunk.batch
    there = batch.schema.names
    arrays = [
        _checked(chunk, source, name, column, columns[name]) if name in columns else column
        for name, column in zip(there, batch.columns, strict=True)
    ]
    added = [name for name in columns if name not in there]
    arrays += [_repeated(columns[name], batch.num_rows) for name in added]
    return chunk._replace(batch=pa.RecordBatch.from_arrays(arrays, [*there, *added]))


def _repeated(value: str | None, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.string()), rows)


def _checked(chunk: Chunk, source: SourceFile, name: str, column: pa.Array, value: str | None) -> pa.Array:
    """Return the folder's value for every row, of a column that the file's records have, too.

    Raises RocsteadyError if a record has another value.
    """
    column = plain(column)
    differ = _is_there(column) & ~_equal(column, value)
    if differ.any():
        row = int(np.argmax(differ))
        position, found = int(np.asarray(chunk.places())[row]), text_of(column[row].as_py())
        says = f"says {value!r}" if value is not None else "says that there is no value"
        raise RocsteadyError(
            f"{source.name}: record {position:,} has {found!r} in the column {name!r}, and the folder "
            f"{name}= of the file {says}; move the file, or rename its column"
        )
    return _repeated(value, len(column))


def _is_there(column: pa.Array) -> BoolArray:
    """Return which values of a column are not missing."""
    there = np.asarray(column.is_valid())
    if pa.types.is_string(column.type):
        there &= np.asarray(pc.fill_null(pc.not_equal(column, ""), False))
    elif pa.types.is_floating(column.type):
        there &= ~np.asarray(pc.fill_null(pc.is_nan(column), True))
    return there


def _equal(column: pa.Array, value: str | None) -> BoolArray:
    """Return which values of a column equal the folder's value, read as the type of the column."""
    try:
        equal = pc.equal(column, pa.scalar(value, pa.string()).cast(column.type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return np.zeros(len(column), np.bool_)
    return np.asarray(pc.fill_null(equal, False))


def _completed(raw: RawRecords, columns: FolderColumns, rows: Int64Array) -> pa.Array:
    """Return records as JSON objects, and add the columns of folders to records that lack them."""
    texts = []
    for text in raw(rows).to_pylist():
        record = json.loads(text)
        lacking = {name: value for name, value in columns.items() if record.get(name) in (None, "")}
        texts.append(json_record({**record, **lacking}))
    return pa.array(texts, pa.string())
