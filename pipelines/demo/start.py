"""The steps with which both forms of the demo begin: its folder, and lines on stderr about the training."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...core.errors import InputError
from ...core.process.console import redraw, say
from .learners import Progress, Training

_LOG_SECONDS = 10.0


@contextmanager
def made(folder: Path) -> Iterator[None]:
    """Make the folder; remove a new folder if it is still empty at the end."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--output {folder} is a file; name a folder")
    new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"--output {folder}: the folder cannot be made ({error.strerror}); name another"
        ) from None
    try:
        yield
    except BaseException:
        if new and folder.exists() and not any(folder.iterdir()):
            folder.rmdir()
        raise


@contextmanager
def training_line() -> Iterator[Progress]:
    """Yield the progress callback of training.

    It redraws a terminal's line, or writes to a log, at once and then rarely.
    """
    terminal = sys.stderr.isatty()
    last = -math.inf

    def report(share: float, text: str) -> None:
        nonlocal last
        if terminal:
            redraw(f"{share:4.0%} {text}")
        elif time.monotonic() - last > _LOG_SECONDS:
            last = time.monotonic()
            say(f"{share:.0%} {text}")

    try:
        yield report
    finally:
        if terminal:
            redraw("")


def tell(training: Training) -> None:
    """Print which flights there are, and whether the learners were trained in this run."""
    source = "kept by an earlier run" if training.from_cache else "trained now"
    say(
        f"{training.flights:,} scheduled departures from New York in 2013 = {training.landed:,} "
        f"landed + {training.unlabelled:,} cancelled or diverted, whose labels never come; each predicted by "
        f"{len(training.models)} learners, {source}"
    )
    if training.note:
        say(training.note)
