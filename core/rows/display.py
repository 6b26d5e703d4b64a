"""Shows the figures of measures, rows and evaluators in a console and in a notebook.

Numbers are rounded for display only: fields stay exact. Null measures are left out, and the reason says why
they are null. No function here applies an event. No function raises, whatever the state of the shown object.
Names of models and slices come from users. In tables, `name_text` (process/console.py) makes names visible
and short; notebooks get the escapes of HTML, too. Lines of one record show names as Python literals.
"""

from __future__ import annotations

import datetime as dt
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from .columns import COUNT_COLUMNS, TIME_COLUMNS, reason_clauses, reasons_by_measure
from .measure_table import CLASS_TABLE, CONTENT_TABLE, MEASURE_TABLE

_DIGITS = {measure.name: measure.digits for measure in (*MEASURE_TABLE, *CONTENT_TABLE)}

_BOUNDED = tuple(measure.name for measure in (*MEASURE_TABLE, *CLASS_TABLE) if measure.interval)
"""The measures whose figures have their intervals."""
_BOUNDS = frozenset(f"{name}_{end}" for name in _BOUNDED for end in ("low", "high"))

HEADLINES = ("auc", "h", "ks", "kappa_m", "kappa", "accuracy")
"""The measures that a preview shows."""

_WIDTH = 100
_LISTED = 10
"""The most values of a list, such as the list of classes, that are shown."""

_EPOCH = dt.datetime(1970, 1, 1)


def figure(name: str, value: Any) -> str:
    """Return the value of a field as it is shown.

    Counts are shown as whole numbers, fractions with four decimals, scores with six digits.

    >>> figure("auc", 2 / 3), figure("weight", 12_000.0), figure("ks_threshold", 1e-9)
    ('0.6667', '12,000', '1e-09')
    """
    if name in TIME_COLUMNS:
        return _moment(value)
    digits = "count" if name in COUNT_COLUMNS else _DIGITS.get(name)
    if digits == "count":
        return f"{value:,.0f}"
    if isinstance(value, tuple) and len(value) > _LISTED:
        return f"{str(value[:_LISTED])[:-1]}, ... {len(value):,} in all)"
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value)
    return f"{value:.6g}" if digits == "score" else f"{value:.4f}"


def _moment(microseconds: int) -> str:
    """Return a time as RFC 3339; a time outside the calendar's years is returned as its number."""
    try:
        return (_EPOCH + dt.timedelta(microseconds=microseconds)).isoformat() + "Z"
    except OverflowError:
        return str(microseconds)


def figures(record: tuple[Any, ...], names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the (name, figure) of those fields of a named tuple that exist and are not null.

    The ends of the interval of an AUC are part of the AUC's figure.
    """
    found = []
    for name in names:
        value = getattr(record, name, None)
        if value is None or name in _BOUNDS:
            continue
        text = figure(name, value)
        low, high = (getattr(record, f"{name}_{end}", None) for end in ("low", "high"))
        if name in _BOUNDED and low is not None and high is not None:
            text += f" [{figure(name, low)}, {figure(name, high)}]"
        found.append((name, text))
    return found


def reasons_of(names: Sequence[str], reason: str | None) -> str | None:
    """Return the clauses of a row's reason that concern some measures.

    >>> reasons_of(("auc", "kappa"), "auc, h: one class in window; kappa: chance agreement is certain")
    'auc: one class in window; kappa: chance agreement is certain'
    """
    why = reasons_by_measure(reason)
    return reason_clauses({name: why[name] for name in names if name in why})


def folded(text: str) -> list[str]:
    """Return the lines of a text, with at most `_WIDTH` characters each, broken at blanks.

    A null byte stands for a blank at which no line breaks.
    """
    lines = textwrap.wrap(text, _WIDTH - 3, break_long_words=False, break_on_hyphens=False)
    return ["  " + line.replace("\0", " ") for line in lines]
