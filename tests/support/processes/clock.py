"""A clock that stands still until somebody sleeps, in place of the one on the wall."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest


class Clock:
    """What `time.monotonic` and `time.sleep` are while a test has it: no test waits, and none is too late.

    They are so for the thread that makes the clock. Other threads, as those that jobs of other tests left,
    have the clock on the wall. A sleep of less than a millisecond waits for such a thread: that sleep is
    real, and takes no time of this clock.

    now     seconds
    slept   whether anybody slept
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at_sleep: Callable[[], object] = bool) -> None:
        """Take the place of the clock; `at_sleep` is called after every sleep."""
        self.now = 1_000.0
        self.slept = False
        self._at_sleep = at_sleep
        self._due: list[tuple[float, Callable[[], object]]] = []
        mine, monotonic, sleep = threading.get_ident(), time.monotonic, time.sleep

        def is_mine(seconds: float) -> bool:
            return seconds >= 0.001 and threading.get_ident() == mine

        monkeypatch.setattr(
            time, "monotonic", lambda: self.now if threading.get_ident() == mine else monotonic()
        )
        monkeypatch.setattr(
            time,
            "sleep",
            lambda seconds: (self.sleep if is_mine(seconds) else sleep)(seconds),
        )

    def at(self, moment: float, action: Callable[[], object]) -> None:
        """Let something happen when the clock says `moment`, in the sleep during which that is."""
        self._due.append((moment, action))

    def sleep(self, seconds: float) -> None:
        """Go on by so many seconds."""
        self.now += seconds
        self.slept = True
        due, self._due = self._due, []
        for moment, action in due:
            if moment <= self.now:
                action()
            else:
                self._due.append((moment, action))
        self._at_sleep()
