"""Streams of CSV text for Arrow: it is UTF-8, cut into blocks of whole records, without open quotes.

Invariant
    Every byte before the first open quote is in some block, in order. Each block begins where a record begins
    and ends where a record ends, so Arrow gives a record to one batch. A block and its successor bound the
    memory.
"""

from __future__ import annotations

import codecs
import io
import re
from typing import BinaryIO

from .csv_quotes import CsvFault, cut_records, header_fields, lines_in
from .formats import HEAD_BYTES
from .lines import MARK

NO_TEXT = "\ufdd0"
"""A code point that text never has; it stands for a byte that is not UTF-8."""

_TOO_LONG = "cut the text of its fields, or close its quote"


class Utf8Stream(io.RawIOBase):
    """A stream of bytes that are always UTF-8: `NO_TEXT` replaces any other byte."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._ready = b""
        self.replaced = False

    def readable(self) -> bool:
        """Return True: the stream can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return `size` bytes; fewer only at the end."""
        parts: list[bytes] = []
        missing = size if size >= 0 else 1 << 62
        while missing and (self._ready or self._more(min(missing, HEAD_BYTES * 8))):
            parts.append(self._ready[:missing])
            self._ready = self._ready[len(parts[-1]) :]
            missing -= len(parts[-1])
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _more(self, size: int) -> bool:
        data = b"more"
        while data and not self._ready:
            data = self._raw.read(size)
            text = self._decoder.decode(data, final=not data)
            try:
                self._ready = text.encode()
            except UnicodeEncodeError:
                self.replaced = True
                self._ready = re.sub("[\udc80-\udcff]", NO_TEXT, text).encode()
        return bool(self._ready)


class RecordStream(Utf8Stream):
    """UTF-8 in blocks of whole records; the stream ends before a record that swallows others, or is too long.

    fault  what ended the stream before the end of the text; None if nothing has
    """

    def __init__(self, raw: BinaryIO, delimiter: str) -> None:
        super().__init__(raw)
        self._delimiter = delimiter.encode()
        self._rest: bytes | None = None  # the text after the last block; None = nothing was read yet
        self._lines = 0
        self._fields = 0
        self._ended = False
        self.fault: CsvFault | None = None

    def read(self, size: int = -1) -> bytes:
        """Return the next whole records, of `size` bytes at the most; no bytes at the end. O(bytes).

        Arrow makes one block from the bytes of each call.
        """
        if self._ended:
            return b""
        rest = b"" if self._rest is None else self._rest
        data = rest + super().read(size - len(rest) if size >= 0 else -1)
        is_last = size < 0 or len(data) < size
        if self._rest is None:
            data = data.removeprefix(MARK)
            self._fields = header_fields(data[:HEAD_BYTES], self._delimiter)
        end, opener, what = cut_records(data, self._delimiter, is_last=is_last, fields=self._fields)
        if opener < 0 and not end and not is_last:
            opener, what = 0, f"the record that begins here has more than {size:,} bytes; {_TOO_LONG}"
        block, self._rest = data[:end], data[end:]
        if opener >= 0:
            self.fault = CsvFault(self._lines + lines_in(data[:opener]) + 1, what)
        self._ended = is_last or opener >= 0
        self._lines += lines_in(block)
        return block
