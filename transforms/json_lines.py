"""JSON lines as a stream of record batches: flat blocks by pyarrow, all others line by line.

Invariant
    Every line that is not blank is in exactly one chunk, at its position: a row where it is an object,
    otherwise a dead letter. No line ends the process, or the reading of the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from ..core.errors import InputError
from .columns import EXACT
from .dead_letters import DeadLetter, DeadLetters
from .file_formats import HEAD_BYTES, Chunk, SourceFile, text_head, unpacked
from .record_batches import records_to_batch

_BLOCK_BYTES = 8 << 20

# pyarrow's JSON reader ends the process, or makes invalid arrays, for some nested values ([null, [1]], or
# lists some thousands deep) and for a document `null`. So it gets flat objects only, one to a line.
_LONE_NULL = re.compile(rb"\}\s*null")


def _is_flat(block: bytes) -> bool:
    """Tell whether every line is one "{...}" without a list or object inside. Brackets in text say no."""
    lines = block.count(b"\n") + (not block.endswith(b"\n"))
    return (
        block.startswith(b"{")
        and block.count(b"\n{") == lines - 1
        and block.count(b"{") == lines
        and b"[" not in block
        and not _LONE_NULL.search(block)
    )


def json_line_chunks(
    stream: BinaryIO,
    name: str,
    text_columns: Sequence[str] = (),
    block_bytes: int = _BLOCK_BYTES,
) -> Iterator[Chunk]:
    """Read JSON lines from any stream of bytes (a file, stdin); `name` is the source in dead letters.

    text_columns are columns that may hold whole numbers of any length (ids, classes, times): where
    pyarrow would round them, the block is read line by line. So is a block with nested values, and one
    with any line that pyarrow does not understand: three times slower. Records may differ in their keys
    and in the types of their values.
    """
    position = 0
    date_like: set[str] = set()
    rest: list[bytes] = []
    first = True
    while True:
        data = stream.read(block_bytes)
        cut = data.rfind(b"\n") + 1
        if data and not cut:
            rest.append(data)
            continue
        block, rest = b"".join([*rest, data[:cut]]), [data[cut:]]
        if first and block.startswith(b"\xef\xbb\xbf"):
            block = block[3:]
        first = first and not block
        if block:
            batch = _fast_json(block, text_columns, date_like) if _is_flat(block) else None
            if batch is None:
                chunk = _slow_json(block, name, position)
            else:
                chunk = Chunk(position, batch, None, DeadLetters.of(()))
            yield chunk
            position += chunk.records
        if not data:
            return


def json_chunks(source: SourceFile, text_columns: Sequence[str] = ()) -> Iterator[Chunk]:
    """Read a file of JSON lines; see `json_line_chunks`."""
    with unpacked(source) as (stream, raw):
        for chunk in json_line_chunks(stream, source.path, text_columns):
            yield chunk._replace(bytes_read=raw.tell())


def _fast_json(block: bytes, text_columns: Sequence[str], date_like: set[str]) -> pa.RecordBatch | None:
    """Read a block by pyarrow; None where that fails. Text that looks like a date stays text."""
    lines = block.count(b"\n") + (not block.endswith(b"\n"))
    while True:
        schema = pa.schema([(column, pa.string()) for column in sorted(date_like)])
        try:
            block.decode()
            table = pa.json.read_json(
                pa.BufferReader(block),
                pa.json.ReadOptions(use_threads=False, block_size=len(block) + 1),
                pa.json.ParseOptions(explicit_schema=schema if date_like else None),
            )
        except (pa.ArrowException, ValueError):
            return None
        more = {field.name for field in table.schema if pa.types.is_temporal(field.type)} - date_like
        if not more:
            break
        date_like |= more
    if table.num_rows != lines:
        return None
    for column in text_columns:
        if column in table.column_names and pa.types.is_floating(table[column].type):
            largest = pc.max(pc.abs(table[column])).as_py()
            if largest is not None and largest >= EXACT:
                return None
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else None


def _slow_json(block: bytes, name: str, position: int) -> Chunk:
    records: list[dict[str, object]] = []
    positions: list[int] = []
    dead: list[DeadLetter] = []
    lines = (line for line in block.split(b"\n") if line.strip())
    for ordinal, line in enumerate(lines, position):
        try:
            record, why = json.loads(line.decode()), "not a JSON object"
        except UnicodeDecodeError:
            record, why = None, "not UTF-8"
        except (ValueError, RecursionError) as error:
            record, why = None, f"not a JSON object: {error}"
        if isinstance(record, dict):
            records.append(record)
            positions.append(ordinal)
        else:
            text = line.decode("utf-8", "replace").rstrip("\r")
            raw = json.dumps(text, ensure_ascii=False)
            dead.append(DeadLetter("invalid", why, name, ordinal, raw=raw))
    numbered = np.array(positions, np.int64) if dead else None
    return Chunk(position, records_to_batch(records), numbered, DeadLetters.of(dead))


def json_columns(source: SourceFile) -> list[str] | None:
    """Return the keys of the first lines; None where there is no line. Raises InputError for no object."""
    head = text_head(source)
    whole = head if len(head) < HEAD_BYTES else head[: head.rfind(b"\n") + 1] or head
    lines = [line for line in whole.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()]
    keys: dict[str, None] = {}
    objects = 0
    for line in lines:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            objects += 1
            keys.update(dict.fromkeys(record))
    if lines and not objects:
        hint = "it is one JSON array" if lines[0].lstrip().startswith(b"[") else "no line is an object"
        raise InputError(f"{source.path} is not JSON lines: {hint}; write one JSON object on each line")
    return list(keys) if lines else None
