"""Files as JSON lines in order of the records' event times, with the time of each line.

Invariant
    Every record that is a row is in exactly one `TimedLines`; times ascend from one `TimedLines` to the next.
    A record without a readable time has the time of the record before it in its file.

Files are read twice. First, `survey` reads only the times, and finds whether the times ascend. A file with
ascending times is streamed: one block is in memory, and only while its times are due. Any other file is
sorted in memory as a whole.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....core.arrays import Int64Array
from ....core.errors import InputError
from ....core.events.numbers import EXACT
from ....core.events.times import NO_TIME
from ....core.process.near_names import near_names
from ...events.columns import instants, plain, texts
from ...events.dead_letters import Chunk
from ...events.doubts.outlying import TimesOfFiles
from ...events.doubts.units import tell_doubt
from ...events.periods import column_at
from ...events.text import json_objects, rfc3339
from ...files.formats import SourceFile
from .listing import column_names
from .read import chunks_of, times_of

_BLOCK_ROWS = 8_192
"""How many records are formatted together. More records would delay the first of them."""

_NUMBER = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$"
_WHOLE = r"^-?(0|[1-9][0-9]{0,17})$"
"""The pattern of JSON's whole numbers that fit into int64. The pattern does not match 007, because this may
be a code.
"""


class TimedLines(NamedTuple):
    """Records as JSON objects, one for each line without a newline, and their times, int64[n], ascending."""

    times: Int64Array
    lines: list[str]


@dataclass(frozen=True)
class TimedFile:
    """The result of a survey of the times in a file.

    records, untimed, no_rows  the numbers of rows, of rows without a readable time, and of records that are
                               no rows
    first, last                the least and the greatest time; NO_TIME for a file without times
    rises                      whether no time is less than the time before it
    """

    source: SourceFile
    records: int
    untimed: int
    no_rows: int
    first: int
    last: int
    rises: bool


def survey(source: SourceFile, time: str, unit: str, form: str | None = None) -> TimedFile:
    """Read the times of a file: numbers in `unit`, or, if `form` is given, texts in this format.

    Raises InputError for a file without the column, or with records but without any time.
    """
    names = column_names(source)
    if names is not None and time not in names:
        near = near_names(time, names)
        meant = f" (did you mean {near[0]!r}?)" if near else ""
        raise InputError(
            f"{source.name} has no column {time!r}{meant}; it has {', '.join(names[:30])}. Say which holds "
            "the times with --time COL"
        )
    records = untimed = no_rows = 0
    first, last, before, rises = -NO_TIME, NO_TIME, NO_TIME, True
    seen = TimesOfFiles()
    for chunk in chunks_of(source, [time], [time], [time], [time]):
        times = times_of(chunk.batch, time, unit, form)
        if time in chunk.batch.schema.names:
            column = column_at(chunk.batch, chunk.batch.schema.get_field_index(time))
            tell_doubt(time, column, times, unit, form)
        known = times[times != NO_TIME]
        if (places := chunk.places()) is not None:
            seen.note_times("event", time, known, places[times != NO_TIME], source.name)
        records += len(times)
        untimed += len(times) - len(known)
        no_rows += len(chunk.dead)
        if len(known):
            rises = rises and int(known[0]) >= before and bool((np.diff(known) >= 0).all())
            before = int(known[-1])
            first, last = min(first, int(known.min())), max(last, int(known.max()))
    seen.tell()
    if records and last == NO_TIME:
        raise InputError(
            f"{source.name} has no time that can be read in its column {time!r}; name another with --time, "
            "the unit of its numbers with --time-unit, or the format of its texts with --time-format"
        )
    return TimedFile(source, records, untimed, no_rows, NO_TIME if last == NO_TIME else first, last, rises)


def timed_lines(
    files: Sequence[TimedFile],
    time: str,
    unit: str,
    text: Sequence[str] = (),
    start: int = NO_TIME,
    form: str | None = None,
) -> Iterator[TimedLines]:
    """Yield the records of files from the time `start` on, in order of time.

    Records of one file with equal times keep the file's order. JSON lines stay unchanged. In records of CSV
    and Parquet, the time is written in RFC 3339. A column of CSV that has only JSON numbers becomes numbers.
    The columns in `text` stay text.

    Memory: about 8,192 records, and Arrow's chunk, of each file whose times are due. All records of a file
    whose times do not ascend.
    """
    due = sorted((file for file in files if file.last >= start), key=lambda file: file.first)
    records = (_records(file, time, unit, text, start, form) for file in due)
    merged = (record for record in heapq.merge(*records, key=itemgetter(0)) if record[1])
    while rows := list(islice(merged, _BLOCK_ROWS)):
        times, lines = zip(*rows, strict=True)
        yield TimedLines(np.array(times, np.int64), [*lines])


def _records(
    file: TimedFile, time: str, unit: str, text: Sequence[str], start: int, form: str | None
) -> Iterator[tuple[int, str]]:
    """Yield an empty line first, so that the file is opened only when its records are due.

    Then yield (time, line) in order of time.
    """
    yield file.first, ""
    before = file.first
    all_times: list[Int64Array] = []
    all_lines: list[str] = []
    for chunk in chunks_of(file.source, None, [time], None, [time]):
        times = _filled(times_of(chunk.batch, time, unit, form), before)
        if not len(times):
            continue
        before = int(times[-1])
        kept = np.flatnonzero(times >= start)
        for place in range(0, len(kept), _BLOCK_ROWS):
            rows = kept[place : place + _BLOCK_ROWS]
            lines = _words(chunk, rows, time, unit, text, form)
            if file.rises:
                yield from zip(times[rows].tolist(), lines, strict=True)
            else:
                all_times.append(times[rows])
                all_lines += lines
    if all_lines:
        times = np.concatenate(all_times)
        for row in np.argsort(times, kind="stable").tolist():
            yield int(times[row]), all_lines[row]


def _filled(times: Int64Array, before: int) -> Int64Array:
    """Return the times; a missing time becomes the time before it, at the beginning `before`.

    `before` is the time before the first.
    """
    known = np.concatenate([[True], times != NO_TIME])
    places = np.maximum.accumulate(np.where(known, np.arange(len(known)), 0))
    return np.concatenate([[before], times])[places][1:]


def _words(
    chunk: Chunk, rows: Int64Array, time: str, unit: str, text: Sequence[str], form: str | None
) -> list[str]:
    """Return rows of a chunk as JSON objects."""
    if chunk.raw is not None:
        raw: list[str] = chunk.raw(rows).to_pylist()
        return raw
    batch = chunk.batch.take(pa.array(rows))
    columns = []
    for place, name in enumerate(batch.schema.names):
        column = column_at(batch, place)
        if name == time:
            columns.append(_moments(column, unit, form))
        elif name in text:
            columns.append(pa.array(texts(column).to_list(), pa.string()))
        else:
            columns.append(_number_or_text(column))
    words: list[str] = json_objects(pa.RecordBatch.from_arrays(columns, batch.schema.names)).to_pylist()
    return words


def _moments(column: pa.Array, unit: str, form: str | None) -> pa.Array:
    """Return times in RFC 3339; a value that is no time stays unchanged, as text."""
    micros = instants(column, unit, form)
    known = micros != NO_TIME
    moments = rfc3339(pa.array(micros, mask=~known).cast(pa.timestamp("us", "UTC")))
    if known.all():
        return moments
    return pc.coalesce(moments, pa.array(texts(column).to_list(), pa.string()))


def _number_or_text(column: pa.Array) -> pa.Array:
    """Return a column of numbers for a column of text with only JSON numbers.

    Return any other column unchanged.
    """
    column = plain(column)
    if not pa.types.is_string(column.type) or column.null_count == len(column):
        return column
    if pc.all(pc.match_substring_regex(column, _WHOLE)).as_py():
        return column.cast(pa.int64())
    if pc.all(pc.match_substring_regex(column, _NUMBER)).as_py():
        numbers = column.cast(pa.float64())
        largest = pc.max(pc.abs(numbers)).as_py()
        if largest is not None and largest < EXACT:  # float64 would change greater whole numbers
            return numbers
    return column
