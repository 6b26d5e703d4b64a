"""Writes and reads the text of a row's `reason`; no other module does.

The grammar: clauses joined by "; ". A clause is measures joined by ", ", then ": ", then their reason. A
clause without a colon concerns the whole row. The words of reasons are `columns.REASONS`.
"""

from __future__ import annotations

from collections.abc import Mapping


def reason_clauses(why: Mapping[str, str]) -> str | None:
    """Return the text of the reasons of measures, in the order of `why`; an empty reason is left out.

    Every reason has one clause; clauses are in the order of their first measures. None: no measure has a
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
    """Return the reason of every measure that a row's reason names. Texts of older versions are read, too.

    A clause without a colon concerns the row, and is left out.

    >>> reasons_by_measure("the learner failed at 2 events; auc, h: one class in window")
    {'auc': 'one class in window', 'h': 'one class in window'}
    """
    clauses = (clause.partition(": ") for clause in (text or "").split("; "))
    return {measure: reason for names, _, reason in clauses if reason for measure in names.split(", ")}
