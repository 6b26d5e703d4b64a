"""Reads the rows that a sink wrote, each row once, even if the job was restarted.

If a runner repeats a bundle, the bundle's rows are repeated, later or in another file. They have the same
identity (model, slice, pane, row) and the same values. The first row with an identity counts. Two different
rows with one identity come from two jobs that wrote to one place, and are an error.

Memory: two numbers for every run of consecutive ordinals of a (model, slice, pane); rows in order are one
run. To compare repeated rows, the module keeps a hash of each of the last REMEMBERED rows. Repeats of older
rows are left out without a comparison.

The rows of a topic come in the order of each partition, up to the topic's present end or for ever.
"""

from __future__ import annotations

import os
import re
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from ...core.errors import ConfigError, InputError, RocsteadyError
from ...core.rows.class_rows import ClassRow
from ...core.rows.columns import WITH_VALUE, measure_of
from ...core.rows.records import MeasureRow, with_fields
from ..files.formats import FORMATS, SourceFile, has_scheme
from ..files.stored import joined, names_in
from ..kafka.client import check_topic, client_settings, make_client, reason_of
from ..kafka.topic import KafkaTopic, confluent_kafka, is_kafka
from ..kafka.topic_watch import OF_A_TABLE, watch_of
from ..sinks.kinds import (
    CLASS_ROWS,
    CONFIDENCE_KEY,
    ROWS,
    SETTINGS_KEY,
    TableKind,
)
from ..sinks.open import is_folder
from ..sources.files.listing import list_sources
from .read import ANY_ROWS, file_metadata, first_line, joined_rows, parse_lines, read_table, schema_of_rows

REMEMBERED = 100_000
"""The number of rows whose hashes are kept; they take some 30 MB."""

_FOLLOW_SECONDS = 1.0
_IDENTITY = ("model", "slice", "pane_start", "pane_end", "row")
_PLACES = tuple(MeasureRow._fields.index(name) for name in _IDENTITY)
_OF_CLASS = ("model", "slice", "class_", "pane_start", "pane_end", "row")
_PLACES_OF_CLASS = tuple(ClassRow._fields.index(name) for name in _OF_CLASS)


