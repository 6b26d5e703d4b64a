"""Numbers that users write: one value as a float64, and whether a float64 holds a number exactly.

When a float64 holds a number
    A float64 HOLDS a whole number n (of Python, Arrow, numpy, or written without a fraction and an exponent)
    if `int(float(n)) == n`. It holds a decimal d (of Python or Arrow) if `Decimal(repr(float(d))) == d`. Two
    numbers that are not held may become one float64: 2**53 + 1 and 2**53 would tie as scores. Floats count as
    held, and so do numbers that are written with a fraction or an exponent in text: such a text means the
    nearest float64.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from numbers import Rational
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, Int64Array

EXACT = 1 << 53
"""Whole numbers up to this are exact in a float64."""

INTEGER = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(nan|inf|infinity)", re.I)

_DECIMAL = "Decimal('"
"""The start of `repr` of a Decimal. A column that mixes types has such a text for a decimal that is not
held, because the bare digits would be read as the nearest float64."""


def number(value: object) -> float | None:
    """Return a value as a float, or None if the value is no number.

    Text may have blanks around the number, but no "_".

    >>> number(" 1e3 "), number("1_000"), number(True)
    (1000.0, None, None)
    """
    if isinstance(value, str):
        text = value.strip()
        return float(text) if _FLOAT.fullmatch(text) else None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except ValueError:  # the value is a signalling NaN
        return math.nan


def is_held(value: object) -> bool:
    """Return whether a float64 holds a number.

    True also for a number that is not finite, and for a value that is no number.

    >>> is_held(2**53), is_held(2**53 + 1), is_held("9007199254740993"), is_held("9007199254740993.0")
    (True, False, False, True)
    >>> is_held(Decimal("0.1")), is_held(Decimal("0.10000000000000000555"))
    (True, False)
    """
    if isinstance(value, str):
        text = value.strip()
        if text.startswith(_DECIMAL):
            return False
        if len(text) < 16 or not INTEGER.fullmatch(text):
            return True
        digits = text.lstrip("+-").lstrip("0") or "0"
        return not math.isfinite(found := float(digits)) or int(found) == int(digits)
    if isinstance(value, Decimal):
        if not value.is_finite() or not math.isfinite(found := float(value)):
            return True
        return Decimal(repr(found)) == value
    if not isinstance(value, Rational) or value.denominator != 1:
        return True
    whole = int(value.numerator)
    try:
        return int(float(whole)) == whole
    except OverflowError:  # the number is infinite as a float64
        return True


def decimal_text(value: Decimal) -> str:
    """Write a decimal as a text that `number` reads as the same number.

    The text is held if the decimal is held.

    >>> decimal_text(Decimal("1E+23")), decimal_text(Decimal("0.10000000000000000555"))
    ('1e+23', "Decimal('0.10000000000000000555')")
    """
    if not is_held(value):
        return repr(value)
    return "nan" if value.is_nan() else repr(float(value))


def unheld_integers(array: npt.NDArray[Any]) -> BoolArray:
    """Return, for each whole number of an array of an integer type, whether no float64 holds it. O(n)."""
    if not array.size or (int(array.min()) >= -EXACT and int(array.max()) <= EXACT):
        return np.zeros(array.shape, np.bool_)
    floats = array.astype(np.float64)
    fits = floats < float(2**63 if array.dtype.kind == "i" else 2**64)  # the greatest numbers round up to it
    unheld: BoolArray = ~fits | (np.where(fits, floats, 0.0).astype(array.dtype) != array)
    return unheld


def unheld(array: npt.NDArray[Any]) -> Int64Array:
    """Return the places of the numbers that no float64 holds, int64[k].

    The array may have any type, and is flattened.
    """
    if array.dtype.kind in "iu":
        return np.flatnonzero(unheld_integers(array))
    if array.dtype.kind in "OUS":
        values = array.astype("U") if array.dtype.kind == "S" else array
        bad = (place for place, value in enumerate(values.ravel().tolist()) if not is_held(value))
        return np.fromiter(bad, np.int64)
    return np.empty(0, np.int64)
