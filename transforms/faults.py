"""What is wrong with the values of a record, in words, and the kinds by which like faults are counted."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .columns import instant, number, plain

BoolArray = npt.NDArray[np.bool_]
Verdict = Callable[[object], str | None]
"""Says what is wrong with one value, without the value: "is not a number"; None: it is missing."""


class Faults:
    """What is wrong with which rows. One event can have several faults; its reason tells them all."""

    def __init__(self) -> None:
        self.reasons: dict[int, str] = {}
        self.kinds: dict[int, str] = {}

    def add(self, bad: BoolArray, role: str, column: pa.Array, verdict: Verdict, missing: str = "") -> None:
        """Note the rows where `bad` holds; `missing` is a remedy for a missing value."""
        rows = np.flatnonzero(bad)
        if not len(rows):
            return
        none = f"{role}: missing{missing}"
        words: dict[str, tuple[str, str]] = {}
        for row, value in zip(rows.tolist(), _values(column.take(pa.array(rows))), strict=True):
            known = value if isinstance(value, str) else ""
            said = words.get(known)
            if said is None:
                wrong = None if value is None or value == "" else verdict(value)
                said = (none, none)
                if wrong is not None:
                    said = f"{role}: {_shown(value)} {wrong}", f"{role}: ... {wrong}"
                if known and len(words) < 10_000:
                    words[known] = said
            reason, kind = said
            before = self.reasons.get(row)
            # The kind of several faults is that of the first: all combinations would be too many to count.
            self.reasons[row] = reason if before is None else f"{before}; {reason}"
            self.kinds[row] = kind if before is None else f"{self.kinds[row].removesuffix(_MORE)}{_MORE}"


_MORE = "; and more"


def _values(column: pa.Array) -> list[object]:
    column = plain(column)
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.string())
    values: list[object] = column.to_pylist()
    return values


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)  # the same number in a block of whole ones
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"


def number_verdict(value: object) -> str:
    """Judge what is no finite number."""
    return "is not a number" if number(value) is None else "is not finite"


def score_verdict(value: object) -> str:
    """Judge what is no score."""
    found = number(value)
    if found is not None and math.isfinite(found):
        return "is no probability, which lies between 0 and 1"
    return number_verdict(value)


def weight_verdict(value: object) -> str:
    """Judge what is no weight."""
    found = number(value)
    if found is not None and math.isfinite(found):
        return "is not above 0"
    return number_verdict(value)


def label_verdict(value: object) -> str | None:
    """Judge what is no label where no positive class is named."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return "is none of 1, 0, -1, true, false; name the positive class with positive= (--positive)"


def class_verdict(_: object) -> None:
    """Judge what is no class or name: it can only be missing."""


def time_verdict(unit: str) -> Verdict:
    """Return the judge of times whose numbers count a unit."""

    def verdict(value: object) -> str:
        found = number(value)
        if found is None or not math.isfinite(found):
            likely = instant(str(value)[:10]) is not None
            return "is not a time" + ("" if likely else f" (RFC 3339, a date, or a number in {unit})")
        return (
            f"in {unit} is not within the years 1 to 9999; set another unit of time with time_unit= "
            "(--time-unit)"
        )

    return verdict


def ahead_verdict(_: object) -> str:
    """Judge a time that lies too far ahead of now."""
    return "is further ahead of the clock on the wall than max_ahead= (--max-ahead) allows"