class RowBatch(NamedTuple):
    """Rows that were read, with the columns of ROW_SCHEMA or CLASS_ROW_SCHEMA, and the position of each row.

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
        """Store a row, with values in the order of MeasureRow or ClassRow; return whether it is new.

        O(log runs).

        Raises InputError if an earlier row with the same identity differs.
        """
        places = _PLACES if isinstance(values[2], int) else _PLACES_OF_CLASS  # the row's number, or its class
        identity = tuple(values[place] for place in places)
        *series, row = identity
        if self._add(self._runs.setdefault(tuple(series), []), row):
            self._hashes[identity] = hash(values), source, position
            if self._remembered is not None and len(self._hashes) > self._remembered:
                del self._hashes[next(iter(self._hashes))]
            return True
        self.repeats += 1
        known = self._hashes.get(identity)
        if known is not None and known[0] != hash(values):
            of_class = f"class {identity[2]!r}, " * (places is _PLACES_OF_CLASS)
            raise InputError(
                f"two rows of one identity differ, model {identity[0]!r}, slice {identity[1]!r}, "
                f"{of_class}row {row}: {known[2]} of {known[1]} and {position} of {source}; two jobs wrote "
                "to one place, or one was started anew without its state: read them apart"
            )
        return False

    @staticmethod
    def _add(runs: list[int], row: int) -> bool:
        """Add an ordinal to ascending runs [first, end, first, end, ...].

        Return whether the ordinal was new.
        """
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
) -> Iterator[MeasureRow | ClassRow]:
    """Yield every row once, in the order of writing; of repeated rows, yield only the first.

    Rows of models with a score of each class are ClassRows.

    source   a folder of parts, a file or glob (.parquet .csv .jsonl), or kafka://host:port/topic.
    options  librdkafka's options for a topic: "key=value" or "@FILE".
    follow   whether to continue with later rows, without an end. Without it, a topic is read up to its
             present end.

    Raises InputError if a source cannot be read or is not of rows, or if two rows of one identity differ.
    Memory: as in the docstring of this module, and one whole file.

        for row in rs.read_rows("rows/"):
            print(row.model, row.row, row.auc)
    """
    once = RowsOnce()
    for batch in row_batches(os.fspath(source), options, follow):
        record = record_of(batch.table)
        for values, position in zip(row_values(batch.table), batch.positions, strict=True):
            if once.is_new(values, batch.source, position):
                yield record._make(values)


def record_of(table: pa.Table) -> type[MeasureRow] | type[ClassRow]:
    """Return the named tuple of the rows of a table."""
    columns = tuple(filter(measure_of, table.column_names))
    return with_fields(ClassRow if "class" in table.column_names else MeasureRow, columns)


def row_values(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Yield the values of each row in the order of the fields of `record_of`, times in microseconds."""
    return zip(*(_plain(table.column(name.rstrip("_"))) for name in record_of(table)._fields), strict=True)


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Return values that can be hashed: times in microseconds, lists as tuples."""
    if pa.types.is_list(column.type):
        return [None if value is None else tuple(value) for value in column.to_pylist()]
    values: list[Any] = (
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
    ).to_pylist()
    return values


def row_batches(source: str, options: Iterable[str] = (), follow: bool = False) -> Iterator[RowBatch]:
    """Yield the rows of a source in their stored order, including repeated rows."""
    if is_kafka(source):
        for table, positions in read_kafka_records(KafkaTopic.parse(source, options), follow):
            yield RowBatch(table, source, positions, {})
        return
    if not holds_parts(source):
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


def holds_parts(source: str) -> bool:
    """Return whether a source is a folder of parts, which need not exist yet, and not a file or a glob."""
    return is_folder(source) or (not has_scheme(source) and Path(source).is_dir())


def row_files(sources: Iterable[str]) -> list[SourceFile]:
    """Return the files that sources have at present; a topic has no files.

    Raises InputError for a source that cannot be read.
    """
    paths = [
        path
        for source in sources
        if not is_kafka(source)
        for path in (parts_of(source) if holds_parts(source) else [source])
    ]
    return [file for path in paths for file in list_sources(path)]


def parts_of(folder: str) -> list[str]:
    """Return the finished files of a folder in the order of their names.

    Raises InputError for a folder that cannot be read.
    """
    try:
        names = names_in(folder)
    except Exception as error:
        raise InputError(f"{folder} cannot be listed: {getattr(error, 'strerror', None) or error}") from None
    return sorted(joined(folder, name) for name in names if _is_part(name))


def _is_part(name: str) -> bool:
    return not name.startswith(".") and name.lower().removesuffix(".gz").endswith(tuple(FORMATS))


def _file_rows(file: SourceFile) -> RowBatch:
    table = read_table(file, ANY_ROWS, [])
    if table.num_rows and table.column("row").null_count:
        raise InputError(f"{file.name} has rows without an ordinal ('row'), so none can be told from another")
    told = {key: text for key, text in file_metadata(file).items() if key in (CONFIDENCE_KEY, SETTINGS_KEY)}
    return RowBatch(table, file.name, [f"record {n}" for n in range(table.num_rows)], told)


def distinct_rows(sources: Sequence[str], options: Iterable[str] = ()) -> tuple[pa.Table, int]:
    """Return the rows of sources, each once, and the number of repeated rows.

    Compare every repeated row with the first.

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
    table = joined_rows(tables)
    schema = schema_of_rows(table.column_names)
    try:
        return table.cast(schema.with_metadata(metadata[0] if len(metadata) == 1 else None)), once.repeats
    except (pa.ArrowInvalid, ValueError) as error:
        raise InputError(
            f"{', '.join(sources)}: a row lacks what every row has ({first_line(error)})"
        ) from None


# ---- the rows of a topic

_AT_ONCE = 5_000
_WAIT_SECONDS = 0.5
_PATIENCE_SECONDS = 60.0
"""Seconds after which the read fails, if messages are expected and none comes."""

_FINAL = ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "_AUTHENTICATION")
"""Errors that do not end if the client waits."""

_SETTINGS = {
    "group_id": "rocsteady-read-rows",  # the group is never joined or committed to
    "enable_auto_commit": False,
    "enable_partition_eof": True,
    "auto_offset_reset": "earliest",
    "fetch_queue_backoff_ms": 20,
}


