"""Messages that are Arrow IPC streams: a schema, then batches of events. A column has the name of a field.

Invariant
    Every row of a message is a row of a chunk, at the offset of the message. A message that is not a whole
    stream gives one dead letter and no rows, and does not affect other messages.

Only the columns that a job reads are decompressed and checked. Messages in a row whose columns have the same
types become one chunk. A message of other types begins another chunk, so a schema may change at any message.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ....core.arrays import Int64Array
from ....core.events.rejected import Reason
from ...events.columns import json_text, plain
from ...events.dead_letters import NO_LETTERS, Chunk, DeadLetter, DeadLetters
from ...events.fields import EventFields, Role
from ...events.text import json_objects
from .arrow_sizes import bytes_when_read
from .partition import ARROW_MARK, Fetched, Part, letters_of_empty, shown_message

MOST_ROWS = 1_000_000
"""The most rows of a message: they are in memory together."""

MOST_BYTES = 1 << 30
"""The most bytes of a message after it is decompressed. Few bytes may decompress to very many."""

_KNOWN_HEADS = 64

_DAMAGE = (
    pa.ArrowException, OSError, ValueError, LookupError, TypeError, ArithmeticError, MemoryError,
    struct.error,
)  # fmt: skip
"""The errors that pyarrow raises for bytes that are no stream, and for types that it cannot convert."""


class _UnfitMessageError(Exception):
    """Raised for a message that is no stream of events; the text says why."""


class _Head(NamedTuple):
    """How to read the messages that begin with one schema.

    options  options of pyarrow that read only the needed columns
    names    the names of these columns. If there are none, the options read all columns, because pyarrow
             reads all columns if it is told none
    """

    options: pa.ipc.IpcReadOptions
    names: Sequence[str]


class ArrowMessages:
    """Reads the messages of a partition.

    name    the name of the partition, in dead letters
    fields  the roles of the columns; columns that have no role are not read
    """

    def __init__(self, name: str, fields: EventFields, role: Role) -> None:
        self._name = name
        self._fields = fields
        self._columns = frozenset(fields.columns_of(role))
        self._heads: dict[bytes, _Head] = {}

    def parts(self, fetched: Fetched) -> list[Part]:
        """Return the events of fetched messages, and their dead letters, as parts of the partition. O(bytes).

        A part's `positions` are offsets of messages, and its `rows` are the numbers of rows within them.
        """
        parts: list[Part] = []
        whole: list[tuple[int, bytes, pa.RecordBatch]] = []
        dead = letters_of_empty(fetched, self._name)
        for offset, value in zip(fetched.offsets, fetched.values, strict=True):
            if not value or value.isspace():
                continue
            try:
                batch = self._batch_of(value)
            except _UnfitMessageError as why:
                detail = f"{Reason.NOT_AN_ARROW_STREAM}: {why}"
                raw = shown_message(value)
                dead.append(DeadLetter.invalid(Reason.NOT_AN_ARROW_STREAM, self._name, detail, offset, raw))
                continue
            if whole and not batch.schema.equals(whole[-1][2].schema):
                parts.append(self._part(whole, fetched, dead))
                whole, dead = [], []
            whole.append((offset, value, batch))
        return [*parts, self._part(whole, fetched, dead)]

    def _part(
        self, messages: list[tuple[int, bytes, pa.RecordBatch]], fetched: Fetched, dead: list[DeadLetter]
    ) -> Part:
        """Return the events of messages with columns of the same types."""
        offsets, values, batches = zip(*messages, strict=True) if messages else ((), (), ())
        lengths = np.fromiter((batch.num_rows for batch in batches), np.int64, len(batches))
        starts = np.cumsum(lengths) - lengths
        rows = np.arange(int(lengths.sum())) - np.repeat(starts, lengths)
        chunk = Chunk(
            offsets[0] if offsets else fetched.next,
            _joined(batches),
            np.repeat(np.array(offsets, np.int64), lengths),
            DeadLetters.of(dead) if dead else NO_LETTERS,
            sum(map(len, values)),
            partial(_records_of, values, starts),
            rows,
        )
        return Part(self._name, self._fields, chunk)

    def _batch_of(self, value: bytes) -> pa.RecordBatch:
        """Return the needed columns of a message. Raises _UnfitMessageError if it is no stream of events."""
        head = self._head_of(value)
        try:
            batch = _read(value, head.options)
            if not head.names:  # a batch without columns would not know its number of rows
                return pa.record_batch({self._fields.label: pa.nulls(batch.num_rows, pa.string())})
            batch.validate(full=True)  # offsets and indices in damaged bytes may point anywhere
            return _without_nested(_simple(batch))
        except _DAMAGE as error:
            raise _UnfitMessageError(_first_line(error)) from None

    def _head_of(self, value: bytes) -> _Head:
        """Return how to read a message, by its schema; most messages of a topic have the same schema."""
        if not value.startswith(ARROW_MARK):
            raise _UnfitMessageError(_other_format(value))
        key = value[: 8 + int.from_bytes(value[4:8], "little")]
        head = self._heads.get(key)
        if head is None:
            head = self._new_head(key)
            if len(self._heads) >= _KNOWN_HEADS:
                self._heads.clear()
            self._heads[key] = head
        return head

    def _new_head(self, schema_bytes: bytes) -> _Head:
        try:
            names = pa.ipc.read_schema(pa.py_buffer(schema_bytes)).names
        except _DAMAGE as error:
            raise _UnfitMessageError(_first_line(error)) from None
        wanted = [place for place, name in enumerate(names) if name in self._columns]
        found = [names[place] for place in wanted]
        for name in found:
            if found.count(name) > 1:
                raise _UnfitMessageError(
                    f"the column {name!r} is there {found.count(name)} times; give each its own name"
                )
        return _Head(pa.ipc.IpcReadOptions(use_threads=False, included_fields=wanted), found)


def columns_of_first(values: Iterable[bytes | None]) -> list[str] | None:
    """Return the columns of the first message that begins as an Arrow stream does.

    None if no message does.
    """
    for value in values:
        with suppress(*_DAMAGE), pa.ipc.open_stream(pa.BufferReader(value or b"")) as reader:
            names: list[str] = reader.schema.names
            return names
    return None


def _read(value: bytes, options: pa.ipc.IpcReadOptions) -> pa.RecordBatch:
    """Return the rows of a message as one batch.

    Raises _UnfitMessageError, or one of the errors in _DAMAGE.
    """
    size = bytes_when_read(value)
    if size > MOST_BYTES:
        raise _UnfitMessageError(
            f"it decompresses to {size:,} bytes, and {MOST_BYTES:,} are the most; write smaller messages"
        )
    source = pa.BufferReader(value)
    batches, rows = [], 0
    with pa.ipc.open_stream(source, options=options) as reader:
        for batch in reader:
            rows += batch.num_rows
            if rows > MOST_ROWS:
                raise _UnfitMessageError(
                    f"it has more than {MOST_ROWS:,} rows, which are the most; write smaller messages"
                )
            batches.append(batch)
        schema = reader.schema
    if behind := len(value) - source.tell():
        raise _UnfitMessageError(f"{behind:,} bytes follow its end; write one stream into each message")
    return _joined(batches or [pa.RecordBatch.from_pylist([], schema)])


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of several batches, all of one schema, as one batch."""
    if len(batches) < 2:
        return batches[0] if batches else pa.RecordBatch.from_pydict({})
    return pa.concat_batches(batches)


