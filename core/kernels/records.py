"""Arrays of records, in the form that kernels take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from .cache_folder import COMPILED


def for_kernels(records: Any) -> Any:
    """Return records in the form that kernels take.

    Compiled kernels take plain structured arrays, which numba recognises fastest. Interpreted kernels need
    record arrays, whose fields are attributes.
    """
    return records if COMPILED else records.view(np.recarray)


def empty_records(count: int, dtype: np.dtype[Any]) -> Any:
    """Return an uninitialised array of `count` records that begins at a cache line."""
    raw = np.empty(count * dtype.itemsize + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return for_kernels(raw[start : start + count * dtype.itemsize].view(dtype))


def zero_record(dtype: np.dtype[Any]) -> Any:
    """Make one record of zeros."""
    return for_kernels(np.zeros(1, dtype))


# Casts in kernels, with the types that the casts mean to mypy (numba sees numpy's own casts):
whole = cast(Callable[[Any], int], np.int64)


at = cast(Callable[[Any], Any], np.uint64)  # unsigned, so that there is no code for negative indices