def read_kafka_records(
    topic: KafkaTopic, follow: bool, kind: TableKind = ROWS
) -> Iterator[tuple[pa.Table, list[str]]]:
    """Yield (table, the place of each record), up to the topic's present end, or for ever with `follow`.

    Messages of another kind and messages without a value are left out. With `follow`, an empty table is
    yielded if no record came for half a second, so that the caller can end the loop; partitions that are
    added are read, too. Raises InputError for a message that is not of the kind, RocsteadyError if the
    brokers stop answering, or if the topic was deleted and made again meanwhile.
    """
    partitions, _, identity = check_topic(topic, topic.url)
    kafka = confluent_kafka()
    consumer = make_client(kafka.Consumer, client_settings(topic, **_SETTINGS))
    try:
        starts = [kafka.TopicPartition(topic.name, n, kafka.OFFSET_BEGINNING) for n in range(partitions)]
        ends = {} if follow else _ends_of(consumer, starts, topic)
        consumer.assign(starts)
        heard = time.monotonic()
        while follow or ends:
            if follow:
                watch_of(topic).check(identity, 0.0, OF_A_TABLE)
                added = range(partitions, watch_of(topic).partitions)
                if added:
                    consumer.incremental_assign(
                        [kafka.TopicPartition(topic.name, n, kafka.OFFSET_BEGINNING) for n in added]
                    )
                    partitions = added.stop
            found = consumer.consume(_AT_ONCE, _WAIT_SECONDS)
            if found:
                heard = time.monotonic()
            elif not follow and time.monotonic() - heard > _PATIENCE_SECONDS:
                raise RocsteadyError(
                    f"{topic.url}: no message came for {_PATIENCE_SECONDS:.0f} s, and the end was not "
                    "reached; see whether its brokers answer"
                )
            taken = [message for message in found if _is_wanted(message, ends, topic, follow, kind)]
            if taken or follow:
                places = [f"partition {m.partition()} offset {m.offset()}" for m in taken]
                yield _table_of(taken, topic, kind), places
    finally:
        consumer.close()


def _ends_of(consumer: Any, starts: list[Any], topic: KafkaTopic) -> dict[int, int]:
    """Return each partition's offset after its last message; empty partitions are left out."""
    ends = {}
    until = time.monotonic() + _PATIENCE_SECONDS / 2
    waiting = list(starts)
    while waiting:
        try:
            low, high = consumer.get_watermark_offsets(waiting[-1], timeout=_PATIENCE_SECONDS / 2)
        except confluent_kafka().KafkaException as failure:
            if time.monotonic() > until:
                said = reason_of(failure.args[0])
                raise InputError(f"{topic.url}: {said}; see whether its brokers answer") from None
            time.sleep(_WAIT_SECONDS)  # a new or moving partition has no leader for a moment
            continue
        partition = waiting.pop().partition
        if high > low:
            ends[partition] = high
    return ends


def _is_wanted(message: Any, ends: dict[int, int], topic: KafkaTopic, follow: bool, kind: TableKind) -> bool:
    """Return whether a message is a wanted record; remove a partition from `ends` when its end is reached."""
    error, partition, offset = message.error(), message.partition(), message.offset()
    if error is not None:
        if error.code() == confluent_kafka().KafkaError._PARTITION_EOF:
            ends.pop(partition, None)  # also if the last offsets have no messages
            return False
        if error.fatal() or error.name() in _FINAL or "AUTHORIZATION" in error.name():
            raise RocsteadyError(f"{topic.url}: {reason_of(error)}; see whether it is still there, for us")
        return False  # the client tries again, and logs the error
    asked = follow or partition in ends
    if not follow and offset + 1 >= ends.get(partition, 0):
        asked = asked and offset < ends.pop(partition, 0)
    kinds = [value for name, value in message.headers() or () if name == "kind"]
    return asked and message.value() is not None and kinds in ([], [kind.name.encode()])


_KEYS = re.compile(rb'(?<!\\)"(class|%b)": ' % WITH_VALUE.pattern.replace("(", "(?:", 1).encode())
"""The keys that only some rows have: of models with a score of each class, of measures with values."""


def _table_of(messages: list[Any], topic: KafkaTopic, kind: TableKind) -> pa.Table:
    if kind is ROWS:
        keys = {key.decode() for message in messages for key in _KEYS.findall(message.value())}
        kind = (CLASS_ROWS if "class" in keys else ROWS)._replace(schema=schema_of_rows(sorted(keys)))
    table = _records_in([message.value() for message in messages], kind)
    if table is not None:
        return table
    bad = next(message for message in messages if _records_in([message.value()], kind) is None)
    raise InputError(
        f"{topic.url}: partition {bad.partition()} offset {bad.offset()} is no {kind.name} of rocsteady "
        f"({bad.value()[:60]!r}); read a topic that evaluate wrote"
    )


def _records_in(values: list[bytes], kind: TableKind) -> pa.Table | None:
    """Return messages as a table of a kind; None if any message is of another kind."""
    schema = pa.schema([field.with_nullable(True) for field in kind.schema])
    if not values:
        return schema.empty_table()
    try:
        table = parse_lines(b"\n".join(values), schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    named = [name for name in kind.identity if not kind.schema.field(name).nullable]
    whole = table.num_rows == len(values) and not any(table.column(name).null_count for name in named)
    return table if whole else None
