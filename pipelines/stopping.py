"""Ctrl-C as a wish: a job that could go on for ever is asked to end, and ends well."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import threading
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NoReturn, TextIO

from ..core.process.console import say


class StopOnSignal:
    """While it is entered, the first SIGINT or SIGTERM sets `signal`; a second one interrupts.

    Who waits must not wait long, and look: the system goes on waiting after a signal.
    """

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self._said = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopOnSignal:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup: it stays ignored
                    self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = signal.Signals(number)

    def is_asked(self, told: str) -> bool:
        """Return whether to stop; the first time that it is so, `told` says on stderr what that means."""
        if self.signal is not None and not self._said:
            self._said = True
            name = "Ctrl-C" if self.signal == signal.SIGINT else "SIGTERM"
            say(f"{name}: {told}")
        return self.signal is not None


def end_at_once(number: int) -> NoReturn:
    """End this process and those it started, such as Prism, with the status of a signal, and say so."""
    say("interrupted once more; hidden files of unfinished outputs may be left")
    for children in Path("/proc/self/task").glob("*/children"):  # on Linux; elsewhere a terminal tells them
        with contextlib.suppress(OSError):
            for child in children.read_text().split():
                os.kill(int(child), signal.SIGTERM)
    os._exit(128 + number)


class MainThreadOnly(io.TextIOBase):
    """A stream that takes what the main thread writes, and drops what others do.

    Threads of Beam print their tracebacks when a job that is given up cuts their wires.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, if this is the main thread; return how many characters are seen to."""
        if threading.current_thread() is threading.main_thread():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Let what was written out."""
        self._stream.flush()

    def fileno(self) -> int:
        """Return the number of the stream."""
        return self._stream.fileno()
