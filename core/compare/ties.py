"""Ties of measured values: which values, and which differences of values, count as equal.

A share such as .82 is not a binary fraction, so the floats of .82 - .80 and of .80 - .78 differ. A test by
ranks would see two different values there, and other ones after all values are divided by 2.

Invariant
    A value is known to 12 significant digits, and a difference to the 12th digit of the greater of its two
    values. Two values or differences are equal if they differ by at most half a unit of the coarser of their
    12th digits; so are all that a chain of such steps connects. The order of values does not matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from ..arrays import FloatArray
from ..events.inputs import as_array, as_numbers

_DIGITS = 12


def as_values(name: str, values: Any) -> FloatArray:
    """Return numbers, in any form that numpy reads, as float64. Raises InputError for what is no number.

    A float32 becomes the number of its shortest decimal text, such as .8. Float32 has 7 digits: its .8 would
    be .800000011920929 in float64, which is another share.
    """
    array = as_array(name, values)
    is_short = array.dtype.kind == "f" and array.dtype.itemsize < 8
    return as_numbers(name, array.astype(str) if is_short else array)


def half_units(values: FloatArray) -> FloatArray:
    """Return half a unit of the 12th significant digit of each value, in the shape of `values`.

    0 for the value 0.

    >>> half_units(np.array([0.82, -34.0, 0.0])).tolist()
    [5e-13, 5e-11, 0.0]
    """
    sizes = np.abs(values)
    digits = np.floor(np.log10(sizes, where=sizes > 0, out=np.zeros_like(sizes)))
    return np.where(sizes > 0, 10.0 ** (digits - (_DIGITS - 1)) / 2, 0.0)


def differences(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a - b, and half a unit of each difference; a - b is 0 if the values of the pair are equal.

    a, b  finite values, in arrays of one shape

    >>> differences(np.array([0.1 + 0.2, 0.5]), np.array([0.3, 0.25]))[0].tolist()
    [0.0, 0.25]
    """
    near = half_units(np.maximum(np.abs(a), np.abs(b)))
    found = a - b
    return np.where(np.abs(found) <= near, 0.0, found), near


def middle_ranks(values: FloatArray, near: FloatArray) -> FloatArray:
    """Return ranks from 1, the least first, within each row; equal values share their middle rank.

    values  [..., n], finite
    near    half a unit of each value, in the same shape

    O(n log n) for each row.

    >>> gains = differences(np.array([0.80, 0.78, 0.81]), np.array([0.82, 0.80, 0.80]))
    >>> middle_ranks(np.abs(gains[0]), gains[1]).tolist()
    [2.5, 2.5, 1.0]
    """
    order = np.argsort(values, axis=-1, kind="stable")
    ascending, units = (np.take_along_axis(each, order, axis=-1) for each in (values, near))
    # a value with a coarse unit may be equal to values that are not beside it in this order
    upper = np.maximum.accumulate(ascending + units, axis=-1)
    lower = np.minimum.accumulate((ascending - units)[..., ::-1], axis=-1)[..., ::-1]
    are_apart = (upper[..., :-1] < ascending[..., 1:]) & (lower[..., 1:] > ascending[..., :-1])
    groups = np.zeros(values.shape, np.int64)
    np.put_along_axis(groups, order[..., 1:], np.cumsum(are_apart, axis=-1), axis=-1)
    return np.asarray(scipy.stats.rankdata(groups, axis=-1), np.float64)
