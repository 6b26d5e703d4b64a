"""A log filter against floods: of records of one kind, one a minute passes.

The next record that passes says how many records were held back.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

SECONDS = 60.0


class RareLog(logging.Filter):
    """Lets one record of a kind pass in `seconds`. The next record to pass says how many were held back.

    A kind is a record's level and a text: the message before its arguments are put in, or the result of
    `kind`. The filter holds one entry for each kind, for ever. So give the logger constant messages with
    arguments, not texts that differ.

    >>> rare = RareLog()
    >>> lines = [logging.LogRecord("x", 30, "", 1, "shard %d is late", (n,), None) for n in range(3)]
    >>> [rare.filter(line) for line in lines]
    [True, False, False]
    """

    def __init__(
        self,
        seconds: float = SECONDS,
        kind: Callable[[logging.LogRecord], str] = lambda record: record.msg,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._seconds = seconds
        self._kind = kind
        self._clock = clock
        self._passed: dict[tuple[int, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record may pass; add to its message how many records were held back before it."""
        kind, now = (record.levelno, self._kind(record)), self._clock()
        last, held = self._passed.get(kind, (-float("inf"), 0))
        if now - last < self._seconds:
            self._passed[kind] = last, held + 1
            return False
        self._passed[kind] = now, 0
        if held:
            record.msg, record.args = f"{record.getMessage()} (and {held:,} more such lines)", ()
        return True
