"""What a person sees while a job runs, and what it came to: both on stderr, so that stdout stays data."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from numba.core import event

from ..transforms import progress

if TYPE_CHECKING:
    from .evaluate import Outcome

_SECONDS_BETWEEN = {True: 0.2, False: 10.0}
"""A terminal's line is redrawn; in a log every line stays, so there are few of them."""

_REASONS_SHOWN = 10
_CLEAR = "\r\033[K"
_COMPILING = (
    "compiling the kernels for this machine, which takes some ten seconds; they are kept for the next time"
)


class _OnCompilation(event.Listener):
    """Says once that numba compiles, which happens when no kernels are in its cache yet."""

    def __init__(self) -> None:
        self._said = False

    def on_start(self, event: Any) -> None:  # noqa: ARG002
        """Say so."""
        if not self._said:
            self._said = True
            print(f"{_CLEAR * sys.stderr.isatty()}rocsteady: {_COMPILING}", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        """Nothing to say: kernels come one after another."""


class ProgressLine:
    """Tells every now and then how far a job is; enabled where its files are read in this process.

    total_bytes, total_files   of the input, to tell the share that was read and that all of it was
    """

    def __init__(self, enabled: bool, total_bytes: int = 0, total_files: int = 0) -> None:
        self._enabled = enabled
        self._total_bytes = total_bytes
        self._total_files = total_files
        self._terminal = sys.stderr.isatty()
        self._stop = threading.Event()
        self._started = time.monotonic()
        self._thread = threading.Thread(target=self._tell, daemon=True)
        self._listener = _OnCompilation()

    def __enter__(self) -> ProgressLine:
        progress.reset()
        event.register("numba:compile", self._listener)  # type: ignore[no-untyped-call]
        if self._enabled:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        event.unregister("numba:compile", self._listener)  # type: ignore[no-untyped-call]
        if self._enabled:
            self._thread.join()
        if self._terminal:
            print(_CLEAR, end="", file=sys.stderr, flush=True)

    def _tell(self) -> None:
        while not self._stop.wait(_SECONDS_BETWEEN[self._terminal]):
            line = self._line(progress.read(), time.monotonic() - self._started)
            if self._terminal:
                print(f"{_CLEAR}{line}", end="", file=sys.stderr, flush=True)
            else:
                print(f"rocsteady: {line}", file=sys.stderr, flush=True)

    def _line(self, read: progress.Progress, seconds: float) -> str:
        line = f"{_number(read.records, 'event')} read"
        if read.files < self._total_files and self._total_bytes:
            line += f" ({min(read.bytes / self._total_bytes, 1):.0%})"
        if read.dead_letters:
            line += f", {_number(read.dead_letters, 'dead letter')}"
        evaluating = self._total_files and read.files >= self._total_files
        return f"{line}{', evaluating' if evaluating else ''}; {seconds:.0f} s"


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def summarise(outcome: Outcome, output: str, dead_letters: str | None) -> None:
    """Print what became of every event: the counters add up to the input."""
    counts = outcome.counts
    read, applied, dead = (counts[name] for name in ("events_read", "events_applied", "dead_letters"))
    where = "on stdout" if output == "-" else f"in {output}"
    print(
        f"rocsteady: {_number(read, 'event')} read = {applied:,} applied + {_number(dead, 'dead letter')}; "
        f"{_number(counts['rows_written'], 'row')} {where} ({outcome.seconds:.1f} s)",
        file=sys.stderr,
    )
    if not dead:
        return
    where = f"in {dead_letters}" if dead_letters else "kept with --dead-letters PATH"
    print(f"rocsteady: dead letters, {where}:", file=sys.stderr)
    for reason, number, position in outcome.dead_letters[:_REASONS_SHOWN]:
        print(f"  {number:,} x {reason} (the first at position {position:,})", file=sys.stderr)
    if len(outcome.dead_letters) > _REASONS_SHOWN:
        print(f"  and {len(outcome.dead_letters) - _REASONS_SHOWN} more kinds", file=sys.stderr)
