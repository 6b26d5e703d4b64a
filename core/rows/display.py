"""How measures, rows and evaluators look in a console and in a notebook.

Numbers are rounded for display only: fields stay exact. Nulls are left out, and the reason says why they are
null. No function here applies an event. No function raises, whatever the state of the shown object. Names
come from outside: `name_text` makes them visible and short in tables of consoles and in notebooks, which get
HTML's escapes too. Lines of one record show names as literals of Python.
"""

from __future__ import annotations

import datetime as dt
import textwrap
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Protocol

from ..process.console import name_text
from .columns import COUNT_COLUMNS, TIME_COLUMNS
from .reasons import reason_clauses, reasons_by_measure

_COUNTS = frozenset((*COUNT_COLUMNS, "weight", "positives", "negatives", "tp", "fp", "tn", "fn", "cmd"))
_SCORES = frozenset(("ks_threshold", "cost_threshold", "aum", "log_loss"))
"""Fields in units of the score, or without an upper end: shown with significant digits, not decimals."""

HEADLINES = ("auc", "h", "ks", "kappa_m", "kappa", "accuracy")
"""The measures that a preview shows."""

_WIDTH = 100
_NAME_WIDTH = 40
_ENDS = 5
"""How many rows a preview shows from either end."""

_EPOCH = dt.datetime(1970, 1, 1)


class Record(Protocol):
    """A named tuple of measures: for a window (`Measures`) or a row (`MeasureRow`)."""

    @property
    def _fields(self) -> tuple[str, ...]: ...

    @property
    def window_events(self) -> int:
        """How many events the window holds."""

    @property
    def reason(self) -> str | None:
        """Why measures are null."""


class Records(Protocol):
    """Many rows in columns (`Rows`)."""

    keys: tuple[tuple[str, str], ...]

    @property
    def curves(self) -> Sequence[object]:
        """The curves that fell due with the rows."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Any: ...


def figure(name: str, value: Any) -> str:
    """Return a field as it is shown: counts whole, fractions to four decimals, scores to six digits.

    >>> figure("auc", 2 / 3), figure("weight", 12_000.0), figure("ks_threshold", 1e-9)
    ('0.6667', '12,000', '1e-09')
    """
    if name in TIME_COLUMNS:
        return _moment(value)
    if name in _COUNTS:
        return f"{value:,.0f}"
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value)
    return f"{value:.6g}" if name in _SCORES else f"{value:.4f}"


def _moment(microseconds: int) -> str:
    """Return a time as RFC 3339; a time outside the calendar's years is returned as its number."""
    try:
        return (_EPOCH + dt.timedelta(microseconds=microseconds)).isoformat() + "Z"
    except OverflowError:
        return str(microseconds)


def figures(record: Record, names: Iterable[str]) -> list[tuple[str, str]]:
    """Return (name, figure) of the fields that are not null; the ends of the interval go with the AUC."""
    found = []
    for name in names:
        value = getattr(record, name)
        if value is None or name in ("auc_low", "auc_high"):
            continue
        text = figure(name, value)
        low, high = (getattr(record, f"auc_{end}", None) for end in ("low", "high"))
        if name == "auc" and low is not None and high is not None:
            text += f" [{figure('auc_low', low)}, {figure('auc_high', high)}]"
        found.append((name, text))
    return found


def reasons_of(names: Sequence[str], reason: str | None) -> str | None:
    """Return the part of a row's reason that concerns some measures.

    >>> reasons_of(("auc", "kappa"), "auc, h: one class in window; kappa: chance agreement is certain")
    'auc: one class in window; kappa: chance agreement is certain'
    """
    why = reasons_by_measure(reason)
    return reason_clauses({name: why[name] for name in names if name in why})


