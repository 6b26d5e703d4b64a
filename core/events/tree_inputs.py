"""Arrays that users hand to a tree, as its kernels take them, or refused by name.

A kernel has one specialisation, so every array comes to it with one type: contiguous, writeable,
int8 labels, float64 scores, int64 counts. What is wrong is refused here, before anything changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray, Int8Array, Int64Array
from ..errors import InputError


def writeable(array: npt.NDArray[Any]) -> Any:
    """Return an array that may be written to: numba compiles anew for one that may not."""
    return array if array.flags.writeable else array.copy()


def as_labels(labels: npt.ArrayLike) -> Int8Array:
    """Return labels as the kernels take them."""
    array = np.asarray(labels)
    if array.ndim != 1:
        raise InputError(f"labels: shape {array.shape}; give one dimension")
    wrong = (array != 0) & (array != 1)
    if wrong.any():
        raise InputError(f"labels: {array[wrong.argmax()]} is none; give 0 and 1, or False and True")
    result: Int8Array = writeable(np.ascontiguousarray(array, dtype=np.int8))
    return result


def as_scores(scores: npt.ArrayLike, length: int | None = None) -> FloatArray:
    """Return scores as the kernels take them; NaN has no place in an order and is refused."""
    array: FloatArray = writeable(np.ascontiguousarray(scores, dtype=np.float64))
    if array.ndim != 1:
        raise InputError(f"scores: shape {array.shape}; give one dimension")
    if length is not None and len(array) != length:
        raise InputError(f"scores: {len(array)} of them for {length} labels; give as many")
    missing = np.isnan(array)
    if missing.any():
        raise InputError(f"scores: NaN at position {int(missing.argmax())}; drop such events before")
    return array


def as_counts(counts: npt.ArrayLike) -> Int64Array:
    """Return whole numbers as the kernels take them."""
    array = np.asarray(counts)
    if array.ndim != 1 or (array.size and (array != np.floor(array)).any()):
        raise InputError(f"counts: shape {array.shape}, {array.dtype}; give whole numbers in one dimension")
    result: Int64Array = writeable(np.ascontiguousarray(counts, dtype=np.int64))
    return result
