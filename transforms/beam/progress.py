"""How far the readers of this process have come: plain counters for a progress line.

They count in the process that reads, which on the local runner is the command's own. They are for eyes
only: a retried bundle counts twice. What must add up is in Beam's metrics.
"""

from __future__ import annotations

import threading
from typing import NamedTuple


class Progress(NamedTuple):
    """What has been read so far: records, dead letters among them, bytes of the files, files done.

    reports  of folds of learners, each at a checkpoint
    """

    records: int = 0
    dead_letters: int = 0
    bytes: int = 0
    files: int = 0
    reports: int = 0


_lock = threading.Lock()
_now = Progress()


def add(
    *,
    records: int = 0,
    dead_letters: int = 0,
    bytes: int = 0,  # noqa: A002
    files: int = 0,
    reports: int = 0,
) -> None:
    """Count what has just been read, or been reported."""
    global _now
    with _lock:
        _now = Progress(
            _now.records + records,
            _now.dead_letters + dead_letters,
            _now.bytes + bytes,
            _now.files + files,
            _now.reports + reports,
        )


def read() -> Progress:
    """Return the counters as they stand."""
    return _now


def reset() -> None:
    """Begin to count anew, before a job starts."""
    global _now
    with _lock:
        _now = Progress()
