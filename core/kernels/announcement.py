"""Says once on stderr that a process compiles kernels, when it has waited for them for two seconds.

A process waits for a kernel while it compiles the kernel, and while another process does so (`cache`).
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress

from ..process.console import say
from .cache_folder import CACHE_FOLDER

_SILENT_SECONDS = 2.0
"""Seconds of waiting without a message. A few kernels take less; only all kernels of a window take longer."""

_SENTENCE = "compiling the kernels for this machine, which takes some 15 seconds of an idle processor" + (
    "" if CACHE_FOLDER is None else "; they are kept for the next time"
)


class Announcement:
    """A context in which this process waits for kernels; one context may be within another.

    The seconds of all outermost contexts are added up.
    """

    def __init__(self, silent_seconds: float = _SILENT_SECONDS) -> None:
        self._left = silent_seconds
        self._depth = 0
        self._started = 0.0
        self._said = False
        self._alarm: threading.Timer | None = None
        self._lock = threading.RLock()

    @property
    def is_waiting(self) -> bool:
        """Whether this process waits for a kernel at this moment."""
        return self._depth > 0

    def __enter__(self) -> None:
        with self._lock:
            self._depth += 1
            if self._depth == 1 and not self._said:
                self._started = time.monotonic()
                self._alarm = threading.Timer(self._left, self._say)
                self._alarm.daemon = True
                with suppress(RuntimeError):  # no thread can be started, so there is no message
                    self._alarm.start()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and not self._said and self._alarm is not None:
                self._alarm.cancel()
                self._left = max(0.0, self._left - (time.monotonic() - self._started))

    def _say(self) -> None:
        with self._lock:
            if self._depth and not self._said:
                self._said = True
                say(_SENTENCE)


ANNOUNCEMENT = Announcement()
"""The announcement of this process, for all kernels."""
