"""The columns of a row, and the reasons why a measure is null: the schema that every sink writes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import FloatArray
from ..settings.measure_names import MEASURES
from .reasons import reason_clauses

COUNT_COLUMNS = ("row", "seq", "window_events")


TIME_COLUMNS = ("time", "due", "pane_start", "pane_end", "window_start", "window_end")


TEXT_COLUMNS = ("model", "slice", "reason", "config")


INTEGER_COLUMNS = (*COUNT_COLUMNS, *TIME_COLUMNS)


MASS_COLUMNS = ("weight", "positives", "negatives", "prevalence")


NUMBER_COLUMNS = (*MASS_COLUMNS, *MEASURES)
"""The columns of the matrix of float64: masses, then measures. NaN stands for null."""


COLUMNS = (
    "model", "slice", "row", "seq", "time", "due", "pane_start", "pane_end",
    "window_events", "window_start", "window_end", *MASS_COLUMNS, *MEASURES, "drift", "reason", "config",
)  # fmt: skip
"""Every column of a row, in the order in which sinks write them."""


OK, ONE_CLASS, DEGENERATE, TOO_FEW, NO_PREDICTED_POSITIVES, NO_POSITIVES, NO_NEGATIVES = range(7)


NO_POSITIVE_CLASS, CHANCE_IS_CERTAIN, MAJORITY_IS_RIGHT, PERSISTENT_IS_RIGHT = range(7, 11)


EMPTY_MARGIN, NOTHING_TO_AVERAGE, OUT_OF_RANGE, CONSTANT_SCORES, NOT_ASKED = range(11, 16)


REASONS = (
    "",
    "one class in window",
    "degenerate interval",
    "fewer than two positives or negatives in window",
    "no predicted positives in window",
    "no positives in window",
    "no negatives in window",
    "no positive class is named",
    "chance agreement is certain",
    "the majority classifier makes no error",
    "the persistent classifier makes no error",
    "one class in the labels or in the predictions",
    "no positives and no predicted positives in window",
    "the numbers are beyond what a float holds",
    "constant scores in window",
    "",
)
"""The reasons why a measure is null or needs care, by code. The texts of OK and NOT_ASKED are empty.

Readers of rows may compare these texts, so no text is ever changed. No text holds a colon, a comma or a
semicolon.
"""


def in_columns(numbers: FloatArray) -> FloatArray:
    """Return numbers with all of `NUMBER_COLUMNS`; NaN if they are older than the polynomial AUC."""
    if numbers.shape[-1] != len(NUMBER_COLUMNS) - 2:
        return numbers
    place = NUMBER_COLUMNS.index("polynomial_auc")
    return np.insert(numbers, [place, place], np.nan, axis=-1)


def reason_text(codes: Sequence[int]) -> str | None:
    """Return the reasons of one row in words, None if there are none; `codes` has a code for each measure.

    >>> reason_text([ONE_CLASS] * 2 + [OK] * (len(MEASURES) - 2))
    'auc, auc_low: one class in window'
    """
    return reason_clauses(dict(zip(MEASURES, (REASONS[code] for code in codes), strict=True)))
