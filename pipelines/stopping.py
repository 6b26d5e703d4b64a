"""Handles Ctrl-C, SIGTERM and SIGHUP: any command is interrupted, and a job without an end may end in order.

`Interruptible` is around every command. Within it, `StopOnSignal` asks a job to end its input, and
`SignalsHeld` lets a step end before a signal does.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, Self

from ..core.process.console import say


class OnSignal(ABC):
    """A context in which the main thread takes signals; `signal` is the signal that came, if any."""

    def __init__(self, numbers: Iterable[signal.Signals]) -> None:
        self.signal: signal.Signals | None = None
        self._numbers = numbers
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in self._numbers:
                if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup, the signal stays ignored
                    self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @abstractmethod
    def _take(self, number: int, frame: FrameType | None) -> None:
        """Store a signal that came."""


class StopOnSignal(OnSignal):
    """A context in which the first SIGINT or SIGTERM sets `signal`; a second signal interrupts.

    The system continues a wait after a signal. So a caller must wait only briefly, and then ask `is_asked`.
    """

    def __init__(self) -> None:
        super().__init__((signal.SIGINT, signal.SIGTERM))
        self._said = False

    def _take(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = signal.Signals(number)

    def is_asked(self, told: str) -> bool:
        """Return whether a signal asked to stop; the first time, print the sentence `told` on stderr."""
        if self.signal is not None and not self._said:
            self._said = True
            name = "Ctrl-C" if self.signal == signal.SIGINT else "SIGTERM"
            say(f"{name}: {told}")
        return self.signal is not None


_ENDING = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
if sys.platform != "win32":
    _ENDING[signal.SIGHUP] = "the terminal hung up"


_AGAIN_SECONDS = 0.05


class Interruptible(OnSignal):
    """A context in which SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt in the main thread.

    The context records the signal, because an engine may turn the exception into another error. After a
    signal, any error counts as the signal's consequence. A second signal ends the process at once, if the
    command owns the process. A second KeyboardInterrupt would come during the engine's shutdown: it once left
    a gRPC traceback, and once a process that never ended.

    If C code calls Python, it ignores the exceptions that Python raises. LLVM calls Python when it has
    compiled a kernel, which takes seconds, so a signal at that time was mostly lost. The exception is then
    raised once more.
    """

    def __init__(self, *, ends_process: bool) -> None:
        super().__init__(_ENDING)
        self._ends_process = ends_process
        self._is_lost = False
        self._report = sys.unraisablehook
        self._again: threading.Timer | None = None

    def __enter__(self) -> Self:
        self._report = sys.unraisablehook
        sys.unraisablehook = self._take_ignored
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        if self._again is not None:
            self._again.cancel()
        super().__exit__(*error)
        sys.unraisablehook = self._report

    def _take(self, number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG002
        if self.signal is not None and self._ends_process and not self._is_lost:
            _end_at_once(number)
        self._is_lost = False
        self.signal = signal.Signals(number)
        raise KeyboardInterrupt

    def _take_ignored(self, ignored: sys.UnraisableHookArgs) -> None:
        """Take an exception that nothing can catch: if a signal raised it, raise it again a moment later."""
        if isinstance(ignored.exc_value, KeyboardInterrupt):
            # When the timer ends, the C code has returned.
            self._again = threading.Timer(_AGAIN_SECONDS, self._interrupt_again)
            self._again.daemon = True
            self._again.start()
        else:
            self._report(ignored)

    def _interrupt_again(self) -> None:
        self._is_lost = True
        _thread.interrupt_main(self.signal or signal.SIGINT)

    def say(self) -> int:
        """Report the signal on stderr; return the exit status that a shell expects, 128 + its number."""
        number = self.signal or signal.SIGINT
        say(f"{_ENDING[number]}; no unfinished output is left")
        return 128 + number


class SignalsHeld(OnSignal):
    """A context in which SIGINT, SIGTERM and SIGHUP have no effect before its end.

    To block signals in the main thread is not enough: the system gives them to another thread, and Python
    then calls the handler in the main thread.
    """

    def __init__(self) -> None:
        super().__init__(_ENDING)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        if self.signal is not None:
            signal.raise_signal(self.signal)

    def _take(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.signal = signal.Signals(number)


def _end_at_once(number: int) -> NoReturn:
    """End this process and its children, such as Prism, with the exit status of a signal and a message."""
    say("interrupted once more; hidden files of unfinished outputs may be left")
    # on Linux; elsewhere a terminal sends them the signal
    for children in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in children.read_text().split():
                os.kill(int(child), signal.SIGTERM)
    os._exit(128 + number)
