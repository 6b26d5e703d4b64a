"""What users hand to a WeightedTree, as its kernels take it, or refused by name."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray, Int8Array
from ..errors import InputError
from ..events.tree_inputs import as_scores, writeable


def as_weights(weights: npt.ArrayLike, length: int) -> FloatArray:
    """Return weights as the kernels take them: finite and > 0."""
    array: FloatArray = writeable(np.ascontiguousarray(weights, dtype=np.float64))
    if array.shape != (length,):
        raise InputError(f"weights: shape {array.shape} for {length} labels; give one for each")
    wrong = ~(np.isfinite(array) & (array > 0.0))
    if wrong.any():
        at = int(wrong.argmax())
        raise InputError(f"weights: {array[at]} at position {at}; give finite numbers above 0")
    return array


def as_finite_scores(scores: npt.ArrayLike, length: int) -> FloatArray:
    """Return scores as the kernels take them: finite, since AUM measures distances between them."""
    array = as_scores(scores, length)
    if not np.isfinite(array).all():
        at = int((~np.isfinite(array)).argmax())
        raise InputError(f"scores: {array[at]} at position {at}; give finite numbers")
    return array


def as_signs(signs: npt.ArrayLike, length: int) -> Int8Array:
    """Return signs as the kernels take them: 1 or -1."""
    array = np.ascontiguousarray(signs, dtype=np.int8)
    if array.shape != (length,) or not (np.abs(array) == 1).all():
        raise InputError(f"signs: shape {array.shape} for {length} events; give 1 or -1 for each")
    result: Int8Array = writeable(array)
    return result
