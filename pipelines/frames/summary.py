"""The summary of an evaluation: the newest row of every model, and whether the model got worse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ...core.alerts.rules import Span
from ...core.rows.arrow import rows_to_table
from ...core.rows.class_columns import MEANS_COLUMNS
from ...core.rows.rows import Rows
from ...core.settings.periods import Period
from ..report.classes.page_classes import in_words
from ..report.report_rows import report_rows
from ..report.verdicts import ModelVerdict, judge_rows, missing

SUMMARY = (
    "model", "seq", "time", "window_events", "prevalence", "auc", "auc_low", "auc_high", "h", "ks", "brier",
    "kappa", "kappa_m", "reason",
)  # fmt: skip
"""The columns of a summary on the newest row."""


def newest_rows(rows: Rows) -> Rows:
    """Return the newest row of every model and slice, in the order of their names; a whole model is first.

    For models with classes, these are rows of all classes.

    rows  the rows of each (model, slice) in the order in which they were made
    """
    if rows.classes is not None:
        rows = rows.take(np.flatnonzero(rows.classes.codes < 0))
    codes, behind = np.unique(rows.key_codes[::-1], return_index=True)
    places = (len(rows) - 1 - behind).tolist()
    newest = {rows.keys[code]: place for code, place in zip(codes.tolist(), places, strict=True)}
    return rows.take(np.array([newest[key] for key in sorted(newest)], np.int64))


def rows_of_slice(rows: Rows, name: str) -> Rows:
    """Return the rows of the slice of this name in every model; "" is the whole model."""
    codes = [code for code, (_, of_slice) in enumerate(rows.keys) if of_slice == name]
    return rows.take(np.flatnonzero(np.isin(rows.key_codes, codes)))


VERDICT = pa.schema(
    [
        ("state", pa.string()), ("why", pa.string()), ("change", pa.float64()), ("change_low", pa.float64()),
        ("change_high", pa.float64()), ("change_p", pa.float64()), ("since", pa.timestamp("us", "UTC")),
        ("since_event", pa.int64()), ("changed_slice", pa.string()),
    ]
)  # fmt: skip
"""The columns of a summary on the model's verdict.

state          "worse", "better", "no change shown" or "cannot tell"
why            what is missing, if the state is "cannot tell"
change         the AUC of the latest full window less the AUC of the reference
change_low, change_high
               the interval of the change, corrected for the number of models and slices
change_p       the corrected p-value of "nothing changed"
since          when the change began
since_event    after how many events of the model the change began
changed_slice  the slice that these columns describe, if the slice changed and the whole model did not. A
               class is a slice such as class=NAME

The AUC of a model with classes is the macro AUC.
"""


SUMMARY_OF_CLASSES = (
    "model", "seq", "time", "window_events",
    *(name for name in MEANS_COLUMNS if name != "pair_aucs"), "accuracy", "kappa", "kappa_m", "reason",
)  # fmt: skip
"""The columns of a summary on the newest row of a model with classes."""


def summary_of(
    newest: Rows, rows: pa.Table, confidence: float, reference: Span | Period | None = None
) -> pa.Table:
    """Return the newest values of every model and its verdict, one row for each model, by name.

    newest      the result of `newest_rows`
    rows        all rows
    confidence  the level of their intervals
    reference   the reference of the latest windows; None = all earlier windows
    """
    ordered = report_rows(rows)
    names = rows_to_table(newest).column("model").to_pylist()
    verdicts = {ordered.models[one.model]: one for one in judge_rows(ordered, confidence, reference).models}
    of_classes = ordered.classes is not None
    lines = [_line(verdicts[name], ordered.slices, of_classes=of_classes) for name in names]
    summary = rows_to_table(newest).select(SUMMARY if newest.classes is None else SUMMARY_OF_CLASSES)
    for field in VERDICT:
        summary = summary.append_column(field, pa.array([line[field.name] for line in lines], field.type))
    return summary


def _lacks(one: ModelVerdict, *, of_classes: bool) -> str:
    lacks = missing(one)[1]
    return in_words(lacks) if of_classes else lacks


def _line(one: ModelVerdict, slices: Sequence[str], *, of_classes: bool) -> dict[str, Any]:
    shown, since = one.shown, None if one.shown is None else one.shown.since
    numbers = (math.nan,) * 4 if shown is None else (shown.change, shown.low, shown.high, shown.p)
    change, low, high, p = (None if math.isnan(value) else value for value in numbers)
    return {
        "state": one.state,
        "why": _lacks(one, of_classes=of_classes) if one.state == "cannot tell" else None,
        "change": change,
        "change_low": low,
        "change_high": high,
        "change_p": p,
        "since": None if since is None or math.isnan(since.time) else round(since.time),
        "since_event": None if since is None else round(since.place),
        "changed_slice": slices[one.slices[0].slice] if one.only_in_slices else None,
    }
