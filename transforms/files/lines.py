"""Whole lines from bytes that come in pieces, in bounded memory; lines that are too long are skipped.

Invariant
    Every byte is in a block of whole lines or in a `LongLine`, of which only the beginning is kept.
    At most two pieces and MOST_LINE_BYTES are in memory.

Without a limit, a gzip file of 3 MB took 6.5 GB of memory: its only line had 3 GB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

MOST_LINE_BYTES = 8 << 20
"""The most bytes of a JSON line: a longer line is a dead letter. A record of CSV is limited by Arrow's block
of 4 to 32 MiB."""

SHOWN_BYTES = 10_000
"""The most bytes of an invalid line or message that its dead letter shows."""

MARK = b"\xef\xbb\xbf"
"""The byte order mark, which some programs write before UTF-8 text."""


class LongLine(NamedTuple):
    """A line that is too long to be a record.

    head   the line's first SHOWN_BYTES
    size   the line's bytes, without its newline
    start  the byte of the unpacked source at which the line begins
    """

    head: bytes
    size: int
    start: int

    def __str__(self) -> str:
        """Return the line's size and start, as part of an error."""
        return f"a line of {self.size:,} bytes, from byte {self.start:,} on"

    def text(self) -> str:
        """Return the beginning of the line, and its size."""
        return f"{self.head.decode('utf-8', 'replace')}... ({self.size:,} bytes)"


class WholeLines:
    r"""Cuts bytes after newlines; the bytes come in pieces of up to MOST_LINE_BYTES.

    A byte order mark at the start of the input is dropped.

    >>> lines = WholeLines()
    >>> lines.feed(b'{"score": ')[1], lines.feed(b'1}\n{"sc')[1], lines.rest()[1]
    (b'', b'{"score": 1}\n', b'{"sc')
    """

    def __init__(self, most: int = MOST_LINE_BYTES) -> None:
        self._most = most
        self._waiting: list[bytes] = []
        self._held = 0  # bytes of the unfinished line, including dropped bytes
        self._start = 0  # where the unfinished line begins
        self._first = True

    def feed(self, data: bytes) -> tuple[LongLine | None, bytes]:
        """Return a line that is too long, if one ends in `data`, and all new whole lines after it.

        The bytes after the last newline wait for the next call. O(bytes).
        """
        end = data.find(b"\n") + 1
        if end and self._held + end - 1 > self._most:
            self._wait(data[: end - 1])
            long = self._long()
            self._start += 1
            return long, self._through(data[end:])
        return None, self._through(data)

    def rest(self) -> tuple[LongLine | None, bytes]:
        """Return the bytes after the last newline, at the end of the input."""
        if self._held > self._most:
            return self._long(), b""
        block = self._without_mark(b"".join(self._waiting))
        self._start, self._held, self._waiting = self._start + self._held, 0, []
        return None, block

    def _through(self, data: bytes) -> bytes:
        """Return the waiting bytes with the whole lines of `data`.

        The rest of `data` waits for the next call.
        """
        cut = data.rfind(b"\n") + 1
        block = b"".join([*self._waiting, data[:cut]]) if cut else b""
        if cut:
            self._start, self._held, self._waiting = self._start + self._held + cut, 0, []
        self._wait(data[cut:])
        return self._without_mark(block)

    def _wait(self, data: bytes) -> None:
        self._held += len(data)
        if data and self._held - len(data) <= self._most:
            self._waiting.append(data)
        if self._held > self._most and len(self._waiting) > 1:
            self._waiting = [b"".join(self._waiting)[:SHOWN_BYTES]]

    def _long(self) -> LongLine:
        self._first = False
        long = LongLine(b"".join(self._waiting)[:SHOWN_BYTES], self._held, self._start)
        self._start, self._held, self._waiting = self._start + self._held, 0, []
        return long

    def _without_mark(self, block: bytes) -> bytes:
        if self._first:
            self._first = not block
            return block.removeprefix(MARK)
        return block


def line_blocks(
    stream: BinaryIO, block_bytes: int = MOST_LINE_BYTES, most: int = MOST_LINE_BYTES
) -> Iterator[tuple[LongLine | None, bytes]]:
    """Read a stream to its end; yield each result of `WholeLines.feed` that is not empty.

    block_bytes  bytes that are read at once, no more than `most`
    """
    lines = WholeLines(most)
    while True:
        data = stream.read(min(block_bytes, most))
        long, block = lines.feed(data) if data else lines.rest()
        if long is not None or block:
            yield long, block
        if not data:
            return


# ---- blank lines

_BLANK_LINES = re.compile(rb"\n[ \t\r\v\f\n]++(?:(?<=\n)|\Z)")


def without_blank_lines(block: bytes) -> bytes:
    r"""Return whole lines without blank lines; some blank lines may remain.

    A block of 8 MiB that has only newlines takes about 5 ms, like reading the block; a loop over lines took a
    second. A block with every second line blank takes 170 ms, a block without blank lines about 25 ms.

    >>> without_blank_lines(b"{}\n\n \r\n{}\n\n")
    b'{}\n{}\n'
    """
    return b"" if block.isspace() else _BLANK_LINES.sub(b"\n", b"\n" + block)[1:]
