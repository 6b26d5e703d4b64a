"""JSON lines as a stream of record batches: pyarrow reads flat blocks; other blocks are read line by line.

Only the requested columns are built, because records may have any number of other keys.

Invariant
    Every line that is not blank is in exactly one chunk, at the line's position. An object becomes a row, any
    other line a dead letter. No line ends the process, or the reading of other lines. Memory is bounded, for
    lines of any length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from ....core.arrays import Int64Array
from ....core.errors import InputError
from ....core.events.numbers import EXACT
from ....core.events.rejected import Reason
from ...events.columns import json_record
from ...events.dead_letters import NO_LETTERS, Chunk, DeadLetter, DeadLetters
from ...events.records import records_to_batch
from ...files.formats import HEAD_BYTES, SourceFile, arrow_buffer, unpacked
from ...files.lines import MOST_LINE_BYTES, LongLine, line_blocks, without_blank_lines
from .folder_columns import folder_columns

_HEAD_BYTES = 1 << 16

# pyarrow's JSON reader ends the process, or makes invalid arrays, for some nested values ([null, [1]], or
# lists some thousands deep) and for a document `null`. So pyarrow gets only flat objects, one on each line.
_LONE_NULL = re.compile(rb"\}\s*null")


def begun_lines(block: bytes) -> int | None:
    r"""Return the number of lines of a block; None if any line does not begin with "{".

    >>> begun_lines(b'{"score": 1}\n{"score": 0}'), begun_lines(b'{"score": 1}\n[1]')
    (2, None)
    """
    if not block.startswith(b"{"):
        return None
    lines = block.count(b"\n") + (not block.endswith(b"\n"))
    return lines if block.count(b"\n{") == lines - 1 else None


def _is_flat(block: bytes, lines: int) -> bool:
    """Return whether lines that begin with "{" have no list or object inside. Brackets in text give False."""
    if block.count(b"{") != lines or b"[" in block:
        return False
    return b"null" not in block or not _LONE_NULL.search(block)


@dataclass(frozen=True)
class JsonLines:
    """Reads JSON lines of one source.

    name          the name of the source, in dead letters.
    text_columns  columns that may hold whole numbers of any length (ids, classes, times). If pyarrow may have
                  rounded a whole number, of these or other columns, its block is read line by line, three
                  times slower. Blocks with nested values, or with a line that pyarrow does not understand,
                  are read line by line too. Records may differ in their keys and in the types of their
                  values.
    columns       the columns of the batches; None = every key that occurs in a block. A chunk's `raw` gives
                  the lines themselves.
    beside        the columns among these that the file has from its folders, beside its lines. Batches have
                  these columns only if the block has them. If a block lacks any other wanted column, it is
                  read line by line.
    """

    name: str
    text_columns: Sequence[str] = ()
    columns: Sequence[str] | None = None
    beside: Collection[str] = ()

    def of_stream(self, stream: BinaryIO, block_bytes: int = MOST_LINE_BYTES) -> Iterator[Chunk]:
        """Read any stream of bytes (a file, stdin) to its end."""
        position = 0
        for long, block in line_blocks(stream, block_bytes):
            for chunk in self.of_lines(long, block, position):
                yield chunk
                position += chunk.records

    def of_lines(self, long: LongLine | None, block: bytes, position: int) -> Iterator[Chunk]:
        """Read a result of `WholeLines.feed`; every chunk has at least one record."""
        if long is not None:
            raw = json.dumps(long.text(), ensure_ascii=False)
            detail = f"a line that is too long: {long}; {MOST_LINE_BYTES:,} are the most"
            letter = DeadLetter.invalid(Reason.LINE_TOO_LONG, self.name, detail, position, raw)
            yield Chunk(position, records_to_batch([], self.columns), None, DeadLetters.of([letter]))
            position += 1
        if block:
            chunk = self.chunk(block, position)
            if chunk.records:
                yield chunk

    def chunk(self, block: bytes, position: int = 0, lines: int | None = None) -> Chunk:
        """Read whole lines, whose first record has the position `position`.

        lines  the result of `begun_lines` for the block, if the caller has it
        """
        if lines is None and (lines := begun_lines(block)) is None:
            block = without_blank_lines(block)
            lines = begun_lines(block)
        columns = self._columns_in(block)
        batch = self._fast(block, lines, columns) if lines is not None and _is_flat(block, lines) else None
        if batch is None:
            return self._slow(block, position, columns)
        return Chunk(position, batch, None, NO_LETTERS, raw=partial(_texts_of, block))

    def _columns_in(self, block: bytes) -> Sequence[str] | None:
        """Return the columns that are built from a block; None = every key that occurs in it."""
        if self.columns is None or not self.beside:
            return self.columns
        return [
            name
            for name in self.columns
            if name not in self.beside or f'"{name}"'.encode() in block or json.dumps(name).encode() in block
        ]

    def _fast(self, block: bytes, lines: int, columns: Sequence[str] | None) -> pa.RecordBatch | None:
        """Read a block by pyarrow; None if pyarrow fails, or may read other values than Python."""
        try:
            if not block.isascii():
                block.decode()
            if columns is None:
                table = _read_flat(block, pa.schema([]))
                dates = [field.name for field in table.schema if pa.types.is_temporal(field.type)]
                if dates:
                    table = _read_flat(block, pa.schema([(name, pa.string()) for name in dates]))
            else:
                # The head of the block is read with all keys, for the types; the rest of the block only for
                # the columns.
                head = block[: block.find(b"\n", _HEAD_BYTES) + 1] or block
                found = _read_flat(head, pa.schema([]))
                schema = self._schema_of(found.schema, columns)
                if schema is None:
                    return None
                if len(head) == len(block) and not any(map(pa.types.is_temporal, found.schema.types)):
                    # the values of the second read
                    table = found.select(schema.names).cast(schema, safe=False)
                else:
                    table = _read_flat(block, schema, only=True)
        except (pa.ArrowException, ValueError):
            return None
        if table.num_rows != lines:
            return None
        floats = [column for column in table.columns if pa.types.is_floating(column.type)]
        if any((pc.max(pc.abs(column)).as_py() or 0) >= EXACT for column in floats):
            return None
        batches = table.combine_chunks().to_batches()
        return batches[0] if batches else None

    def _schema_of(self, found: pa.Schema, columns: Sequence[str]) -> pa.Schema | None:
        """Return the types of columns for a whole block, from its head; None if the head leaves a type open.

        Text that looks like a date stays text. A whole number in the head may be followed by fractions.
        """
        typed: list[tuple[str, pa.DataType]] = []
        for name in dict.fromkeys(columns):
            place = found.get_field_index(name)
            if place < 0 or pa.types.is_null(kind := found.field(place).type):
                return None
            if pa.types.is_temporal(kind):
                kind = pa.string()
            elif pa.types.is_integer(kind) and name not in self.text_columns:
                kind = pa.float64()
            typed.append((name, kind))
        return pa.schema(typed)

    def _slow(self, block: bytes, position: int, columns: Sequence[str] | None) -> Chunk:
        records: list[dict[str, object]] = []
        positions: list[int] = []
        sound: list[bytes] = []
        dead: list[DeadLetter] = []
        lines = (line for line in block.split(b"\n") if line.strip())
        for ordinal, line in enumerate(lines, position):
            try:
                record, reason, why = json.loads(line.decode()), Reason.NOT_A_JSON_OBJECT, ""
            except UnicodeDecodeError:
                record, reason, why = None, Reason.NOT_UTF8, ""
            except (ValueError, RecursionError) as error:
                record, reason, why = None, Reason.NOT_A_JSON_OBJECT, f": {error}"
            if isinstance(record, dict):
                records.append(record)
                positions.append(ordinal)
                sound.append(line)
            else:
                text = line.decode("utf-8", "replace").rstrip("\r")
                raw = json.dumps(text, ensure_ascii=False)
                dead.append(DeadLetter.invalid(reason, self.name, f"{reason}{why}", ordinal, raw))
        numbered = np.array(positions, np.int64) if dead else None
        numbers = () if columns is None else set(columns) - set(self.text_columns)
        batch = records_to_batch(records, columns, numbers)
        return Chunk(position, batch, numbered, DeadLetters.of(dead), raw=partial(_texts_of, sound))


def json_chunks(
    source: SourceFile, text_columns: Sequence[str] = (), columns: Sequence[str] | None = None
) -> Iterator[Chunk]:
    """Read a file of JSON lines; see `JsonLines`."""
    with unpacked(source) as (stream, raw):
        lines = JsonLines(source.name, text_columns, columns, folder_columns(source.path))
        for chunk in lines.of_stream(stream):
            yield chunk._replace(bytes_read=raw.tell())


def _texts_of(lines: bytes | Sequence[bytes], rows: Int64Array) -> pa.Array:
    """Return the text of rows, given the lines of all rows; a block of lines is split only here."""
    lines = lines.split(b"\n") if isinstance(lines, bytes) else lines
    return pa.array([_own_text(lines[row]) for row in rows.tolist()], pa.string())


def _own_text(line: bytes) -> str:
    text = line.strip().decode()
    if "NaN" in text or "Infinity" in text:  # Python and Arrow read these words, which JSON does not have
        return json_record(json.loads(text))
    return text


def _read_flat(block: bytes, schema: pa.Schema, *, only: bool = False) -> pa.Table:
    return pa.json.read_json(
        pa.BufferReader(arrow_buffer(block)),
        pa.json.ReadOptions(use_threads=False, block_size=len(block) + 1),
        pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore" if only else "infer"),
    )


def json_columns(source: SourceFile, most: int = MOST_LINE_BYTES) -> list[str] | None:
    """Return the keys of the first lines; None for a file without lines.

    The first lines are about a MiB, after blank lines and lines of more than `most` bytes. Raises InputError
    if none of these lines is an object.
    """
    head, too_long = b"", False
    with unpacked(source) as (stream, _):
        for long, block in line_blocks(stream, HEAD_BYTES, most):
            too_long = too_long or long is not None
            if head := without_blank_lines(block):
                break
    keys = keys_in(head)
    if keys is None and (too_long or head.strip()):
        hint = "no line is an object"
        if too_long:
            hint = f"a line is longer than {most:,} bytes, and no other one is an object"
        elif head.lstrip().startswith(b"["):
            hint = "it is one JSON array"
        raise InputError(f"{source.name} is not JSON lines: {hint}; write one JSON object on each line")
    return keys


def keys_in(block: bytes) -> list[str] | None:
    """Return the keys of all lines that are objects, each once; None if no line is an object."""
    records = [record for record in _parsed(block.split(b"\n")) if isinstance(record, dict)]
    return list(dict.fromkeys(chain.from_iterable(records))) if records else None


def keys_of_first(lines: Iterable[bytes | None], *, in_arrays: bool = False) -> list[str] | None:
    """Return the keys of the first line that is an object; None if no line is.

    in_arrays  whether an array that begins with an object also counts, as in messages of a stream
    """
    for record in _parsed(lines):
        if in_arrays and isinstance(record, list) and record:
            record = record[0]
        if isinstance(record, dict):
            return list(record)
    return None


def _parsed(lines: Iterable[bytes | None]) -> Iterator[Any]:
    """Yield the value of each line that is JSON."""
    for line in lines:
        with suppress(ValueError, RecursionError):
            yield json.loads(line or b"")
