"""Finds the quoted fields of CSV text, and the quotes that swallow records.

A quote opens a field if the quote is the first character of the field. Any other quote in a field without
quotes around it is text. In a quoted field, two quotes are one quote of the text, and commas and newlines
are text. Arrow and Python's `csv` follow the same rules. They raise no error for a field that is never
closed: the records behind its quote become text of one field. `cut_records` finds such a quote.
"""

from __future__ import annotations

import csv
import io
import re
from typing import NamedTuple

import numpy as np

from ...core.arrays import BoolArray, Int64Array

MOST_FIELD_BYTES = 1 << 16
"""The most bytes of a quoted field of several lines. A longer field has probably swallowed records: its first
quote is probably never closed, and a quote of a later record ends the field.
"""

_FEWEST_LINES = 10
"""The fewest lines of a field that count as records in a field: an address or a note can have some lines that
look like records.
"""

_QUOTE, _NEWLINE, _RETURN = b'"\n\r'
_REMEDY = "close the quote, and double each quote that is part of a text"


class CsvFault(NamedTuple):
    """A fault that ends the reading of CSV text.

    line  the line of the fault, from 1
    what  a clause that states the fault and its remedy
    """

    line: int
    what: str

    def of(self, name: str) -> str:
        """Return the text of an error that names the file, the line and the remedy."""
        return f"{name}, line {self.line:,}: {self.what}"


class Cut(NamedTuple):
    """Where a block of CSV text can be cut.

    end     the bytes of the whole records at the beginning of the block
    opener  the place of a quote that swallows the records behind it; the quote is not in these whole records.
            -1 if there is no such quote
    what    see `CsvFault`
    """

    end: int
    opener: int = -1
    what: str = ""


def quoted_fields(block: bytes, delimiter: bytes) -> tuple[Int64Array, Int64Array]:
    """Return the places of the first quote and of the last quote of each quoted field.

    block  text that begins where a record begins. The last quote of a field that is not closed in the block
           has the place len(block).

    Usually quotes open and close fields in turn; a doubled quote closes its field and opens the field again.
    This takes 30 ms for 10 MB where all fields are quoted. A quote inside a field without quotes breaks the
    turns, and the block is searched field by field, in about 0.5 us a field.
    """
    text = np.frombuffer(block, np.uint8)
    quotes = np.flatnonzero(text == _QUOTE)
    if not len(quotes):
        return quotes, quotes
    before = text[quotes[::2] - 1]
    if quotes[0] == 0:
        before[0] = _NEWLINE
    opens = (before == delimiter[0]) | (before == _NEWLINE) | (before == _RETURN)
    if not (opens | (before == _QUOTE)).all():
        return _searched(block, delimiter)
    turns = 2 * np.flatnonzero(opens)
    behind = len(block) if len(quotes) % 2 else quotes[-1]
    return quotes[turns], np.append(quotes[turns[1:] - 1], behind)


def _searched(block: bytes, delimiter: bytes) -> tuple[Int64Array, Int64Array]:
    found = re.finditer(rb'(?<![^%b\r\n])"(?:[^"]++|"")*+("?)' % re.escape(delimiter), block)
    places = [(field.start(), field.end() - 1 if field[1] else len(block)) for field in found]
    starts, ends = np.array(places, np.int64).reshape(-1, 2).T
    return starts, ends


def first_record(text: str, delimiter: str) -> list[str]:
    """Return the fields of the first record of a text that is no blank line; an empty list without a record.

    Raises csv.Error where the record cannot be read.
    """
    records = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    return next((record for record in records if record), [])


def header_fields(head: bytes, delimiter: bytes) -> int:
    """Return how many fields the first record of a text has.

    0 if there is no record, or if it cannot be read.
    """
    try:
        return len(first_record(head.decode("utf-8", "replace"), delimiter.decode()))
    except csv.Error:
        return 0


