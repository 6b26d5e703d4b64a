"""Helpers of kernels as functions that Python can call: compiled helpers have no wrapper for Python."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numba import njit
from rocsteady.core.kernels.cache_folder import COMPILED


@functools.cache
def called(helper: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that Python can call and that calls the helper."""
    return njit(error_model="numpy")(lambda *arguments: helper(*arguments)) if COMPILED else helper
