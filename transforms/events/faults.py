"""The faults in the values of a record: the reason, the value, and a sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ...core.arrays import BoolArray
from ...core.events.moments import PERIOD_REMEDY, instant, is_period
from ...core.events.numbers import is_held, number
from ...core.events.rejected import Reason
from ...core.events.times import likely_form
from .columns import plain, temporal_texts, valid_text
from .periods import no_number
from .time_formats import form_that_fits

Verdict = Callable[[object], tuple[Reason, str] | None]
"""A function that returns a value's fault: the reason, and a phrase such as "is not a number".

None means that the value is missing.
"""


class Fault(NamedTuple):
    """The faults of a row.

    reason   the reason of the first faulty column, in the order in which columns are read
    field    the user's name of that column; None if the record is valid, but late
    value    the column's value as text; None if there is no value
    detail   a sentence on all faults of the row
    """

    reason: Reason
    field: str | None
    value: str | None
    detail: str


class Faults(dict[int, Fault]):
    """The faults of a batch by row. A row with several faults has the reason of the first fault."""

    def add(
        self,
        bad: BoolArray,
        role: str,
        field: str,
        column: pa.Array,
        verdict: Verdict | None = None,
        missing: str = "",
        start: int = 0,
        step: int = 1,
    ) -> None:
        """Store the fault of the rows where `bad` holds.

        role     the role of the column: a missing value has the reason ROLE_MISSING
        field    the user's name of the column
        verdict  describes a value; None if a missing value is the only fault
        missing  a remedy for a missing value
        start, step  value i of the column belongs to row `start + i * step` of the batch
        """
        rows = np.flatnonzero(bad)
        if not len(rows):
            return
        subject = f"feature {field}" if role == "feature" else role
        words: dict[str, Fault] = {}
        column = plain(no_number(column.take(pa.array(rows))))
        if pa.types.is_temporal(column.type):
            column = temporal_texts(column)
        for row, value in zip((start + rows * step).tolist(), column.to_pylist(), strict=True):
            known = value if isinstance(value, str) else ""
            said = words.get(known)
            if said is None:
                wrong = None if verdict is None or value is None or value == "" else verdict(value)
                if wrong is None:
                    reason = Reason[f"{role.upper()}_MISSING"]
                    said = Fault(reason, field, None, f"{subject}: missing{missing}")
                else:
                    reason, sentence = wrong
                    said = Fault(reason, field, _text(value), f"{subject}: {_shown(value)} {sentence}")
                if known and len(words) < 10_000:
                    words[known] = said
            before = self.get(row)
            # Only the first fault gives the reason: a reason for every combination of faults would give too
            # many groups of dead letters.
            if before is not None:
                said = before._replace(detail=f"{before.detail}; {said.detail}")
            self[row] = said


def _shown(value: object) -> str:
    """Return a value in the form in which a sentence shows it: text in quotes."""
    return _cut(value, repr) if isinstance(value, str) else _text(value)


def _text(value: object) -> str:
    """Return a value as text that is valid Unicode and not long."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return _cut(str(value))
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)  # so it has the same text as in a block of whole numbers
    return _cut(valid_text(value) if isinstance(value, str) else repr(value))


def _cut(text: str, written: Callable[[str], str] = str) -> str:
    """Return a text, or the start of a long one and how many characters it has."""
    return written(text) if len(text) <= 80 else f"{written(text[:60])}... ({len(text)} characters)"


def _number_verdict(role: str, unfit: tuple[Reason, str] | None = None) -> Verdict:
    """Return the function that describes invalid numbers of a role; `unfit` is the fault of a finite number.

    The reasons are ROLE_NOT_A_NUMBER and ROLE_NOT_FINITE.
    """

    def verdict(value: object) -> tuple[Reason, str]:
        found = number(value)
        if found is None:
            return Reason[f"{role}_NOT_A_NUMBER"], "is not a number"
        if unfit is not None and math.isfinite(found):
            return unfit
        return Reason[f"{role}_NOT_FINITE"], "is not finite"

    return verdict


_IMPROBABLE = Reason.SCORE_NOT_A_PROBABILITY, "is no probability, which lies between 0 and 1"

feature_verdict = _number_verdict("FEATURE")
_score_number_verdict = _number_verdict("SCORE", _IMPROBABLE)


def score_verdict(value: object) -> tuple[Reason, str] | None:
    """Return the fault of a score that is no finite number or no probability, or that no float64 holds."""
    if is_held(value):
        return _score_number_verdict(value)
    return Reason.SCORE_NOT_HELD, (
        "is not held by a float64, so that different scores would tie; give floats, or round or scale scores"
    )


weight_verdict = _number_verdict("WEIGHT", (Reason.WEIGHT_NOT_POSITIVE, "is not above 0"))


def label_verdict(value: object) -> tuple[Reason, str] | None:
    """Return the fault of a value that is not a valid label if no positive class is named."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return (
        Reason.LABEL_UNKNOWN,
        "is none of 1, 0, -1, true, false; name the positive class with positive= (--positive)",
    )


def membership_verdict(value: object) -> tuple[Reason, str] | None:
    """Return the fault of a value that must say whether an event is of a class."""
    found = label_verdict(value)
    return None if found is None else (found[0], "is none of 1, 0, -1, true, false")


def class_verdict(role: str, classes: Sequence[str]) -> Verdict:
    """Return the function that describes a label, or a predicted class, that is none of the classes."""
    shown = ", ".join(map(repr, classes[:5])) + (f" and {len(classes) - 5:,} more" * (len(classes) > 5))

    def verdict(value: object) -> tuple[Reason, str] | None:
        if isinstance(value, float) and math.isnan(value):
            return None
        return Reason[f"{role.upper()}_NOT_A_CLASS"], f"is none of the classes with a score ({shown})"

    return verdict


def time_verdict(unit: str, form: str | None = None, kind: pa.DataType | None = None) -> Verdict:
    """Return the function that describes invalid times, for numbers of a unit or for a format.

    kind  the type of the column; a timestamp or a date can only be out of range
    """
    is_moment = kind is not None and (pa.types.is_timestamp(kind) or pa.types.is_date(kind))

    def verdict(value: object) -> tuple[Reason, str]:
        if is_moment:
            return Reason.TIME_OUT_OF_RANGE, "is not within the years 1 to 9999; check its unit"
        if is_period(value):
            return Reason.TIME_UNREADABLE, f"is not a time: {PERIOD_REMEDY}"
        if form is not None:
            other = form_that_fits(str(value), form)
            fits = "" if other is None else f", but fits {other!r}"
            return (
                Reason.TIME_UNFIT,
                f"does not fit the format {form!r} of time_format= (--time-format){fits}",
            )
        found = number(value)
        if found is None or not math.isfinite(found):
            likely = instant(str(value)[:10]) is not None
            forms = f" (RFC 3339, a date, or a number in {unit}, others by time_format=, --time-format)"
            return Reason.TIME_UNREADABLE, "is not a time" + ("" if likely else forms)
        remedy = "set another unit of time with time_unit= (--time-unit)"
        if form_of_digits := likely_form(int(found)):
            remedy = f"set time_format= (--time-format), such as {form_of_digits}"
        return Reason.TIME_OUT_OF_RANGE, f"in {unit} is not within the years 1 to 9999; {remedy}"

    return verdict


def ahead_verdict(_: object) -> tuple[Reason, str]:
    """Return the fault of a time that is too far ahead of now."""
    return (
        Reason.TIME_TOO_FAR_AHEAD,
        "is further ahead of the clock on the wall than max_ahead= (--max-ahead) allows",
    )
