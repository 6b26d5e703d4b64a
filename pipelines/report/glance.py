"""The table of models for a terminal: the overview's sentence and a line for each model, worst first.

The table has 20 lines at most, with its heading and what stands below. Names come from outside: they are made
visible and short (`name_text`), so that no name moves the cursor or takes a line of its own.
"""

from __future__ import annotations

import math
import shutil
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ...core.alerts.rules import Span
from ...core.process.console import name_text
from ...core.settings.periods import Period
from ..words import DASH, counted, letters, number, share, with_interval
from .rows import ReportRows
from .sparkline import spark_text
from .verdicts import (
    ModelVerdict,
    change_text,
    judge_rows,
    missing,
    reference_text,
    sentence,
    since_text,
    state_text,
    unjudged_text,
)

LINES = 20
"""The most lines of the table."""

_WIDTHS = 80, 200
_NAME_WIDTH = 34
_MEASURES = ("h", "H"), ("ks", "KS"), ("kappa_m", "kappa-m")
_LEFT_OUT = (
    ("kappa-m",), ("kappa-m", "KS"), ("kappa-m", "KS", "H"), ("kappa-m", "KS", "H", "events"),
    ("kappa-m", "KS", "H", "events", "over time"),
)  # fmt: skip
"""The columns that are left out, the more the narrower the terminal is."""

_SPARK_WIDTH = 16
_SHORT_NAMES = 24, 16, 12


def width_of_terminal() -> int:
    """Return the width to write for: that of the terminal, else 120; between 80 and 200."""
    low, high = _WIDTHS
    return min(max(shutil.get_terminal_size((120, 24)).columns, low), high)


def glance(
    rows: ReportRows,
    confidence: float,
    reference: Span | Period | None = None,
    below: Sequence[str] = (),
    width: int = 120,
    *,
    sparks: bool = False,
) -> list[str]:
    """Return the lines of the table, `width` characters at most.

    confidence  the level of the intervals of the rows
    reference   what the latest windows are compared with; None: all earlier windows
    below       the last lines, such as how to keep the rows
    sparks      whether a line shows the AUC over the rows, too
    """
    judged = judge_rows(rows, confidence, reference)
    names = [name_text(name, _NAME_WIDTH) for name in rows.models]
    slices = [name_text(name, _NAME_WIDTH) for name in rows.slices]
    head = textwrap.wrap(sentence(judged.models, names, slices, ways=bool(rows.ways)), width)[:4]
    notes = [f"compared with {reference_text(reference)}"] if reference is not None else []
    if unjudged := unjudged_text(judged):
        notes.append(unjudged)
    if any(one.only_in_slices for one in judged.models):
        notes.append("Of a model that changed only in a slice, the measures are those of the slice.")
    if any(missing(one)[0] == "no earlier window" for one in judged.models if one.state == "cannot tell"):
        notes.append(
            f"A verdict needs two windows without a common event. Windows hold up to {_most(rows):,} events: "
            "wait for more, or evaluate with a smaller --window."
        )
    below = [line for each in (*notes, *below) for line in textwrap.wrap(each, width)]
    below = below[-(LINES - len(head) - 8) :]
    room = LINES - len(head) - len(below) - 3  # two empty lines and the titles
    shown = judged.models if len(judged.models) <= room else judged.models[: room - 1]
    if not shown:
        return [*head, *below]
    lines = _table(rows, shown, names, slices, width, sparks=sparks)
    if (left := len(judged.models) - len(shown)) > 0:
        lines.append(f"... and {left:,} more, none of them worse than these")
    return [*head, "", *lines, *([""] if below else []), *below]


def _most(rows: ReportRows) -> int:
    """Return the number of events in the largest window."""
    return int(np.nan_to_num(rows.columns["window_events"]).max(initial=0))


def _table(
    rows: ReportRows,
    shown: Sequence[ModelVerdict],
    names: Sequence[str],
    slices: Sequence[str],
    width: int,
    *,
    sparks: bool,
) -> list[str]:
    """Return the titles and a line for each model; columns that are null in all lines are left out.

    Where the lines would be too long, the intervals of moments are left out, then columns, then the middle
    of names: what a line says last, the verdict, stays.
    """
    first_of = {(model, part): first for model, part, first, _ in rows.series.tolist()}
    cells = [
        ["model", "AUC [interval]", *["over time"] * sparks, *(title for _, title in _MEASURES), "events"]
    ]
    for one in shown:
        verdict, whole = one.shown, one.whole
        row = -1 if verdict is None else first_of[verdict.model, verdict.slice] + verdict.row
        auc, low, high, *measures = (
            float(rows.columns[name][row]) if row >= 0 else math.nan
            for name in ("auc", "auc_low", "auc_high", *(name for name, _ in _MEASURES))
        )
        events = math.nan if whole is None else float(one.series[whole.slice].seq[-1])
        cells.append(
            [
                names[one.model],
                with_interval(auc, low, high),
                *[_spark(one)] * sparks,
                *(DASH if math.isnan(value) else f"{value:.3f}" for value in measures),
                number(events, "count"),
            ]
        )
    columns: list[Sequence[str]] = [column for column in zip(*cells, strict=True) if {*column[1:]} != {DASH}]
    told = [["change since", *(_change(one, slices, detail) for one in shown)] for detail in (2, 1, 0)]
    for kept, words in (
        *((columns, each) for each in told),
        *(([column for column in columns if column[0] not in out], told[-1]) for out in _LEFT_OUT),
    ):
        lines = _lines(kept, words)
        if max(map(letters, lines)) <= width:
            break
    for size in _SHORT_NAMES:
        if max(map(letters, lines)) > width:
            kept = [[name_text(name, size) for name in kept[0]], *kept[1:]]
            lines = _lines(kept, told[-1])
    return [_cut(line, width) for line in lines]


