"""The table of models for a terminal: the overview's sentence and a line for each model, worst first.

The table has 20 lines at most, with its heading and what stands below. Names come from outside: they are made
visible and short (`name_text`), so that no name moves the cursor or takes a line of its own.
"""

from __future__ import annotations

import math
import shutil
import textwrap
from collections.abc import Sequence

import numpy as np

from ...core.alerts.rules import Span
from ...core.process.console import name_text
from ...core.settings.periods import Period
from ..words import DASH, letters, number, with_interval
from .classes.page_classes import worst_text
from .report_rows import ReportRows
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
_CLASS_WIDTH = 24
_MEASURES = ("h", "H"), ("ks", "KS"), ("kappa_m", "kappa-m")
_CLASS_MEASURES = ("auc_weighted", "weighted"), ("auc_m", "M")
_FIRST_OUT = ("kappa-m", "weighted"), ("KS",), ("H", "M"), ("events",), ("over time", "worst pair")
_LEFT_OUT = [
    [title for titles in _FIRST_OUT[:count] for title in titles] for count in range(1, len(_FIRST_OUT) + 1)
]
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
    refused: str | None = None,
) -> list[str]:
    """Return the lines of the table, `width` characters at most.

    confidence  the level of the intervals of the rows
    reference   what the latest windows are compared with; None: all earlier windows
    below       the last lines, such as how to keep the rows
    sparks      whether a line shows the AUC over the rows, too
    refused     what keeps many events out of the windows, in a sentence
    """
    judged = judge_rows(rows, confidence, reference)
    names = [name_text(name, _NAME_WIDTH) for name in rows.models]
    slices = [name_text(name, _NAME_WIDTH) for name in rows.slices]
    head = textwrap.wrap(sentence(judged.models, names, slices, ways=bool(rows.ways)), width)[:4]
    notes = [f"compared with {reference_text(reference)}"] if reference is not None else []
    if rows.classes is not None:
        head[-1:] = textwrap.wrap(f"{head[-1]} {_classes_text(rows)}", width)
    if unjudged := unjudged_text(rows, judged):
        notes.append(unjudged)
    if any(one.only_in_slices for one in judged.models):
        notes.append("Of a model that changed only in a slice, the measures are those of the slice.")
    if any(missing(one)[0] == "no earlier window" for one in judged.models if one.state == "cannot tell"):
        advice = "wait for more, or evaluate with a smaller --window." if refused is None else f"{refused}."
        notes.append(
            f"A verdict needs two windows without a common event. Windows hold up to {_most(rows):,} events: "
            f"{advice}"
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


def _classes_text(rows: ReportRows) -> str:
    """Return how many classes the models have, in a sentence."""
    count = 0 if rows.classes is None else rows.classes.number_of_classes()
    return f"{count:,} {'class' if count == 1 else 'classes'}; the AUC of a model is its macro AUC."


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
    measures, title = [*_MEASURES], "AUC [interval]"
    titles = [each for _, each in measures]
    if rows.classes is not None:
        measures, title = [*_CLASS_MEASURES], "macro AUC [interval]"
        titles = [*(each for _, each in measures), "worst class", "worst pair"]
    cells = [["model", title, *["over time"] * sparks, *titles, "events"]]
    for one in shown:
        verdict, whole = one.shown, one.whole
        row = -1 if verdict is None else first_of[verdict.model, verdict.slice] + verdict.row
        auc, low, high, *values = (
            float(rows.columns[name][row]) if row >= 0 else math.nan
            for name in ("auc", "auc_low", "auc_high", *(name for name, _ in measures))
        )
        row_of_whole = -1 if whole is None else first_of[whole.model, whole.slice] + whole.row
        events = math.nan if whole is None else float(one.series[whole.slice].seq[-1])
        cells.append(
            [
                names[one.model],
                with_interval(auc, low, high),
                *[_spark(one)] * sparks,
                *(DASH if math.isnan(value) else f"{value:.3f}" for value in values),
                *_worst(rows, row_of_whole),
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


def _worst(rows: ReportRows, row: int) -> list[str]:
    """Return the worst class and the worst pair of a row of a model; nothing for rows without classes."""
    if rows.classes is None:
        return []
    means = rows.classes.means(row) if row >= 0 else {}
    names = [means.get("worst_class"), means.get("worst_pair")]
    values = [means.get("worst_class_auc"), means.get("worst_pair_auc")]
    return [
        worst_text(name and name_text(name, _CLASS_WIDTH), value) or DASH
        for name, value in zip(names, values, strict=True)
    ]


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
