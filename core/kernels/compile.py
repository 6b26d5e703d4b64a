"""The compilation of kernels: six decorators, and the flags that they give to numba.

* `entry`: a kernel that Python calls. It takes whole batches and is cached on disk (`cache`).
* `scanning`: an `entry` that allocates arrays of its own.
* `reordering`: an `entry` whose sums may be added in any order, as in a product of matrices.
* `kernel`: a helper compiled as a function of its own. Only kernels can call it.
* `allocating`: a `kernel` that allocates arrays.
* `inlined`: a helper that disappears into its caller.

Only `scanning` kernels and `allocating` helpers allocate arrays. The other kernels are compiled without
numba's reference counting, which took 10 to 45% of the time of their loops. The flag is `_nrt=False`. It is
undocumented, so only this module uses it, and leaves it out if the installed numba does not know the flag.
`fastmath` stays off: it breaks NaN and the order of additions. `reordering` allows another order of
additions, for sums whose order does not matter: otherwise a dot product does not compile to vector code.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import types

from .announcement import ANNOUNCEMENT
from .cache import keep_on_disk
from .cache_folder import CACHE_FOLDER, COMPILED

Integer = int | np.integer[Any]
"""Types of a whole number that a kernel may receive."""

Function = TypeVar("Function", bound=Callable[..., Any])

njit = cast(Any, numba.njit)  # numba's type hints lack these flags


def _with_compilers(flags: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Add the compilers of kernels and of helpers (`linking`) to flags, if this numba has what they need."""
    inner = {**flags, "no_cpython_wrapper": True}
    try:
        from .linking import HelperCompiler, KernelCompiler
    except (AttributeError, ImportError):
        return flags, inner
    return {**flags, "pipeline_class": KernelCompiler}, {**inner, "pipeline_class": HelperCompiler}


ALLOCATING, INNER_ALLOCATING = _with_compilers({"error_model": "numpy", "no_cfunc_wrapper": True})
"""Flags of kernels, and of helpers that only kernels call: without checks of divisions, without a wrapper for
C.
"""


def _without_references(flags: dict[str, Any]) -> dict[str, Any]:
    """Add the flag of kernels that allocate nothing, if the installed numba knows the flag."""
    if COMPILED:
        with suppress(KeyError, NameError, TypeError):
            njit(_nrt=False)(lambda: None)
            return {**flags, "_nrt": False}
    return flags


FLAGS, INNER = _without_references(ALLOCATING), _without_references(INNER_ALLOCATING)


def _helper(function: Function, flags: dict[str, Any]) -> Function:
    """Compile a helper once, also for whole numbers that its callers give as constants.

    numba compiles a function anew for each constant that it is called with, such as 0 and 1 for two sides: 25
    functions of 220 for a sliding window.
    """
    compiled = njit(**flags)(function)
    if COMPILED:
        template = compiled.get_call_template
        compiled.get_call_template = lambda args, kws: template(
            tuple(map(types.unliteral, args)), {name: types.unliteral(of) for name, of in kws.items()}
        )
    return cast(Function, compiled)


def kernel(function: Function) -> Function:
    """Compile a helper of other kernels as a function of its own."""
    return _helper(function, INNER)


def allocating(function: Function) -> Function:
    """Compile a helper that allocates arrays as a function of its own."""
    return _helper(function, INNER_ALLOCATING)


def inner(compiled: Function) -> Function:
    """Return an `entry`, which Python calls, as a `kernel`.

    If a kernel called an entry itself, numba would make machine code of the entry, too, for each set of
    types: 2 s of processor time for the kernels of an arena.
    """
    return kernel(cast(Any, compiled).py_func) if COMPILED else compiled


def inlined(function: Function) -> Function:
    """Compile a helper of other kernels into its callers."""
    return _helper(function, {**INNER, "forceinline": True})


def entry(function: Function) -> Function:
    """Compile a kernel that Python calls, and keep its machine code on disk."""
    return _cached(function, FLAGS)


def scanning(function: Function) -> Function:
    """Compile a kernel that allocates arrays, and keep its machine code on disk."""
    return _cached(function, ALLOCATING)


def reordering(function: Function) -> Function:
    """Compile an `entry` whose additions may be reordered; NaN and infinities behave as usual."""
    return _cached(function, {**FLAGS, "fastmath": {"reassoc", "contract"}})


def _cached(function: Function, flags: dict[str, Any]) -> Function:
    compiled = njit(**flags)(function)
    if COMPILED:
        cache = None if CACHE_FOLDER is None else keep_on_disk(function, compiled)
        load = compiled.compile

        def compile_or_load(signature: Any) -> Any:
            if cache is None:
                with ANNOUNCEMENT:
                    return load(signature)
            try:
                return load(signature)
            finally:
                cache.release()

        compiled.compile = compile_or_load
    return cast(Function, compiled)
