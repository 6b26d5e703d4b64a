"""The interface of a stream's partition: messages or parts from any offset on, and the partition's end.

A topic gives messages. A pipe and a folder give parts: records in columns, with the roles of the columns.

Messages as records: a message is a JSON object, or a JSON array of objects.

Invariant
    Every message, or every item of a message that is an array, is a row of the chunk or a dead letter, at the
    offset of its message. A message that is not JSON, or not an object, does not affect other messages.

The reader of JSON lines in files also reads messages, so an event is the same from a file or a stream.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa

from ....core.arrays import Int64Array
from ....core.events.rejected import Reason
from ...events.dead_letters import NO_LETTERS, Chunk, DeadLetter, DeadLetters
from ...events.fields import EventFields, Role
from ...events.records import records_to_batch
from ...files.lines import SHOWN_BYTES, LongLine
from ..files.json_lines import JsonLines, begun_lines

MessageFormat = Literal["json", "arrow"]
"""The format of messages: JSON, or Arrow IPC streams (`arrow_messages`)."""

ARROW_MARK = b"\xff\xff\xff\xff"
"""The first bytes of an Arrow IPC stream, in all versions of Arrow since 0.15."""


class Part(NamedTuple):
    """Consecutive records of a source.

    source  the name of the source in dead letters: a file, or "stdin"
    fields  the roles of the columns, including the source of the model's name
    chunk   the records, and their positions in `source`
    """

    source: str
    fields: EventFields
    chunk: Chunk


def line_parts(
    blocks: Iterable[tuple[LongLine | None, bytes]],
    source: str,
    position: int,
    fields: EventFields,
    role: Role = "event",
    beside: Collection[str] = (),
) -> Iterator[Part]:
    """Yield the records of JSON lines, the first of which is record number `position` of its source.

    blocks  results of `WholeLines.feed`: a line that is too long, or None, and the whole lines after it
    beside  see `JsonLines`
    """
    lines = JsonLines(source, fields.text_columns_of(role), fields.columns_of(role), beside)
    for long, block in blocks:
        for chunk in lines.of_lines(long, block, position):
            position += chunk.records
            yield Part(source, fields, chunk._replace(bytes_read=len(block)))


def unread_part(reason: Reason, path: str, position: int | None, why: str, fields: EventFields) -> Part:
    """Return the dead letter for the part of a file that cannot be read.

    position  the position of the first record that cannot be read; None if it is not known
    why       a sentence that begins with the path
    """
    dead = DeadLetters.of([DeadLetter.invalid(reason, path, why, position)])
    return Part(path, fields.resolved((), path), Chunk(position or 0, records_to_batch([]), None, dead))


def cut_chunk(chunk: Chunk, start: int, end: int) -> Chunk:
    """Return the records of a chunk at positions `start` to before `end`; the chunk must have no `raw`."""
    low, high = np.searchsorted(np.asarray(chunk.places()), (start, end)).tolist()
    positions = None if chunk.positions is None else chunk.positions[low:high]
    dead = chunk.dead
    if len(dead):
        places = dead.batch.column("position").to_numpy()
        dead = DeadLetters(dead.batch.filter(pa.array((places >= start) & (places < end))))
    return Chunk(start, chunk.batch.slice(low, high - low), positions, dead)


def chunk_at(chunk: Chunk, places: Int64Array) -> Chunk:
    """Return a chunk with other positions.

    Record number i of its source is at places[i] of another source.
    """
    rows, dead = chunk.places(), chunk.dead
    if len(dead):
        number = dead.batch.schema.get_field_index("position")
        there = pa.array(places[dead.batch.column(number).to_numpy()])
        dead = DeadLetters(dead.batch.set_column(number, dead.batch.schema.field(number), there))
    return chunk._replace(
        first_position=int(places[chunk.first_position]),
        positions=None if rows is None else places[rows],
        dead=dead,
    )


class Fetched(NamedTuple):
    """Consecutive messages, or records, of a partition.

    offsets  the offsets of the messages; ascending, not always by 1.
    values   the messages' bytes; None = a message without a value.
    next     the offset from which the next fetch continues.
    at_end   whether no record existed after these records at the time of the fetch.
    deleted  the number of messages before `next` that were deleted unread; such a fetch has no messages.
    parts    records in columns instead of messages, if the partition knows the columns.
    place    the place of `next` in the partition's own format, if an offset alone does not identify it.
    ended    whether no record will ever come after `next`.
    """

    offsets: Sequence[int]
    values: Sequence[bytes | None]
    next: int
    at_end: bool
    deleted: int = 0
    parts: Sequence[Part] = ()
    place: str = ""
    ended: bool = False


class StreamPartition(ABC):
    """One partition of a stream. A partition is sent to workers, so it holds no connection itself.

    resumes  whether another job can continue from an offset of this partition
    """

    resumes: ClassVar[bool] = True

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the partition.

        For a partition of a topic, it is also the source that dead letters name.
        """

    @property
    def origin(self) -> str:
        """The ids that distinguish partitions of one name; "" if there is no id, or if the name is unique."""
        return ""

    @property
    def known(self) -> int:
        """The number of partitions that the stream had when the job began; 0 if none are ever added."""
        return 0

    @property
    def is_first(self) -> bool:
        """Whether this is the partition that every stream of this kind has.

        Number 0, or the only partition.
        """
        return True

    def as_of(self, known: int) -> Self:  # noqa: ARG002
        """Return this partition for a job that began when the stream had `known` partitions."""
        return self

    def added(self) -> Sequence[int]:
        """Return the numbers of added partitions, as far as known, that this reader reads, too."""
        return ()

    def sibling(self, number: int) -> Self:  # noqa: ARG002
        """Return another partition of the stream."""
        return self

    @abstractmethod
    def fetch(self, offset: int, limit: int, wait: float, place: str = "") -> Fetched:
        """Return up to `limit` records from an offset on; wait up to `wait` seconds for the first.

        place  the place that the previous fetch, of any process, returned; "" at the start
        """

    @abstractmethod
    def stop(self) -> None:
        """Let this process end the partition soon.

        Records that it has begun to read still come, later records do not.

        The fetch that gives the last of these records has `ended`.
        """

    def continued(self) -> Self:
        """Return the partition for a job that another job will continue."""
        return self

    def check(self) -> None:  # noqa: B027 - a partition may be the same for ever
        """Raise RocsteadyError if the job has offsets of another stream than this."""

    def end(self) -> int:
        """Return the offset behind the last message, as far as known; -1 = not known."""
        return -1

    def close(self) -> None:  # noqa: B027 - a partition may hold nothing
        """Close everything that this process holds of the partition; a later fetch opens it again."""


