"""The progress of this process's readers: plain counters for a progress line, and a refused value by reason.

The process that reads has the counters; on the local runner, that is the command's own process. The counters
are for display only: a retried bundle counts twice. Correct sums are in Beam's metrics.
"""

from __future__ import annotations

import operator
import threading
from typing import NamedTuple

from ..events.dead_letters import DeadLetters


class Progress(NamedTuple):
    """Counters so far: records read, their dead letters, bytes of the files, files done.

    reports  reports of folds of learners, each at a checkpoint
    """

    records: int = 0
    dead_letters: int = 0
    bytes: int = 0
    files: int = 0
    reports: int = 0


_lock = threading.Lock()
_now = Progress()
_refused: dict[str, str] = {}


def add(**more: int) -> None:
    """Add to the counters, by their names in `Progress`."""
    global _now
    with _lock:
        _now = Progress._make(map(operator.add, _now, Progress(**more)))


def read() -> Progress:
    """Return the counters as they stand."""
    return _now


def note_refused(letters: DeadLetters) -> None:
    """Keep a value of a dead letter for each reason: the first that this process reads."""
    texts = (letters.batch.column(name).to_pylist() for name in ("reason", "value"))
    for reason, value in zip(*texts, strict=True):
        if value is not None:
            _refused.setdefault(reason, value)


def refused(reason: str) -> str | None:
    """Return a value that was refused for a reason; None: no dead letter of this process has a value."""
    return _refused.get(reason)


def reset() -> None:
    """Set the counters to 0 and forget refused values, before a job starts."""
    global _now
    with _lock:
        _now = Progress()
    _refused.clear()
