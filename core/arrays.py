"""Types of the arrays that modules pass to each other, one name for each type; empty arrays; no time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
ByteArray = npt.NDArray[np.uint8]
Int8Array = npt.NDArray[np.int8]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
UInt64Array = npt.NDArray[np.uint64]
FloatArray = npt.NDArray[np.float64]

NO_FLOATS: FloatArray = np.empty(0)
NO_INT8: Int8Array = np.empty(0, np.int8)
NO_INT64: Int64Array = np.empty(0, np.int64)

NO_TIME = int(np.iinfo(np.int64).min)
"""Microseconds that stand for "no time"."""
