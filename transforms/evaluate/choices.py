"""The settings of an evaluation, made from keywords of Python.

The roles of columns, and the table of evaluators.

`EvaluateModels` and `rocsteady.evaluate` share these functions. The module does not import Beam.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from ...core.classes.class_settings import ClassSettings
from ...core.errors import ConfigError
from ...core.evaluator.ranked import stride_of
from ...core.settings.choices import read_choices
from ...core.settings.evaluator import EvaluatorSettings, check_signal
from ...core.settings.evidence import check_evidence
from ...core.settings.table import TableSettings, checked_spans
from ..events.dead_letters import CHUNK_ROWS
from ..events.fields import EventFields, named_fields
from .class_limits import classes_of, refuse_with_class_scores

_MOST_EVENTS = 1_000_000
"""The most events that are evaluated at once. 10M events of 100,000 models took 36 s of processor time with
this value, 48 s with 400,000 events and 81 s with 100,000.
"""

_ROWS_AT_ONCE = 50_000
"""The most rows of whole models that one piece of input may produce: 20 MB of rows."""


def events_at_once(settings: EvaluatorSettings) -> int:
    """Return how many events of columns in memory, or of a Parquet file, are evaluated at once."""
    return min(_MOST_EVENTS, max(CHUNK_ROWS, _ROWS_AT_ONCE * stride_of(settings)))


def chosen_settings(
    choices: Mapping[str, Any], there: Collection[str] | None = None
) -> tuple[EventFields, TableSettings]:
    """Return the roles of columns and the settings of the table that keywords choose. Raises ConfigError.

    there    the columns of the input; None if they are not known
    choices  fields of `EventFields`, `EvaluatorSettings` and `TableSettings`. See `read_choices`
             for texts and numbers, and `named_fields` for columns
    """
    chosen = read_choices(choices)
    if chosen.get("class_scores") is not None:
        refuse_with_class_scores(chosen)
    columns = _of(EventFields, chosen)
    of_events = named_fields({**columns, "multi_label": chosen.get("multi_label")}, there)
    curves, predicted = chosen.get("curves"), of_events.predicted
    names_positive = of_events.positive is not None or of_events.class_names
    if curves is not None and predicted is not None and not names_positive:
        raise ConfigError(
            f"curves={curves!r}: with predicted={predicted!r} labels are classes, and a curve needs "
            "the one that is positive; name it with positive=, or leave curves= out"
        )
    chosen["positive"] = of_events.positive
    evaluator = EvaluatorSettings(**_of(EvaluatorSettings, chosen))
    table = {**chosen, **checked_spans(chosen), "slices": of_events.slices}
    settings = TableSettings(evaluator, **_of(TableSettings, table), classes=classes_of(of_events))
    ClassSettings.of_table(settings)
    if of_events.time is None and (needs := evaluator.needs_times) is not None:
        raise ConfigError(f"{needs} goes by event time; name the field of times with time=")
    check_signal(evaluator, predicted is not None and settings.classes is None, "predicted=", "positive=")
    check_evidence(evaluator.evidence_below, of_events.weight is not None, "evidence_below=", "weight=")
    return of_events, settings


def _of(made: type, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords that are fields of a dataclass."""
    return {field.name: chosen[field.name] for field in fields(made) if field.name in chosen}
