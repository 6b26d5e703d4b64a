"""The process's standard streams: stdout for data, and streams that the caller closed.

A shell closes a stream by `>&-`. Python then has None in the stream's place, and the next opened file takes
the stream's number. `open_closed_streams` fills these places. A closed stdin is then read as an empty file.
Text to stderr is dropped if stderr is closed or its disk is full: a job does not fail because nobody reads
its messages. Writing to a closed stdout fails: rows that nobody can read must not count as written.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from ..errors import RocsteadyError


def open_closed_streams() -> None:
    """Open a file in the place of each closed standard stream. Call this before any other file is opened."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115, PTH123 - open to the end of the process
    if sys.stdout is None:
        number = os.open(os.devnull, os.O_RDONLY)  # read-only, so that each write to stdout fails
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(io.FileIO(number, "w", closefd=False)), encoding="utf-8"
        )
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123


@contextmanager
def writing_out() -> Iterator[None]:
    """Flush stdout at the end of a block, and name stdout in an error of writing to it.

    Raises BrokenPipeError if the reader of stdout is gone, RocsteadyError if stdout takes no data.
    """
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        drop_the_rest(sys.stdout)
        if isinstance(error, BrokenPipeError):
            raise
        reason = "it is closed" if error.errno == errno.EBADF else error.strerror or str(error)
        raise RocsteadyError(f"stdout cannot be written to: {reason}") from None


def write_out(data: bytes) -> None:
    """Write bytes of UTF-8 to stdout and flush it, also if stdout takes only text, as in a notebook.

    Raises the errors of `writing_out`.
    """
    with writing_out():
        if (binary := getattr(sys.stdout, "buffer", None)) is None:
            sys.stdout.write(data.decode())
            return
        sys.stdout.flush()
        left = memoryview(data)
        while left:  # under PYTHONUNBUFFERED a write may take a part
            left = left[binary.write(left) :]


def drop_the_rest(stream: TextIO) -> None:
    """Drop the data that a stream still holds.

    Python would try to write the data again at exit, and fail.
    """
    with suppress(OSError):  # a stream without a number, as in a notebook
        number = os.open(os.devnull, os.O_WRONLY)
        os.dup2(number, stream.fileno())
        os.close(number)


class MainThreadOnly(io.TextIOBase):
    """A stream that writes the main thread's output, and drops the output of other threads.

    Beam's threads print tracebacks when an interrupted job closes their connections.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text if this is the main thread; return the text's length in either case."""
        if threading.current_thread() is threading.main_thread():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the underlying stream."""
        self._stream.flush()

    def fileno(self) -> int:
        """Return the file descriptor of the underlying stream."""
        return self._stream.fileno()