def _simple(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with columns of few types (`plain`)."""
    columns = []
    for column in batch.columns:
        kind = column.type
        if pa.types.is_dictionary(kind) and not (
            pa.types.is_string(kind.value_type) or pa.types.is_primitive(kind.value_type)
        ):
            column = column.dictionary_decode()
        columns.append(plain(column, dictionary=True))
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _without_nested(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with lists and structs as JSON text, the form that they have in records of JSON."""
    for place, field in enumerate(batch.schema):
        if pa.types.is_nested(field.type):
            values = batch.column(place).to_pylist()
            texts = [None if value is None else json_text(value) for value in values]
            batch = batch.set_column(place, field.name, pa.array(texts, pa.string()))
    return batch


def _records_of(values: Sequence[bytes], starts: Int64Array, rows: Int64Array) -> pa.Array:
    """Return whole records as JSON, given the messages and the number of the first row of each.

    rows  the numbers of the records, ascending

    A record is null if a column that the job does not read is damaged.
    """
    of_message = np.searchsorted(starts, rows, "right") - 1
    texts = []
    for message in np.unique(of_message).tolist():
        places = rows[of_message == message] - starts[message]
        try:
            batch = _read(values[message], pa.ipc.IpcReadOptions(use_threads=False))
            batch.validate(full=True)
            records = json_objects(_simple(batch).take(pa.array(places)) if batch.num_columns else batch)
        except _DAMAGE:
            records = pa.nulls(len(places), pa.string())
        texts.append(records[: len(places)])
    return pa.concat_arrays(texts)


def _other_format(value: bytes) -> str:
    """Return in words what a message is that does not begin as an Arrow stream does."""
    if value.startswith(b"ARROW1"):
        return "it is an Arrow file; write a stream, with pyarrow.ipc.new_stream"
    if value.lstrip()[:1] in (b"{", b"["):
        return "it begins as JSON does; leave --kafka-format arrow out, or write an Arrow IPC stream"
    return "it does not begin as an Arrow IPC stream does; write one, with pyarrow.ipc.new_stream"


def _first_line(error: BaseException) -> str:
    first = str(error).strip().partition("\n")[0][:200].rstrip(".")
    return f"it is damaged, cut short or of unknown types ({first})"