def measures_text(measures: Record) -> str:
    """Return measures as lines of names and figures."""
    names = [name for name in measures._fields if name not in ("window_events", "reason")]
    lines = [f"<Measures of {figure('window_events', measures.window_events)} events"]
    said = "   ".join(f"{name} {text}".replace(" ", "\0") for name, text in figures(measures, names))
    lines += _folded(said)
    if measures.reason is not None:
        lines += _folded(measures.reason)
    return "\n".join(lines) + ">"


def _folded(text: str) -> list[str]:
    """Return lines of at most `_WIDTH` characters, broken at blanks; a null byte is a no-break blank."""
    lines = textwrap.wrap(text, _WIDTH - 3, break_long_words=False, break_on_hyphens=False)
    return ["  " + line.replace("\0", " ") for line in lines]


def row_text(row: Record) -> str:
    """Return a row on one line."""
    parts = [f"{name}={getattr(row, name)!r}" for name in ("model", "slice")]
    names = [name for name in row._fields if name not in ("model", "slice", "reason", "config")]
    parts += [f"{name}={text}" for name, text in figures(row, names)]
    if row.reason is not None:
        parts.append(f"reason={row.reason!r}")
    return f"MeasureRow({', '.join(parts)})"


def record_html(record: Record) -> str:
    """Return measures, or a row, as an HTML table of names and figures."""
    names = [name for name in record._fields if name not in ("model", "slice", "reason", "config")]
    cells = [
        (name, name_text(getattr(record, name))) for name in ("model", "slice") if getattr(record, name, "")
    ] + figures(record, names)
    if record.reason is not None:
        cells.append(("reason", record.reason))
    body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in cells)
    return f"<table>{body}</table>"


# ---- many rows


def _preview(rows: Records) -> tuple[list[str], list[list[str]], int]:
    """Return column names, the cells of the first and the last rows, and how many rows lie between."""
    n = len(rows)
    shown = range(n) if n <= 2 * _ENDS else [*range(_ENDS), *range(n - _ENDS, n)]
    records = [rows[index] for index in shown]
    found = [dict(figures(row, ("seq", "time", "window_events", *HEADLINES))) for row in records]
    names = [name for name in ("seq", "time", "window_events", *HEADLINES) if any(name in f for f in found)]
    titles = [name for name in ("model", "slice") if any(getattr(row, name) for row in records)]
    cells = [
        [
            *(name_text(getattr(row, name), _NAME_WIDTH) for name in titles),
            *(figures.get(name, "") for name in names),
        ]
        for row, figures in zip(records, found, strict=True)
    ]
    return [*titles, *names], cells, n - len(records)


def _title(rows: Records) -> str:
    curves = f", {len(rows.curves):,} curves" if rows.curves else ""
    return f"Rows: {len(rows):,} of {len(rows.keys):,} (model, slice){curves}"


def rows_text(rows: Records) -> str:
    """Return the first and the last rows with their main measures, in columns of text."""
    names, cells, between = _preview(rows)
    if not cells:
        return f"<{_title(rows)}>"
    texts = sum(name in ("model", "slice") for name in names)
    widths = [max(len(line[i]) for line in [names, *cells]) for i in range(len(names))]
    lines = [_aligned(line, widths, texts) for line in [names, *cells]]
    if between:
        lines.insert(1 + _ENDS, f"  ... {between:,} rows ...")
    return "\n".join([f"<{_title(rows)}", *lines]) + ">"


def _aligned(line: Sequence[str], widths: Sequence[int], texts: int) -> str:
    cells = [
        text.ljust(width) if i < texts else text.rjust(width)
        for i, (text, width) in enumerate(zip(line, widths, strict=True))
    ]
    return ("  " + "  ".join(cells)).rstrip()


def rows_html(rows: Records) -> str:
    """Return the first and the last rows with their main measures, as an HTML table."""
    names, cells, between = _preview(rows)
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    lines = [f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in line)}</tr>" for line in cells]
    if between:
        lines.insert(_ENDS, f'<tr><td colspan="{len(names)}">... {between:,} rows ...</td></tr>')
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>" if lines else ""
    return f"<div><p>{escape(_title(rows))}</p>{table}</div>"
