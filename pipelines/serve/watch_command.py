"""`rocsteady watch`: the table of models in a terminal, drawn again as rows come.

In a terminal the table has the screen to itself, and `q` or Ctrl-C gives the screen back. In other places,
such as a pipe or a file, each new table is printed below the last.
"""

from __future__ import annotations

import argparse
import os
import select
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from ...core.alerts.rules import Span
from ...core.process.console import name_text, say, show
from ...core.process.imports import missing_package
from ...core.settings.periods import Period
from ...core.verdicts.choice import reference_of
from ...transforms.tables.followed import check_followed, follow_tables
from ..arguments import checked_number
from ..report.command import confidence_of
from ..report.glance import glance, width_of_terminal
from ..report.report_rows import report_rows
from ..stopping import StopOnSignal
from ..words import counted, stamp
from .gathered import Gathered
from .history import ROWS_HELD
from .reading import Readers, Source

_KEY_SECONDS = 0.1


def watch_command(options: argparse.Namespace) -> int:
    """Run the command with parsed options.

    The command ends at a signal, and in a terminal also at the key q.
    """
    seconds = checked_number(
        f"--refresh {options.refresh!r}",
        options.refresh.removesuffix("s"),
        float,
        lambda seconds: 0.1 <= seconds < 1e6,
        "seconds between two tables, 0.1 or more",
    )
    reference = reference_of(options.reference)
    confidence, _ = confidence_of(options.confidence, [])
    check_followed(options.source, options.kafka_option)
    screen = _Screen() if sys.stdout.isatty() else None
    gathered = Gathered(ROWS_HELD, confidence, says=screen is None)
    readers = Readers()
    source = Source(
        options.source, "rows", follow_tables(options.source, "rows", options.kafka_option, readers.stopped)
    )
    with StopOnSignal() as signals, _drawn_on(screen), _keys(enabled=screen is not None) as pressed:
        readers.start([source])
        try:
            drawn, due = "", 0.0
            while signals.signal is None and not pressed():
                for came in readers.take(_KEY_SECONDS):
                    gathered.take(*came)
                if time.monotonic() < due or not (gathered.changed or (screen and not drawn)):
                    continue
                gathered.changed = False
                lines = table_of(gathered, options.source, reference, confidence)
                if (text := "\n".join(lines)) != drawn:
                    if screen is None:
                        show(*[""] * bool(drawn), *lines)
                    else:
                        screen.draw(lines)
                    drawn = text
                due = time.monotonic() + seconds
        finally:
            readers.stop()
    if screen is not None:
        for sentence in gathered.troubles.values():
            say(sentence)
    return 0


def table_of(
    gathered: Gathered, source: str, reference: Span | Period | None, confidence: float
) -> list[str]:
    """Return the lines of the table."""
    history = gathered.history
    if not history.came:
        waits = f"no rows in {name_text(source)} yet; the table shows rows as soon as rows come"
        return [waits, *gathered.troubles.values()]
    rows = report_rows(history.table, settings=gathered.settings)
    newest = max((time for time in rows.columns["time"].tolist() if time == time), default=None)
    came = f"{counted(history.came, 'row')} of {name_text(source)}"
    below = [came if newest is None else f"{came}, the newest of {stamp(newest, dates=False)} UTC"]
    below += gathered.troubles.values()
    return glance(rows, confidence, reference, below, width_of_terminal(), sparks=True)


class _Screen:
    """The terminal's alternate screen, drawn by rich. Raises MissingPackageError if rich is missing."""

    def __init__(self) -> None:
        try:
            from rich.live import Live
            from rich.text import Text
        except ImportError:
            raise missing_package("rich", "rocsteady watch in a terminal", "watch") from None
        self._text: Any = Text
        self.live: Any = Live(
            Text("reading"), screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        )

    def draw(self, lines: Sequence[str]) -> None:
        """Draw a table; lines that do not fit are left out."""
        text = self._text("\n".join(lines), no_wrap=True, overflow="crop")
        text.stylize("bold", 0, len(lines[0]))
        text.highlight_regex(r"(?<=  )worse\b.*", "red")
        text.highlight_regex(r"(?<=  )better\b.*", "cyan")
        text.append("\n\nq ends", "dim")
        self.live.update(text, refresh=True)


@contextmanager
def _drawn_on(screen: _Screen | None) -> Iterator[None]:
    with nullcontext() if screen is None else screen.live:
        yield


@contextmanager
def _keys(*, enabled: bool) -> Iterator[Any]:
    """Yield a function that returns whether q was pressed; keys are not echoed meanwhile."""
    if not enabled or not sys.stdin.isatty():
        yield lambda: False
        return
    try:
        import termios
        import tty
    except ImportError:  # on Windows, Ctrl-C ends the table
        yield lambda: False
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)

    def pressed() -> bool:
        if not select.select([descriptor], [], [], 0)[0]:
            return False
        keys = os.read(descriptor, 64)
        return not keys or b"q" in keys.lower()

    try:
        yield pressed
    finally:
        with suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
