"""Messages of a stream as records: a message is a JSON object, or a JSON array of objects.

Invariant
    Every message, or every item of one that is an array, is a row of the chunk or a dead letter, at the
    offset of its message. A message that is not JSON, or not an object, does not affect other messages.

The reader of JSON lines in files also reads messages, so an event is the same from a file or a stream.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ....core.arrays import Int64Array
from ....core.events.rejected import Reason
from ...events.dead_letters import NO_LETTERS, Chunk, DeadLetter, DeadLetters
from ...files.lines import SHOWN_BYTES
from ..files.json_lines import JsonLines, begun_lines
from .partition import Fetched


def message_chunk(fetched: Fetched, reader: JsonLines) -> Chunk:
    """Read messages. O(bytes).

    `positions` are the offsets, so several records of one message share one.
    """
    dead: list[DeadLetter] = []
    plain = _plain_lines(fetched.values)
    if plain is not None:
        chunk, places = reader.chunk(plain, lines=len(fetched.values)), _places(fetched.offsets)
        size = len(plain) - len(fetched.values) + 1
    else:
        lines, offsets, dead = _lines_of(fetched, reader.name)
        chunk, places = reader.chunk(b"\n".join(lines)) if lines else _NOTHING, np.array(offsets, np.int64)
        size = sum(map(len, filter(None, fetched.values)))
    letters = DeadLetters.of(dead) if dead else NO_LETTERS
    return chunk._replace(
        first_position=fetched.offsets[0] if fetched.offsets else fetched.next,
        positions=places if chunk.positions is None else places[chunk.positions],
        dead=DeadLetters.concat([letters, _dead_at(chunk.dead, places)]),
        bytes_read=size,
    )


def _lines_of(fetched: Fetched, name: str) -> tuple[list[bytes], list[int], list[DeadLetter]]:
    """Return messages as lines, the offset of each line, and dead letters of what has no line."""
    lines: list[bytes] = []
    offsets: list[int] = []
    dead: list[DeadLetter] = []
    if fetched.deleted:
        first = fetched.next - fetched.deleted
        detail = f"{fetched.deleted:,} messages from here on were deleted by retention before they were read"
        dead.append(DeadLetter.invalid(Reason.MESSAGES_DELETED, name, detail, first))
    for offset, value in zip(fetched.offsets, fetched.values, strict=True):
        text = b"" if value is None else value.strip()
        if not text:
            dead.append(DeadLetter.invalid(Reason.EMPTY_MESSAGE, name, "an empty message", offset))
            continue
        if b"\n" in text:
            text = text.replace(b"\n", b" ")  # inside its texts, JSON has no raw newline
        items = _items(text) if text[0] == _BRACKET else [text]
        lines += items
        offsets += [offset] * len(items)
    return lines, offsets, dead


def _plain_lines(values: Sequence[bytes | None]) -> bytes | None:
    """Return messages as lines, without a loop; None if a message is null, or is not one line "{..."."""
    try:
        block = b"\n".join(values)  # type: ignore[arg-type]
    except TypeError:
        return None
    return block if begun_lines(block) == len(values) else None


_BRACKET = ord("[")
_NOTHING = Chunk(0, pa.RecordBatch.from_pydict({}), None, NO_LETTERS)


def _items(text: bytes) -> list[bytes]:
    """Return the items of a JSON array as lines; the text itself if it is no array."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return [text]
    return [json.dumps(item).encode() for item in found]


def _places(offsets: Sequence[int]) -> Int64Array:
    if isinstance(offsets, range):  # np.array would make a Python object of each number
        return np.arange(offsets.start, offsets.stop, dtype=np.int64)
    return np.array(offsets, np.int64)


def _dead_at(dead: DeadLetters, places: Int64Array) -> DeadLetters:
    """Return dead letters of lines as dead letters of messages: with offsets, and with shortened text."""
    if not len(dead):
        return dead
    batch = dead.batch
    raws = [
        raw if raw is None or len(raw) <= SHOWN_BYTES else _cut(raw)
        for raw in batch.column("raw").to_pylist()
    ]
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns["position"] = pa.array(places[batch.column("position").to_numpy()])
    columns["raw"] = pa.array(raws, pa.string())
    return DeadLetters.of_columns(columns, len(dead))


def _cut(raw: str) -> str:
    text = json.loads(raw)
    return json.dumps(f"{text[:SHOWN_BYTES]}... ({len(text):,} characters)", ensure_ascii=False)
