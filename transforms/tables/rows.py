"""Reads the rows that a sink wrote, each row once, also for a job that was restarted.

If a runner repeats a bundle, the bundle's rows are repeated, later or in another file. They have the same
identity (model, slice, pane, row) and the same values. The first row of an identity counts. Two different
rows of one identity come from two jobs that wrote to one place, and are an error.

Memory: two numbers for every run of consecutive ordinals of a (model, slice, pane); rows in order are one
run. To compare repeated rows, the module keeps a hash of each of the last REMEMBERED rows. Repeats of older
rows are left out without a comparison.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from ...core.errors import ConfigError, InputError
from ...core.rows.arrow import ROW_SCHEMA
from ...core.rows.records import MeasureRow
from ..files.formats import FORMATS, SourceFile, has_scheme
from ..files.stored import joined, names_in
from ..kafka.topic import KafkaTopic, is_kafka
from ..sinks.kinds import CONFIDENCE_KEY, SETTINGS_KEY
from ..sinks.parts import is_folder
from ..sources.files.listing import list_sources
from .kafka_rows import read_kafka_rows
from .read import file_metadata, first_line, read_table

REMEMBERED = 100_000
"""The number of rows whose hashes are kept; they take some 30 MB."""

_FOLLOW_SECONDS = 1.0
_IDENTITY = ("model", "slice", "pane_start", "pane_end", "row")
_PLACES = tuple(MeasureRow._fields.index(name) for name in _IDENTITY)


class RowBatch(NamedTuple):
    """Rows that were read, with the columns of ROW_SCHEMA, and the position of each row.

    metadata  the file's metadata on how the rows were made (CONFIDENCE_KEY, SETTINGS_KEY)
    """

    table: pa.Table
    source: str
    positions: Sequence[str]
    metadata: Mapping[bytes, bytes]


class RowsOnce:
    """Distinguishes new rows from repeated rows. `repeats` counts the repeated rows."""

    def __init__(self, remembered: int | None = REMEMBERED) -> None:
        self._remembered = remembered
        self._runs: dict[tuple[Any, ...], list[int]] = {}
        self._hashes: dict[tuple[Any, ...], tuple[int, str, str]] = {}
        self.repeats = 0

    def is_new(self, values: tuple[Any, ...], source: str, position: str) -> bool:
        """Note a row, given in the order of MeasureRow's fields; O(log runs).

        Raises InputError where an earlier row of the same identity differs.
        """
        identity = tuple(values[place] for place in _PLACES)
        *series, row = identity
        if self._add(self._runs.setdefault(tuple(series), []), row):
            self._hashes[identity] = hash(values), source, position
            if self._remembered is not None and len(self._hashes) > self._remembered:
                del self._hashes[next(iter(self._hashes))]
            return True
        self.repeats += 1
        known = self._hashes.get(identity)
        if known is not None and known[0] != hash(values):
            raise InputError(
                f"two rows of one identity differ, model {identity[0]!r}, slice {identity[1]!r}, row {row}: "
                f"{known[2]} of {known[1]} and {position} of {source}; two jobs wrote to one place, or one "
                "was started anew without its state: read them apart"
            )
        return False

    @staticmethod
    def _add(runs: list[int], row: int) -> bool:
        """Add an ordinal to ascending runs [first, end, first, end, ...]; return whether it was new."""
        if runs and runs[-1] == row:  # the next row in order
            runs[-1] = row + 1
            return True
        place = bisect_right(runs, row)
        if place % 2:
            return False
        joins_before = place > 0 and runs[place - 1] == row
        joins_after = place < len(runs) and runs[place] == row + 1
        if joins_before and joins_after:
            del runs[place - 1 : place + 1]
        elif joins_before:
            runs[place - 1] = row + 1
        elif joins_after:
            runs[place] = row
        else:
            runs[place:place] = [row, row + 1]
        return True


def read_rows(
    source: str | os.PathLike[str], *, options: Iterable[str] = (), follow: bool = False
) -> Iterator[MeasureRow]:
    """Yield every row once, in the order of writing; of repeated rows, yield the first.

    source   a folder of parts, a file or glob (.parquet .csv .jsonl), or kafka://host:port/topic.
    options  librdkafka's options for a topic: "key=value" or "@FILE".
    follow   whether to continue with later rows, without an end. Without it, a topic is read up to its
             present end.

    Raises InputError if a source cannot be read or is not of rows, or if two rows of one identity differ.
    Memory: that of this module's docstring, and one whole file.

        for row in rs.read_rows("rows/"):
            print(row.model, row.row, row.auc)
    """
    once = RowsOnce()
    for batch in row_batches(os.fspath(source), options, follow):
        for values, position in zip(row_values(batch.table), batch.positions, strict=True):
            if once.is_new(values, batch.source, position):
                yield MeasureRow._make(values)


def row_values(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Yield the values of each row in the order of MeasureRow's fields, times in microseconds."""
    columns = [table.column(name) for name in MeasureRow._fields]
    plain = [column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in columns]
    return zip(*(column.to_pylist() for column in plain), strict=True)


