"""The columns of a row, the schema that every sink writes; and the text of the column of reasons.

No other module writes or reads the text of a row's `reason`. The text has clauses, joined by "; ". A clause
is measures joined by ", ", then ": ", then their reason. A clause without a colon concerns the whole row. The
words of reasons are `REASONS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .measure_table import MEASURES
from .reasons import REASONS

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


def reason_text(codes: Sequence[int]) -> str | None:
    """Return the reasons of one row in words, or None if no measure has a reason.

    `codes` has a code for each measure.

    >>> reason_text([1, 1] + [0] * (len(MEASURES) - 2))
    'auc, auc_low: one class in window'
    """
    return reason_clauses(dict(zip(MEASURES, (REASONS[code] for code in codes), strict=True)))


def reason_clauses(why: Mapping[str, str]) -> str | None:
    """Return the text of the reasons of measures, by the order of `why`; an empty reason is left out.

    Every reason has one clause; clauses come in the order of their first measures. None if no measure has a
    reason.

    >>> reason_clauses({"auc": "one class in window", "kappa": "chance agreement is certain", "h": ""})
    'auc: one class in window; kappa: chance agreement is certain'
    """
    measures: dict[str, list[str]] = {}
    for measure, reason in why.items():
        if reason:
            measures.setdefault(reason, []).append(measure)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in measures.items()) or None


def reasons_by_measure(text: str | None) -> dict[str, str]:
    """Return the reason of every measure that a row's reason names.

    A clause without a colon concerns the row, so the function leaves it out.

    >>> reasons_by_measure("the learner failed at 2 events; auc, h: one class in window")
    {'auc': 'one class in window', 'h': 'one class in window'}
    """
    clauses = (clause.partition(": ") for clause in (text or "").split("; "))
    return {measure: reason for names, _, reason in clauses if reason for measure in names.split(", ")}
