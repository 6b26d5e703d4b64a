"""`rocsteady report`: reads files of rows, curves and other tables, and writes the page about them.

The command checks its arguments before any other work (exit status 2).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from itertools import chain

from ...core.errors import ConfigError, InputError
from ...core.process.console import say
from ...core.verdicts.choice import reference_of
from ...transforms.sources.files.listing import list_sources
from ...transforms.tables.read import ANY_ROWS, read_tables, rows_confidence, rows_settings
from ..arguments import level
from ..outputs import check_outputs, is_text
from ..words import counted, share
from .facts import TITLE
from .report import check_report_path, write_report
from .report_rows import Tables, count_dead_letters


def report_command(options: argparse.Namespace) -> int:
    """Run the command with parsed options."""
    started = time.monotonic()
    reference = reference_of(options.reference)
    if not is_text(options.title or ""):
        raise ConfigError(f"--title {options.title!a} is not UTF-8; give another")
    tables = {
        "curves": options.curves,
        "dead letters": options.dead_letters,
        "alerts": options.alerts,
        "comparisons": options.comparisons,
        "means": options.means,
        "roll-ups": options.roll_ups,
        "pairs": options.pairs,
    }
    given = [*options.rows, *chain.from_iterable(tables.values())]
    inputs = list_sources(given)
    check_outputs((("--output", options.output, "report", check_report_path),), inputs)
    table, notes = read_tables(options.rows, ANY_ROWS)
    confidence, note = confidence_of(options.confidence, options.rows)
    read = {what: read_tables(paths, what)[0] if paths else None for what, paths in tables.items()}
    letters = read["dead letters"]
    size = write_report(
        table,
        options.output,
        Tables(
            curves=read["curves"],
            counters=None if letters is None else count_dead_letters(letters),
            alerts=read["alerts"],
            comparisons=read["comparisons"],
            means=read["means"],
            roll_ups=read["roll-ups"],
            pairs=read["pairs"],
        ),
        title=options.title or TITLE,
        confidence=confidence,
        reference=reference,
        settings=rows_settings(options.rows),
        notes=[*notes, *note],
    )
    say(
        f"{counted(table.num_rows, 'row')} in {options.output} ({size / 1e6:.1f} MB, "
        f"{time.monotonic() - started:.1f} s)"
    )
    return 0


def confidence_of(given: str | None, paths: Sequence[str]) -> tuple[float, list[str]]:
    """Return the confidence level of the intervals in files, and a note where the level is only assumed.

    given  the text of --confidence

    Raises ConfigError for a text that is no level, InputError where the files have other levels.
    """
    said = None if given is None else level(f"--confidence {given!r}", given, "0.95")
    kept = rows_confidence(paths)
    if len(kept) > 1 or (kept and said not in (None, *kept)):
        levels = " and ".join(f"{level:g}" for level in sorted({*kept, *([] if said is None else [said])}))
        raise InputError(
            f"the intervals of the rows are of different levels, {levels}; give files of one --confidence"
            + ("" if said is None else ", or leave it out here: a Parquet file says its own")
        )
    if kept:
        return kept.pop(), []
    if said is not None:
        return said, []
    note = (
        f"The files do not say of which level their intervals are; they are taken to be of {share(0.95)} "
        "(--confidence says otherwise)."
    )
    return 0.95, [note]