def message_chunk(fetched: Fetched, reader: JsonLines) -> Chunk:
    """Read messages as a chunk. O(bytes).

    `positions` are the offsets, so several records of one message share an offset.
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
    """Return messages as lines, the offset of each line, and dead letters of the messages without a line."""
    lines: list[bytes] = []
    offsets: list[int] = []
    dead = letters_of_empty(fetched, name)
    for offset, value in zip(fetched.offsets, fetched.values, strict=True):
        text = (value or b"").strip()
        if not text:
            continue
        if text.startswith(ARROW_MARK):
            detail = f"{Reason.NOT_A_JSON_OBJECT}: it is an Arrow IPC stream; say --kafka-format arrow"
            dead.append(
                DeadLetter.invalid(Reason.NOT_A_JSON_OBJECT, name, detail, offset, shown_message(text))
            )
            continue
        if b"\n" in text:
            text = text.replace(b"\n", b" ")  # inside its texts, JSON has no raw newline
        items = _items(text) if text[0] == _BRACKET else [text]
        lines += items
        offsets += [offset] * len(items)
    return lines, offsets, dead


def letters_of_empty(fetched: Fetched, name: str) -> list[DeadLetter]:
    """Return dead letters of messages that have no value, or only blanks, and of deleted messages."""
    dead = []
    if fetched.deleted:
        first = fetched.next - fetched.deleted
        detail = f"{fetched.deleted:,} messages from here on were deleted by retention before they were read"
        dead.append(DeadLetter.invalid(Reason.MESSAGES_DELETED, name, detail, first))
    for offset, value in zip(fetched.offsets, fetched.values, strict=True):
        if not value or value.isspace():
            dead.append(DeadLetter.invalid(Reason.EMPTY_MESSAGE, name, "an empty message", offset))
    return dead


def shown_message(value: bytes) -> str:
    """Return the beginning of a message that is not understood, as a JSON text."""
    head = value[:SHOWN_BYTES].decode("utf-8", "backslashreplace")
    more = f"... ({len(value):,} bytes)" if len(value) > SHOWN_BYTES else ""
    return json.dumps(head[:SHOWN_BYTES] + more, ensure_ascii=False)


def _plain_lines(values: Sequence[bytes | None]) -> bytes | None:
    """Return messages as lines, without a loop; None if a message is null, or is not a single line "{..."."""
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
    """Return dead letters of lines as dead letters of messages: they get offsets, and shortened text."""
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
