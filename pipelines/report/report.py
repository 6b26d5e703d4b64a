"""`rocsteady report`: rows of measures as one page that explains itself and needs no network.

This module has the command and the function that writes the file; `html` makes the page. The command checks
its arguments before any other work (exit status 2).
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...core.errors import ConfigError, InputError, RocsteadyError
from ...core.process.console import say
from ...transforms.files.formats import has_scheme
from ...transforms.sinks.table import check_file, replaced
from ...transforms.sources.files.listing import list_sources
from ...transforms.tables.read import read_tables, rows_confidence, rows_settings
from ..arguments import level
from ..outputs import STDOUT, check_outputs, is_text
from ..words import counted, share
from .html import TITLE, check_packages, report_page
from .rows import EventCounters, count_dead_letters, report_rows


def report_command(options: argparse.Namespace) -> int:
    """Run the command with parsed options."""
    started = time.monotonic()
    said = None
    if options.confidence is not None:
        said = level(f"--confidence {options.confidence!r}", options.confidence, "0.95")
    if not is_text(options.title or ""):
        raise ConfigError(f"--title {options.title!a} is not UTF-8; give another")
    given = [*options.rows, *options.curves, *options.dead_letters, *options.comparisons, *options.means]
    inputs = list_sources(given)
    check_outputs((("--output", options.output, "report", check_report_path),), inputs)
    table, notes = read_tables(options.rows, "rows")
    confidence, note = _level(said, options.rows)
    curves, comparisons, means, letters = (
        read_tables(paths, what)[0] if paths else None
        for paths, what in (
            (options.curves, "curves"),
            (options.comparisons, "comparisons"),
            (options.means, "means"),
            (options.dead_letters, "dead letters"),
        )
    )
    size = write_report(
        table,
        options.output,
        curves=curves,
        counters=None if letters is None else count_dead_letters(letters),
        comparisons=comparisons,
        means=means,
        title=options.title or TITLE,
        confidence=confidence,
        settings=rows_settings(options.rows),
        notes=[*notes, *note],
    )
    say(
        f"{counted(table.num_rows, 'row')} in {options.output} ({size / 1e6:.1f} MB, "
        f"{time.monotonic() - started:.1f} s)"
    )
    return 0


def _level(said: float | None, paths: Sequence[str]) -> tuple[float, list[str]]:
    """Return the confidence level of the intervals in files, and a note where the level is only assumed."""
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


def check_report_path(path: str | os.PathLike[str]) -> None:
    """Check before any work that a report can be written to a path. Raises ConfigError or InputError."""
    text = os.fspath(path)
    if text == STDOUT:
        raise ConfigError("--output -: a report is a file; name it, such as report.html")
    if not text.lower().endswith((".html", ".htm")):
        raise InputError(f"output {text!r}: a report is HTML; give it a name that ends in .html")
    check_packages()
    check_file(_final(text))


def _final(path: str) -> str:
    """Return the path with links resolved: the report replaces the link's target, and the link stays."""
    return path if has_scheme(path) else os.path.realpath(path)


def write_report(
    rows: pa.Table,
    path: str | os.PathLike[str],
    *,
    curves: pa.Table | None = None,
    counters: EventCounters | None = None,
    comparisons: pa.Table | None = None,
    means: pa.Table | None = None,
    title: str = TITLE,
    confidence: float = 0.95,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    notes: Sequence[str] = (),
) -> int:
    """Write the report of rows (ROW_SCHEMA) to an HTML file; return its size in bytes.

    curves      points of curves (CURVE_SCHEMA), or None: the page then says how to keep curves
    counters    counts of the events, or None: the page then says how to get these counts
    comparisons comparisons of learners over folds (COMPARISON_SCHEMA), for the section "Who is better"
    means       means over folds (MEAN_SCHEMA), for the same section; no section where both are None
    confidence  the confidence level of the rows' intervals
    settings    settings by the rows' `config`, as far as known: the page names and draws separately the
                evaluations of one model in several windows
    title       the title of the page; TITLE names the model where there is only one
    notes       sentences above all other content

    O(n log n) in rows; about 2 s for 60,000. Raises ConfigError without plotly or Jinja, InputError where the
    file cannot be written, RocsteadyError where writing it fails.

    >>> import tempfile
    >>> from rocsteady.core.rows.arrow import ROW_SCHEMA
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(ROW_SCHEMA.empty_table(), f"{folder}/report.html") > 1_000_000
    True
    """
    check_report_path(path)
    text = report_page(
        report_rows(rows, notes, settings),
        curves=curves,
        counters=counters,
        comparisons=comparisons,
        means=means,
        title=title,
        confidence=confidence,
    ).encode()
    final = _final(os.fspath(path))
    try:
        with replaced(final) as file:
            file.write(text)
    except OSError as error:
        raise RocsteadyError(
            f"output {os.fspath(path)} cannot be written: {error.strerror or error}"
        ) from None
    return len(text)
