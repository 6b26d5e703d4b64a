"""How a loop becomes machine code: the one decorator that every numba kernel wears.

Kernels take whole batches, are compiled on first use and cached on disk. A helper of a kernel lives in
the kernel's own file, because numba's cache does not notice a changed import. Where no cache folder can
be written the kernels compile anew in every process, which is slow but right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

Integer = int | np.integer[Any]
"""What a kernel may be handed as a whole number."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Compile with numba on first call; division by zero gives inf or nan, as in numpy."""
    try:
        compiled = numba.njit(cache=True, error_model="numpy")(function)
    except RuntimeError:  # numba found no folder that it may write its cache to
        compiled = numba.njit(error_model="numpy")(function)
    return cast(_Function, compiled)
