"""The table of models for a terminal: the overview's sentence and a line for each model, worst first.

The table has 20 lines at most, with its heading and what stands below. Names come from outside: they are made
visible and short (`name_text`), so that no name moves the cursor or takes a line of its own.
"""

from __future__ import annotations

import math
import shutil
import textwrap
from collections.abc import Sequence

from ...core.alerts.rules import Period, Span
from ...core.process.console import name_text
from ..words import DASH, letters, number, with_interval
from .rows import ReportRows
from .verdicts import ModelVerdict, change_text, judge_rows, sentence, since_text, state_text

LINES = 20
"""The most lines of the table."""

_WIDTHS = 80, 200
_NAME_WIDTH = 34
_MEASURES = ("h", "H"), ("ks", "KS"), ("kappa_m", "kappa-m")
_LEFT_OUT = ("kappa-m",), ("kappa-m", "KS"), ("kappa-m", "KS", "H"), ("kappa-m", "KS", "H", "events")
"""The columns that are left out, the more the narrower the terminal is."""

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
) -> list[str]:
    """Return the lines of the table, `width` characters at most.

    confidence  the level of the intervals of the rows
    reference   what the latest windows are compared with; None: all earlier windows
    below       the last lines, such as how to keep the rows
    """
    judged = judge_rows(rows, confidence, reference)
    names = [name_text(name, _NAME_WIDTH) for name in rows.models]
    slices = [name_text(name, _NAME_WIDTH) for name in rows.slices]
    head = textwrap.wrap(sentence(judged.models, names, slices, ways=bool(rows.ways)), width)[:4]
    below = [line for each in below for line in textwrap.wrap(each, width)]
    room = LINES - len(head) - len(below) - 3  # two empty lines and the titles
    shown = judged.models if len(judged.models) <= room else judged.models[: room - 1]
    if not shown:
        return [*head, *below]
    lines = _table(rows, shown, names, slices, width)
    if (left := len(judged.models) - len(shown)) > 0:
        lines.append(f"... and {left:,} more, none of them worse than these")
    return [*head, "", *lines, *([""] if below else []), *below]


def _table(
    rows: ReportRows, shown: Sequence[ModelVerdict], names: Sequence[str], slices: Sequence[str], width: int
) -> list[str]:
    """Return the titles and a line for each model; columns that are null in all lines are left out.

    Where the lines would be too long, the intervals of moments are left out, then columns, then the middle
    of names: what a line says last, the verdict, stays.
    """
    first_of = {(model, part): first for model, part, first, _ in rows.series.tolist()}
    cells = [["model", "AUC [interval]", *(title for _, title in _MEASURES), "events"]]
    for one in shown:
        verdict = one.whole
        row = -1 if verdict is None else first_of[verdict.model, verdict.slice] + verdict.row
        auc, low, high, *measures = (
            float(rows.columns[name][row]) if row >= 0 else math.nan
            for name in ("auc", "auc_low", "auc_high", *(name for name, _ in _MEASURES))
        )
        events = math.nan if verdict is None else float(one.series[verdict.slice].seq[-1])
        cells.append(
            [
                names[one.model],
                with_interval(auc, low, high),
                *(DASH if math.isnan(value) else f"{value:.3f}" for value in measures),
                number(events, "count"),
            ]
        )
    columns = [column for column in zip(*cells, strict=True) if {*column[1:]} != {DASH}]
    told = [
        ["change since", *(_change(one, slices, interval=interval) for one in shown)]
        for interval in (True, False)
    ]
    lines = _lines(columns, told[0])
    for left_out in ((), *_LEFT_OUT):
        if max(map(letters, lines)) <= width:
            break
        kept = [column for column in columns if column[0] not in left_out]
        lines = _lines(kept, told[1])
    for size in _SHORT_NAMES:
        if max(map(letters, lines)) > width:
            kept[0] = tuple(name_text(name, size) for name in kept[0])
            lines = _lines(kept, told[1])
    return [_cut(line, width) for line in lines]


def _lines(columns: Sequence[Sequence[str]], last: Sequence[str]) -> list[str]:
    """Return lines of aligned cells; the first two columns are aligned on the left."""
    widths = [max(map(letters, column)) for column in columns]
    lines = []
    for cells, words in zip(zip(*columns, strict=True), last, strict=True):
        padded = []
        for place, (cell, size) in enumerate(zip(cells, widths, strict=True)):
            space = " " * (size - letters(cell))
            padded.append(cell + space if place < 2 else space + cell)
        lines.append("  ".join([*padded, words]).rstrip())
    return lines


def _cut(line: str, width: int) -> str:
    """Return a line that is not wider; what is cut off becomes "..."."""
    if letters(line) <= width:
        return line
    while letters(line) > width - 3:
        line = line[:-1]
    return line.rstrip() + "..."


def _change(one: ModelVerdict, slices: Sequence[str], *, interval: bool) -> str:
    """Return the state, the change and since when, in the order of their weight."""
    shown = one.shown
    state = state_text(one, slices)
    if shown is None or not shown.changed:
        return state
    began = since_text(shown.since, interval=interval)
    return f"{state} {change_text(shown).split(' ')[0]}" + (f", {began}" if began else "")
