"""The interface of a stream's partition: messages or parts from any offset on, and the partition's end.

A topic gives messages (`messages`). A pipe and a folder give parts: records with the roles of their columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from ....core.events.rejected import Reason
from ...events.batches import records_to_batch
from ...events.dead_letters import Chunk, DeadLetter, DeadLetters
from ...events.fields import EventFields
from ...files.lines import LongLine
from ..files.json_lines import JsonLines


class Part(NamedTuple):
    """Consecutive records of a source.

    source  the name that dead letters give: a file, or "stdin"
    fields  the roles of the columns, including the source of the model's name
    chunk   the records, and their positions in `source`
    """

    source: str
    fields: EventFields
    chunk: Chunk


def line_parts(
    blocks: Iterable[tuple[LongLine | None, bytes]], source: str, position: int, fields: EventFields
) -> Iterator[Part]:
    """Yield the events of JSON lines, the first of which is record number `position` of its source.

    blocks  results of `WholeLines.feed`: a line that is too long, or None; and the whole lines after it
    """
    lines = JsonLines(source, fields.text_columns_of(), fields.columns)
    for long, block in blocks:
        for chunk in lines.of_lines(long, block, position):
            position += chunk.records
            yield Part(source, fields, chunk._replace(bytes_read=len(block)))


def unread_part(reason: Reason, path: str, position: int | None, why: str, fields: EventFields) -> Part:
    """Return the dead letter for the part of a file that cannot be read.

    position  the position of the first record that cannot be read; None: not known
    why       a sentence that begins with the path
    """
    dead = DeadLetters.of([DeadLetter.invalid(reason, path, why, position)])
    return Part(path, fields.resolved((), path), Chunk(position or 0, records_to_batch([]), None, dead))


def cut_chunk(chunk: Chunk, start: int, end: int) -> Chunk:
    """Return the records at positions `start` to `end`, without `end`, of a chunk that has no `raw`."""
    low, high = np.searchsorted(np.asarray(chunk.places()), (start, end)).tolist()
    positions = None if chunk.positions is None else chunk.positions[low:high]
    dead = chunk.dead
    if len(dead):
        places = dead.batch.column("position").to_numpy()
        dead = DeadLetters(dead.batch.filter(pa.array((places >= start) & (places < end))))
    return Chunk(start, chunk.batch.slice(low, high - low), positions, dead)


class Fetched(NamedTuple):
    """Consecutive messages, or records, of a partition.

    offsets  the offsets of the messages; ascending, not always by 1.
    values   the messages' bytes; None = a message without a value.
    next     the offset from which the next fetch continues.
    at_end   whether no record existed after these at the time of the fetch.
    deleted  the number of messages before `next` that were deleted unread; such a fetch has no messages.
    parts    records instead of messages, where the partition knows the records' columns.
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

    resumes  whether another job can go on from an offset of this one
    """

    resumes: ClassVar[bool] = True

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name: of a topic's partition the source of dead letters, too."""

    @property
    def origin(self) -> str:
        """An id that tells partitions of one name apart; "" without an id, or if the name is unique."""
        return ""

    @abstractmethod
    def fetch(self, offset: int, limit: int, wait: float, place: str = "") -> Fetched:
        """Return up to `limit` records from an offset on; wait up to `wait` seconds for the first.

        place  the place that the previous fetch, of any process, returned; "" at the start
        """

    @abstractmethod
    def stop(self) -> None:
        """Let this process end the partition soon: records that it has begun to read come, later ones do not.

        The fetch that gives the last of them says `ended`.
        """

    def continued(self) -> Self:
        """Return the partition for a job behind whose last record another job goes on."""
        return self

    def end(self) -> int:
        """Return the offset behind the last message, as far as known; -1 = not known."""
        return -1

    def unread_partitions(self) -> int:
        """Return how many partitions the stream has that nobody reads: they came when the job ran."""
        return 0

    def close(self) -> None:  # noqa: B027 - a partition may hold nothing
        """Let go of what this process holds of the partition; to fetch again is no mistake."""
