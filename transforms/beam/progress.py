"""The progress of this process's readers: counters for a progress line, and a dead letter of each reason.

The process that reads has the counters; on the local runner, that is the command's own process. The counters
are for display only: a retried bundle counts twice. Correct sums are in Beam's metrics.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ..events.dead_letters import DeadLetter, DeadLetters
from ..events.losses import LossRole, example_text


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
_refused: dict[tuple[LossRole, str], DeadLetter] = {}


def add(**more: int) -> None:
    """Add to the counters, by their names in `Progress`."""
    global _now
    with _lock:
        _now = Progress._make(map(operator.add, _now, Progress(**more)))


def read() -> Progress:
    """Return the counters as they stand."""
    return _now


def note_refused(letters: DeadLetters, role: LossRole) -> None:
    """Keep a dead letter for each reason: the first that this process reads, if possible one with a value.

    role  what the records of the letters are
    """
    texts = (letters.batch.column(name).to_pylist() for name in ("reason", "value"))
    for place, (reason, value) in enumerate(zip(*texts, strict=True)):
        known = _refused.get((role, reason))
        if known is None or (known.value is None and value is not None):
            _refused[role, reason] = letters[place]


def refused(reason: str) -> DeadLetter | None:
    """Return a dead letter of a reason; None: this process has read none."""
    return _refused.get(("event", reason)) or _refused.get(("label", reason))


def example(role: LossRole, reason: str) -> str | None:
    """Return a record that was refused for a reason, in words; None: this process has read none."""
    letter = _refused.get((role, reason))
    return None if letter is None else example_text(letter)


def reset() -> None:
    """Set the counters to 0 and forget refused records, before a job starts."""
    global _now
    with _lock:
        _now = Progress()
    _refused.clear()


# ---- whether this process tells its user of the job


_tellers = 0


@contextmanager
def told() -> Iterator[None]:
    """Within the block, the caller tells of the job; `is_told` is true."""
    global _tellers
    _tellers += 1
    try:
        yield
    finally:
        _tellers -= 1


def is_told() -> bool:
    """Tell whether a line of this process tells of the job. A worker elsewhere has its log alone."""
    return _tellers > 0