def _spark(one: ModelVerdict) -> str:
    return DASH if one.shown is None else spark_text(one.series[one.shown.slice], _SPARK_WIDTH) or DASH


def _lines(columns: Sequence[Sequence[str]], last: Sequence[str]) -> list[str]:
    """Return lines of aligned cells; the first two columns are aligned on the left."""
    return [f"{line}  {words}".rstrip() for line, words in zip(aligned(columns, 2), last, strict=True)]


def aligned(columns: Sequence[Sequence[str]], left: int) -> list[str]:
    """Return lines of cells, each as wide as its column; the first `left` columns are aligned on the left."""
    widths = [max(map(letters, column)) for column in columns]
    lines = []
    for cells in zip(*columns, strict=True):
        padded = []
        for place, (cell, size) in enumerate(zip(cells, widths, strict=True)):
            space = " " * (size - letters(cell))
            padded.append(cell + space if place < left else space + cell)
        lines.append("  ".join(padded))
    return lines


def _cut(line: str, width: int) -> str:
    """Return a line that is not wider; what is cut off becomes "..."."""
    if letters(line) <= width:
        return line
    while letters(line) > width - 3:
        line = line[:-1]
    return line.rstrip() + "..."


def _change(one: ModelVerdict, slices: Sequence[str], detail: int) -> str:
    """Return the state, the change, since when and the slice that changed most, in this order.

    detail  2: with the intervals of the change and of the moment; 1: without intervals; 0: without the slice
    """
    shown = one.shown
    state, change = state_text(one, slices), change_text(shown)
    if shown is None or not shown.changed:
        return f"{state} {change}".rstrip() if detail == 2 else state
    parts = [f"{state} {change if detail == 2 else change.split(' ')[0]}"]
    if began := since_text(shown.since, interval=detail == 2):
        parts.append(began)
    if detail and one.slices and not one.only_in_slices:
        most = one.slices[0]
        parts.append(f"most in {slices[most.slice]} {change_text(most).split(' ')[0]}")
    return ", ".join(parts)


# ---- models with classes

_CLASS_TITLES = ("model", "macro AUC [interval]", "weighted", "M", "worst class", "worst pair", "events")


def class_glance(
    table: pa.Table, confidence: float, below: Sequence[str] = (), width: int = 120
) -> list[str]:
    """Return the lines of the table, `width` characters at most, from the newest row of each model.

    table       rows with the columns of CLASS_ROW_SCHEMA
    confidence  the level of the intervals of the rows
    below       the last lines, such as how to keep the rows
    """
    columns = ("model", "slice", "class", "row", "pane_start", *_OF_CLASSES)
    newest: dict[str, dict[str, Any]] = {}
    for line in table.select(columns).to_pylist():
        if line["slice"] or line["class"] is not None:
            continue
        known = newest.get(line["model"])
        if known is None or _moment(known) < _moment(line):
            newest[line["model"]] = line
    lines = sorted(newest.values(), key=lambda line: (line["auc_macro"] is None, line["auc_macro"] or 0.0))
    classes = {len(line["classes"] or ()) for line in lines}
    of = f" of {max(classes):,} classes" if len(classes) == 1 else ""
    head = f"{counted(len(lines), 'model')}{of}; {share(confidence)} intervals"
    wrapped = [part for each in below for part in textwrap.wrap(each, width)]
    room = LINES - len(wrapped) - 5
    shown = lines if len(lines) <= room else lines[: room - 1]
    if not shown:
        return [head, *wrapped]
    for most in (_NAME_WIDTH, *_SHORT_NAMES):
        told = aligned([*zip(*([_CLASS_TITLES, *(_cells(line, most) for line in shown)]), strict=True)], 1)
        if max(map(len, told)) <= width:
            break
    if left := len(lines) - len(shown):
        told.append(f"... and {left:,} more, none of them worse than these")
    return [head, "", *(line[:width] for line in told), *([""] if wrapped else []), *wrapped]


_OF_CLASSES = (
    "auc_macro", "auc_macro_low", "auc_macro_high", "auc_weighted", "auc_m", "worst_class", "worst_class_auc",
    "worst_pair", "worst_pair_auc", "window_events", "seq", "classes",
)  # fmt: skip


def _moment(line: dict[str, Any]) -> tuple[bool, Any, int]:
    pane = line["pane_start"]
    return pane is not None, pane, line["row"]


def _cells(line: dict[str, Any], most: int) -> list[str]:
    macro, low, high = (math.nan if line[name] is None else line[name] for name in _OF_CLASSES[:3])
    worst = [
        DASH if line[name] is None else f"{name_text(line[name], most)} {_figure(line[f'{name}_auc'])}"
        for name in ("worst_class", "worst_pair")
    ]
    means = [_figure(line[name]) for name in ("auc_weighted", "auc_m")]
    first = [name_text(line["model"], most), with_interval(macro, low, high)]
    return [*first, *means, *worst, number(line["seq"], "count")]


def _figure(value: float | None) -> str:
    return DASH if value is None else f"{value:.3f}"