def cut_records(block: bytes, delimiter: bytes, *, is_last: bool, fields: int = 0) -> Cut:
    """Return where the whole records of a block end, and the first quote that swallows records. O(bytes).

    block    text that begins where a record begins
    is_last  whether the text ends with the block; else the last record may go on
    fields   how many fields a record has; 0 = not known

    A quoted field swallows records if the text ends inside the field. So does a field of several lines if the
    field is longer than MOST_FIELD_BYTES, if other text follows its last quote, or if its lines look like
    records. These are _FEWEST_LINES or more, and nine in ten of them have `fields` fields.
    """
    size = len(block)
    starts, ends = quoted_fields(block, delimiter) if b'"' in block else (_NONE, _NONE)
    if len(starts):
        for field in np.flatnonzero(_doubtful(block, starts, ends, delimiter, is_last=is_last)).tolist():
            start, end = int(starts[field]), int(ends[field])
            if how := _how(block, start, end, delimiter, is_last=is_last, fields=fields):
                what = f"a quote opens a field here, and {how}; {_REMEDY}"
                return Cut(_last_record(block, starts[:field], ends[:field], start), start, what)
    if is_last:
        return Cut(size)
    whole = size - block.endswith(b"\r")  # the next block may begin with the newline of this carriage return
    return Cut(_last_record(block, starts, ends, whole))


_NONE = np.empty(0, np.int64)


def _doubtful(
    block: bytes, starts: Int64Array, ends: Int64Array, delimiter: bytes, *, is_last: bool
) -> BoolArray:
    """Return which quoted fields `cut_records` must examine.

    All fields that swallow records, and few others.
    """
    text = np.frombuffer(block, np.uint8)
    behind = text[np.minimum(ends + 1, len(text) - 1)]
    goes_on = (behind != delimiter[0]) & (behind != _NEWLINE) & (behind != _RETURN) & (ends + 1 < len(text))
    found: BoolArray = goes_on | (ends - starts - 1 > MOST_FIELD_BYTES) | ((ends == len(text)) & is_last)
    long = np.flatnonzero(ends - starts > 2 * _FEWEST_LINES)
    if len(long):
        breaks = np.flatnonzero((text == _NEWLINE) | (text == _RETURN))
        lines = np.searchsorted(breaks, ends[long]) - np.searchsorted(breaks, starts[long])
        found[long[lines > _FEWEST_LINES]] = True
    return found


def _how(block: bytes, start: int, end: int, delimiter: bytes, *, is_last: bool, fields: int) -> str:
    """Return what is wrong with a doubtful field, whose quotes are at `start` and `end`.

    "" if nothing is wrong.
    """
    field = block[start + 1 : end]
    lines = lines_in(field)
    below = f", {lines:,} line{'s' * (lines > 1)} below" if lines else ""
    if is_last and end == len(block):
        return f"the file ends inside the field{below}"
    if not lines:
        return ""
    if len(field) > MOST_FIELD_BYTES:
        return f"the field is longer than {MOST_FIELD_BYTES:,} bytes, the most of a field of several lines"
    inside = [line for line in field.splitlines()[1:-1] if line]
    alike = sum(line.count(delimiter) + 1 == fields for line in inside)
    if fields > 1 and len(inside) >= _FEWEST_LINES and 10 * alike >= 9 * len(inside):
        return f"{alike:,} lines of the field have {fields} fields, as records have"
    if block[end + 1 : end + 2] not in (b"", delimiter, b"\n", b"\r"):
        return f"other text follows the quote that closes the field{below}"
    return ""


def lines_in(text: bytes) -> int:
    """Return how many lines end in a text; in a text without newlines, how many carriage returns it has."""
    return text.count(b"\n") or text.count(b"\r")


def _last_record(block: bytes, starts: Int64Array, ends: Int64Array, end: int) -> int:
    """Return where the last whole record before `end` ends: behind a newline that no quotes surround."""
    for field in range(len(starts) - 1, -1, -1):
        if (place := _last_newline(block, int(ends[field]) + 1, end)) >= 0:
            return place + 1
        end = min(int(starts[field]), end)
    return _last_newline(block, 0, end) + 1


def _last_newline(block: bytes, start: int, end: int) -> int:
    newline = block.rfind(b"\n", start, end)
    return max(newline, block.rfind(b"\r", max(newline, start), end))