def row_batches(source: str, options: Iterable[str] = (), follow: bool = False) -> Iterator[RowBatch]:
    """Yield the rows of a source in their stored order, including repeated rows."""
    if is_kafka(source):
        for table, positions in read_kafka_rows(KafkaTopic.parse(source, options), follow):
            yield RowBatch(table, source, positions, {})
        return
    if not _is_folder(source):
        if follow:
            raise ConfigError(f"{source}: a file is not followed; give a folder of parts or a topic")
        for file in list_sources(source):
            yield _file_rows(file)
        return
    read: set[str] = set()
    while True:
        for path in parts_of(source):
            if path not in read:
                read.add(path)
                yield _file_rows(list_sources(path)[0])
        if not follow:
            return
        time.sleep(_FOLLOW_SECONDS)


def _is_folder(source: str) -> bool:
    return is_folder(source) or (not has_scheme(source) and Path(source).is_dir())


def row_files(sources: Iterable[str]) -> list[SourceFile]:
    """Return the present files of sources; a topic has no files. Raises InputError."""
    paths = [
        path
        for source in sources
        if not is_kafka(source)
        for path in (parts_of(source) if _is_folder(source) else [source])
    ]
    return [file for path in paths for file in list_sources(path)]


def parts_of(folder: str) -> list[str]:
    """Return the finished files of a folder in the order of their names. Raises InputError."""
    try:
        names = names_in(folder)
    except Exception as error:
        raise InputError(f"{folder} cannot be listed: {getattr(error, 'strerror', None) or error}") from None
    return sorted(joined(folder, name) for name in names if _is_part(name))


def _is_part(name: str) -> bool:
    return not name.startswith(".") and name.lower().removesuffix(".gz").endswith(tuple(FORMATS))


def _file_rows(file: SourceFile) -> RowBatch:
    table = read_table(file, "rows", [])
    if table.num_rows and table.column("row").null_count:
        raise InputError(f"{file.name} has rows without an ordinal ('row'), so none can be told from another")
    told = {key: text for key, text in file_metadata(file).items() if key in (CONFIDENCE_KEY, SETTINGS_KEY)}
    return RowBatch(table, file.name, [f"record {n}" for n in range(table.num_rows)], told)


def distinct_rows(sources: Sequence[str], options: Iterable[str] = ()) -> tuple[pa.Table, int]:
    """Return the rows of sources, each once, and the number of repeated rows; every repeated row is compared.

    The table has the files' metadata on how rows were made, if it is the same in all files.
    O(rows) memory: the table, and 300 bytes a row.
    """
    once = RowsOnce(remembered=None)
    options = tuple(options)
    tables, metadata = [], []
    for source in sources:
        for batch in row_batches(source, options):
            new = [
                once.is_new(values, batch.source, position)
                for values, position in zip(row_values(batch.table), batch.positions, strict=True)
            ]
            tables.append(batch.table.filter(pa.array(new, pa.bool_())))
            if batch.metadata not in metadata:
                metadata.append(batch.metadata)
    if not tables:
        return ROW_SCHEMA.empty_table(), 0
    table = pa.concat_tables(tables)
    try:
        return table.cast(ROW_SCHEMA.with_metadata(metadata[0] if len(metadata) == 1 else None)), once.repeats
    except (pa.ArrowInvalid, ValueError) as error:
        raise InputError(
            f"{', '.join(sources)}: a row lacks what every row has ({first_line(error)})"
        ) from None
