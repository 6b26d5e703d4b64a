"""Parts of a stream: records of one source, with the roles of their columns.

A pipe and a folder give parts. A topic gives messages (`messages`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ....core.events.rejected import Reason
from ...events.batches import records_to_batch
from ...events.chunk import Chunk
from ...events.dead_letters import DeadLetter, DeadLetters
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
