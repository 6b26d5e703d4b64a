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
from ...events.chunk import Chunk
from ...events.dead_letters import DEAD_LETTER_SCHEMA, NO_LETTERS, DeadLetter, DeadLetters
from ...files.lines import SHOWN_BYTES
from ..files.json_lines import JsonLines, begun_lines
from .partition import Fetched


def message_chunk(fetched: Fetched, reader: JsonLines) -> Chunk:
    """Read messages. O(bytes).

    `positions` are the offsets, so several records of one message share one.
    """
    name = reader.name
    plain = _plain_lines(fetched.values)
    if plain is not None:
        chunk = reader.chunk(plain, lines=len(fetched.values))
        size = len(plain) - len(fetched.values) + 1
        return _at_offsets(chunk, _places(fetched.offsets), fetched, name, size)
    lines: list[bytes] = []
    offsets: list[int] = []
    dead: list[DeadLetter] = []
    for offset, value in zip(fetched.offsets, fetched.values, strict=True):
        text = b"" if value is None else value.strip()
        if not text:
            dead.append(DeadLetter.invalid(Reason.EMPTY_MESSAGE, name, "an empty message", offset))
            continue
        if b"\n" in text:
            text = text.replace(b"\n", b" ")  # inside its texts, JSON has no raw newline
        items = _items(text) if text[0] == _BRACKET else None
        if items is None:
            lines.append(text)
            offsets.append(offset)
        else:
            lines += items
            offsets += [offset] * len(items)
    chunk = reader.chunk(b"\n".join(lines)) if lines else _NOTHING
    size = sum(map(len, filter(None, fetched.values)))
    chunk = _at_offsets(chunk, np.array(offsets, np.int64), fetched, name, size)
    return chunk._replace(dead=DeadLetters.concat([DeadLetters.of(dead), chunk.dead]))


def _plain_lines(values: Sequence[bytes | None]) -> bytes | None:
    """Return messages as lines, without a loop; None if a message is null, or is not one line "{..."."""
    try:
        block = b"\n".join(values)  # type: ignore[arg-type]
    except TypeError:
        return None
    return block if begun_lines(block) == len(values) else None


_BRACKET = ord("[")
_NOTHING = Chunk(0, pa.RecordBatch.from_pydict({}), None, NO_LETTERS)


def _items(text: bytes) -> list[bytes] | None:
    """Return the items of a JSON array as lines; None for text that is no array."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return [json.dumps(item).encode() for item in found]


def _deleted(fetched: Fetched, name: str) -> DeadLetters:
    if not fetched.deleted:
        return NO_LETTERS
    first = fetched.next - fetched.deleted
    detail = f"{fetched.deleted:,} messages from here on were deleted by retention before they were read"
    return DeadLetters.of([DeadLetter.invalid(Reason.MESSAGES_DELETED, name, detail, first)])


def _places(offsets: Sequence[int]) -> Int64Array:
    if isinstance(offsets, range):  # np.array would make a Python object of each number
        return np.arange(offsets.start, offsets.stop, dtype=np.int64)
    return np.array(offsets, np.int64)


def _at_offsets(chunk: Chunk, places: Int64Array, fetched: Fetched, name: str, size: int) -> Chunk:
    """Return a chunk of lines as a chunk of messages, of `size` bytes; `places` are the lines' offsets."""
    return chunk._replace(
        first_position=fetched.offsets[0] if fetched.offsets else fetched.next,
        positions=places if chunk.positions is None else places[chunk.positions],
        dead=DeadLetters.concat([_deleted(fetched, name), _dead_at(chunk.dead, places)]),
        bytes_read=size,
    )


def _dead_at(dead: DeadLetters, places: Int64Array) -> DeadLetters:
    """Return dead letters of lines as dead letters of messages: with offsets, and with shortened text."""
    if not len(dead):
        return dead
    batch = dead.batch
    raws = [
        raw if raw is None or len(raw) <= SHOWN_BYTES else _cut(raw)
        for raw in batch.column("raw").to_pylist()
    ]
    changed = {
        "position": pa.array(places[batch.column("position").to_numpy()]),
        "raw": pa.array(raws, pa.string()),
    }
    arrays = [changed.get(field.name, batch.column(place)) for place, field in enumerate(DEAD_LETTER_SCHEMA)]
    return DeadLetters(pa.RecordBatch.from_arrays(arrays, schema=DEAD_LETTER_SCHEMA))


def _cut(raw: str) -> str:
    text = json.loads(raw)
    return json.dumps(f"{text[:SHOWN_BYTES]}... ({len(text):,} characters)", ensure_ascii=False)
