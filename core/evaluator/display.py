"""How an evaluator looks in a console and in a notebook."""

from __future__ import annotations

from html import escape
from typing import Protocol

from ..errors import RocsteadyError
from ..process.console import name_text
from ..rows.display import HEADLINES, figures, reasons_of, record_html
from ..rows.records import Measures
from ..settings.evaluator import EvaluatorSettings

_CHEAP_EVENTS = 1_000_000
"""Most events of a window that a repr measures: sorting more events would delay the console noticeably."""


class Shown(Protocol):
    """The part of `ModelEvaluator` that is displayed."""

    settings: EvaluatorSettings

    @property
    def model(self) -> str:
        """Name of the model."""

    @property
    def slice(self) -> str:
        """Name of the slice."""

    @property
    def seq(self) -> int:
        """Events applied so far."""

    def __len__(self) -> int: ...

    def measures(self) -> Measures:
        """Return the measures of the window."""


def _state_of(evaluator: Shown) -> tuple[str, Measures | None]:
    """Return an evaluator's progress in words, and its measures, or None if measuring would take long."""
    said = f"{evaluator.settings.window}, {len(evaluator):,} events held of {evaluator.seq:,}"
    if not len(evaluator) or len(evaluator) > _CHEAP_EVENTS:
        return said, None
    try:
        return said, evaluator.measures()
    except RocsteadyError:
        return f"{said}; an update was interrupted: go on from a snapshot", None


def evaluator_text(evaluator: Shown) -> str:
    """Return one line: name, window, events and main measures, with the reason for a measure that is null."""
    names = [repr(name) for name in (evaluator.model, evaluator.slice) if name]
    said, measures = _state_of(evaluator)
    parts = [f"<ModelEvaluator{' of ' + ', '.join(names) if names else ''}: {said}"]
    if measures is not None:
        parts += [f"{name} {text}" for name, text in figures(measures, HEADLINES)]
        parts += filter(None, [reasons_of(HEADLINES, measures.reason)])
    return "; ".join(parts) + ">"


def evaluator_html(evaluator: Shown) -> str:
    """Return the line of `evaluator_text` as HTML, with a table of every measure."""
    name = escape(", ".join(name_text(part) for part in (evaluator.model, evaluator.slice) if part))
    said, measures = _state_of(evaluator)
    table = "" if measures is None else record_html(measures)
    return f"<div><p><b>ModelEvaluator{' of ' + name if name else ''}</b>: {escape(said)}</p>{table}</div>"
