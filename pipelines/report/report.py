"""`rocsteady report`: rows of measures as one page that explains itself and needs no network.

The page (`page/`) draws; here the rows are put in order, the words about them are found, and all is
packed into one file. Everything that can be found wrong with the arguments is found first (exit status 2).
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np
import pyarrow as pa

from ...core.errors import ConfigError, InputError, RocsteadyError
from ...core.process.console import say
from ...core.rows.differences import FEWEST
from ...core.version import __version__
from ...transforms.files.formats import has_scheme
from ...transforms.sinks.comparisons import COMPARISON_SCHEMA, MEAN_SCHEMA
from ...transforms.sinks.table import check_file, replaced
from ...transforms.sources.files.listing import list_sources
from ...transforms.tables.read import read_tables, rows_confidence, rows_settings
from ..outputs import STDOUT, check_outputs, is_text
from ..words import all_dates, counted, share
from . import html
from .changes import NO_TEST, Change, change_of, series_of, side_by_side
from .comparisons import comparisons_of, means_of
from .comparisons_html import better_section
from .data import curve_blocks, null_reasons, packed_text, row_blocks, script_json, thinned
from .measures import DRAWN, GROUPS, MEANINGS
from .rows import EventCounters, ReportRows, applied_events, count_dead_letters, report_rows

TITLE = "How well the models rank and decide"
_TITLE_OF_ONE = "How well {} ranks and decides"

_CHANGES_ABOUT = (
    "When each model ranked worst and best: the two full windows without a common event whose AUC differs "
    "most, and whether the data support a difference once it is taken into account that the two were picked "
    "out of all such pairs. Events are taken to be independent of each other; windows with fewer than "
    f"{FEWEST} positives or negatives are left out. Slices are not judged here, and a change can also be "
    "another mix of slices."
)
_TOUCHING = (
    " Windows that touch in time are not compared, since the order of events inside one time is arbitrary. "
    "Times are UTC."
)
_MANY = " Every model is judged by itself: of models that never changed, up to {} may still show a change."
_NO_MODELS = "There are no rows of whole models, and of slices alone it is not told what changed."
_CURVES_ABOUT = (
    "The true positive rate against the false positive rate over all thresholds, and what share of events "
    "was positive at which score."
)
_NO_CURVES = (
    "No curves were given. Keep them with <code>rocsteady evaluate ... --curves FILE</code>, and give that "
    "file here as <code>--curves FILE</code>."
)


def report_command(options: argparse.Namespace) -> int:
    """Run the command with parsed options."""
    started = time.monotonic()
    said = None if options.confidence is None else _confidence(options.confidence)
    if not is_text(options.title or ""):
        raise ConfigError(f"--title {options.title!a} is not UTF-8; give another")
    given = [*options.rows, *options.curves, *options.dead_letters, *options.comparisons, *options.means]
    inputs = list_sources(given)
    check_outputs((("--output", options.output, "report", check_report_path),), inputs)
    table, notes = read_tables(options.rows, "rows")
    confidence, note = _level(said, options.rows)
    curves, comparisons, means = (
        read_tables(paths, what)[0] if paths else None
        for paths, what in (
            (options.curves, "curves"),
            (options.comparisons, "comparisons"),
            (options.means, "means"),
        )
    )
    counters = None
    if options.dead_letters:
        counters = count_dead_letters(read_tables(options.dead_letters, "dead letters")[0])
    size = write_report(
        table,
        options.output,
        curves=curves,
        counters=counters,
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


def _confidence(text: str) -> float:
    try:
        level = float(text)
    except ValueError:
        level = math.nan
    if not 0 < level < 1:
        raise ConfigError(f"--confidence {text!r}: give a level between 0 and 1, such as 0.95")
    return level


def _level(said: float | None, paths: Sequence[str]) -> tuple[float, list[str]]:
    """Return the level that the intervals of files have, and a note where it is only taken to be so."""
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
    """See, before any work, that a report can be written there. Raises ConfigError or InputError."""
    text = os.fspath(path)
    if text == STDOUT:
        raise ConfigError("--output -: a report is a file; name it, such as report.html")
    if not text.lower().endswith((".html", ".htm")):
        raise InputError(f"output {text!r}: a report is HTML; give it a name that ends in .html")
    html.plotly_source()
    check_file(_final(text))


def _final(path: str) -> str:
    """Return the file itself: a link goes on pointing there."""
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

    curves      points of curves (CURVE_SCHEMA), or None: the page then says how to keep them
    counters    what became of the events, or None: the page then says how to know it
    comparisons of learners over folds (COMPARISON_SCHEMA), and
    means       over folds (MEAN_SCHEMA): what the page says of who is better; it does not where both are None
    confidence  the level that the rows' intervals were made with
    settings    by the rows' `config`, as far as they are known: where a model was evaluated in several
                windows, the page names and draws them apart
    title       what stands above it; TITLE names the model where there is but one
    notes       sentences that stand above everything else

    O(n log n) in rows; about 2 s for 60,000. Raises ConfigError without plotly, InputError where the file
    cannot be written, RocsteadyError where writing it fails.

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


def report_page(
    rows: ReportRows,
    *,
    curves: pa.Table | None = None,
    counters: EventCounters | None = None,
    comparisons: pa.Table | None = None,
    means: pa.Table | None = None,
    title: str = TITLE,
    confidence: float = 0.95,
) -> str:
    """Return the page as text."""
    bases = rows.bases()
    base_of = {name: place for place, name in enumerate(dict.fromkeys(name for name, _ in bases))}
    if title == TITLE and len(base_of) == 1:
        title = _TITLE_OF_ONE.format(*base_of)
    whole = rows.whole_models()
    series = [series_of(rows.columns, slice(first, stop)) for _, _, first, stop in whole.tolist()]
    names = [rows.models[model] for model in whole[:, 0]]
    changes = [change_of(name, one, confidence) for name, one in zip(names, series, strict=True)]
    drawn = thinned(rows)
    listed, blocks, curve_note = curve_blocks(curves, rows) if curves is not None else ([], {}, "")
    nulls = null_reasons(rows, DRAWN) if len(rows) else {}
    applied = applied_events(rows)
    known = counters or EventCounters()
    if known.applied is None:
        known = replace(known, applied=applied)
    about_curves = f"{_CURVES_ABOUT} {curve_note}".strip()
    blocks |= row_blocks(drawn) if len(rows) else {}
    blocks["changes"] = packed_text(script_json(_changes(rows, whole[:, 0].tolist(), series, changes)))
    blocks["plotly"] = packed_text(html.plotly_source())
    better = None
    if comparisons is not None or means is not None:
        better = better_section(
            comparisons_of(COMPARISON_SCHEMA.empty_table() if comparisons is None else comparisons),
            means_of(MEAN_SCHEMA.empty_table() if means is None else means),
        )
        blocks |= better.blocks
    meta: dict[str, Any] = {
        "models": rows.models,
        "bases": [base_of[name] for name, _ in bases] if rows.ways else [],
        "ways": rows.ways,
        "wayOf": [way for _, way in bases] if rows.ways else [],
        "slices": rows.slices,
        "series": drawn.series.tolist(),
        "kept": len(drawn),
        "columns": [name for name in rows.columns if name in blocks],
        "drawn": [name for name in DRAWN if name in blocks],
        "times": bool(len(rows)) and not np.isnan(rows.columns["time"]).any(),
        "dates": all_dates(rows.columns["time"]),
        "panes": bool(len(rows)) and not np.isnan(rows.columns["pane_start"]).all(),
        "reasons": rows.reasons,
        "curves": listed,
        "curvesAbout": about_curves,
        "groups": GROUPS,
        "measures": {name: meaning._asdict() for name, meaning in MEANINGS.items()},
        "verdicts": html.VERDICTS,
        "confidence": share(confidence),
        "noTest": NO_TEST,
        "better": better and better.meta,
    }
    first = slice(html.CARDS)
    return html.page(
        {
            "version": __version__,
            "title": escape(title),
            "style": html.asset("style.css"),
            "lead": escape(html.lead(rows, applied)),
            "counters": html.counters_html(known, given=counters is not None),
            "notes": html.notes_html(rows.notes),
            "better": better.html if better else "",
            "better_link": '<a href="#better">Who is better</a> ' if better else "",
            "changes_about": escape(
                _CHANGES_ABOUT
                + (_TOUCHING if not np.isnan(rows.columns["time"]).all() else "")
                + (_MANY.format(share(1 - confidence)) if len(whole) > 1 else "")
                if len(whole)
                else _NO_MODELS
            ),
            "changes": html.changes_html(changes),
            "side_by_side": escape(side_by_side(names[first], series[first], confidence)),
            "null_measures": html.null_html(nulls),
            "curves_about": escape(about_curves) if listed else escape(curve_note) or _NO_CURVES,
            "latest_about": _latest_about(rows),
            "latest": html.latest_html(rows, share(confidence)),
            "meanings": html.meanings_html(),
            "foot": html.foot_html(rows, len(drawn)),
            "meta": script_json(meta),
            "blocks": "\n".join(
                f'<script type="text/plain" id="block-{name}">{text}</script>'
                for name, text in blocks.items()
            ),
            "script": html.script(),
        }
    )


def _latest_about(rows: ReportRows) -> str:
    models = len(rows.whole_models())
    if models > html.TABLE_ROWS:
        return f"The last row of the first {html.TABLE_ROWS} of {models:,} models, over all their events."
    return "The last row of every model, over all its events."


def _changes(
    rows: ReportRows, models: Sequence[int], series: Sequence[Any], changes: Sequence[Change]
) -> list[dict[str, Any] | None]:
    """Return for every model what the page shows of it; points are [seq, time, auc]."""
    found: list[dict[str, Any] | None] = [None] * len(rows.models)

    def point(of: Any, row: int) -> list[float | None] | None:
        if row < 0:
            return None
        time = float(of.time[row])
        return [int(of.seq[row]), None if math.isnan(time) else time, float(of.auc[row])]

    for model, one, change in zip(models, series, changes, strict=True):
        found[model] = {
            "verdict": change.verdict,
            "figures": change.figures,
            "text": change.text,
            "exact": change.exact,
            "worst": point(one, change.worst),
            "best": point(one, change.best),
        }
    return found


__all__ = [
    "TITLE",
    "EventCounters",
    "check_report_path",
    "read_tables",
    "report_command",
    "report_page",
    "rows_settings",
    "write_report",
]
