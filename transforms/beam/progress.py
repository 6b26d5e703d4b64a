"""The progress of this process's readers: counters for a progress line, and one dead letter for each reason.

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
    """The counters so far: records read, their dead letters, bytes of the files, files done.

    reports  reports of folds of learners, each for one checkpoint
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
    """Return the present values of the counters."""
    return _now


def note_refused(letters: DeadLetters, role: LossRole) -> None:
    """Keep one dead letter for each reason.

    The first that this process reads, or, if there is one, the first with a value.

    role  the role of the letters' records
    """
    texts = (letters.batch.column(name).to_pylist() for name in ("reason", "value"))
    for place, (reason, value) in enumerate(zip(*texts, strict=True)):
        known = _refused.get((role, reason))
        if known is None or (known.value is None and value is not None):
            _refused[role, reason] = letters[place]


def refused(reason: str) -> DeadLetter | None:
    """Return a dead letter with this reason; None if this process has read none."""
    return _refused.get(("event", reason)) or _refused.get(("label", reason))


def example(role: LossRole, reason: str) -> str | None:
    """Return a record that was refused for a reason, in words; None if this process has read none."""
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
    """While the block runs, its caller reports the job to the user; `is_told` is then true."""
    global _tellers
    _tellers += 1
    try:
        yield
    finally:
        _tellers -= 1


def is_told() -> bool:
    """Return whether some caller in this process reports the job to the user.

    A worker on another machine has only its log.
    """
    return _tellers > 0
