"""How this package compiles: five decorators, one cache folder, one place for every flag.

* `entry`: a kernel that Python calls. It takes whole batches and is cached on disk.
* `scanning`: the same for a kernel that allocates arrays of its own; kernels may call it, too.
* `reordering`: an `entry` whose sums may be added in any order, as a product of matrices adds them.
* `kernel`: a helper compiled as a function of its own.
* `inlined`: a helper that disappears into its caller.

Invariant: the cache folder is named after everything the machine code depends on (the text of all
modules with kernels, the versions of numba and llvmlite, the size of a bucket). numba itself looks
at one file only and would serve stale code after a change in an imported helper.

All but `scanning` kernels allocate nothing, so they are compiled without numba's reference counting,
which took 10 to 45% of these loops (`_nrt=False`: undocumented, therefore used here alone, and left
out where numba does not know it). `fastmath` stays off: it breaks NaN and the order of additions. Where the
order is nobody's promise, `reordering` gives it up alone, without which a dot product is no vector code.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite
import numba
import numpy as np
from numba.core.caching import UserProvidedCacheLocator

Integer = int | np.integer[Any]
"""What a kernel may be handed as a whole number."""

Function = TypeVar("Function", bound=Callable[..., Any])

_WITH_KERNELS = re.compile(
    r"adwin|aum|compressed_list|decisions|dedupl|exact_sums|hash128|id_index|idle|kernels|label_matching|pending_events"
    r"|polynomial_series|polynomial_sums|ranking|remembered|rings|roc_curve|row|score_|settings"
    r"|standardised|steps|weighted|window_"
)
"""Modules with kernels, and those whose constants are compiled into them."""

BUCKET_SLOTS_VARIABLE = "ROCSTEADY_BUCKET_SLOTS"

njit = cast(Any, numba.njit)  # its types know neither of our flags nor of its own cache
settings = cast(Any, numba.config)

COMPILED: bool = not settings.DISABLE_JIT


def user_cache_folder() -> Path:
    """Return the user's cache folder, by the custom of the platform."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def source_fingerprint() -> str:
    """Return a hash of all that the machine code depends on but the processor (numba adds that)."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        if not _WITH_KERNELS.match(source.name):
            continue
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    for word in (
        numba.__version__,
        llvmlite.__version__,
        os.environ.get(BUCKET_SLOTS_VARIABLE, ""),
        str(settings.BOUNDSCHECK),
    ):
        digest.update(word.encode() + b"\0")
    return digest.hexdigest()[:16]


def _writable_cache_folder() -> Path | None:
    """Return the folder for this version of the kernels; None, with a warning, if there is none."""
    root = settings.CACHE_DIR or os.environ.get("ROCSTEADY_CACHE_DIR")
    try:
        folder = (Path(root) if root else user_cache_folder() / "rocsteady") / source_fingerprint()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
        warnings.warn(
            f"rocsteady: the folder for compiled kernels cannot be written ({error}); every start "
            "compiles them anew, which takes seconds; set ROCSTEADY_CACHE_DIR to one that can",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    return folder


CACHE_FOLDER = _writable_cache_folder() if COMPILED else None


def _flags() -> dict[str, Any]:
    """Return the options of every kernel."""
    flags: dict[str, Any] = {"error_model": "numpy"}  # no check for division by zero
    if COMPILED:
        try:
            njit(_nrt=False, **flags)(lambda: None)
        except (KeyError, NameError, TypeError):
            return flags
        flags["_nrt"] = False
    return flags


FLAGS = _flags()
INNER = {**FLAGS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Only kernels call helpers: without a way in for Python all compiles in 11 seconds, not 18."""


def kernel(function: Function) -> Function:
    """Compile a helper of other kernels as a function of its own."""
    return cast(Function, njit(**INNER)(function))


def inlined(function: Function) -> Function:
    """Compile a helper of other kernels into its callers."""
    return cast(Function, njit(forceinline=True, **INNER)(function))


def entry(function: Function) -> Function:
    """Compile a kernel that Python calls, and keep its machine code on disk."""
    return _cached(function, FLAGS)


def scanning(function: Function) -> Function:
    """Compile a kernel that makes arrays for itself, and keep its machine code on disk."""
    return _cached(function, {"error_model": "numpy"})


def reordering(function: Function) -> Function:
    """Compile an `entry` whose additions may be reordered; NaN and infinities stay what they are."""
    return _cached(function, {**FLAGS, "fastmath": {"reassoc", "contract"}})


class AnyInstallation(UserProvidedCacheLocator):
    """Where numba keeps the machine code of this folder: the same place for all installations of it.

    By itself numba names the place after the path of the source, and another environment of the same
    version, or another PYTHONPATH, would compile everything again. That what is found there fits, the name of
    the cache folder says, and numba's hash of the source.
    """

    @classmethod
    def from_function(cls, function: Any, path: str) -> Any:
        """Return a locator; None for a function from elsewhere, which goes where numba puts it."""
        is_here = Path(path).parent == Path(__file__).parent
        return cast(Any, super()).from_function(function, path) if is_here else None

    @classmethod
    def get_suitable_cache_subpath(cls, path: str) -> str:
        """Return the name of the folder within the cache folder."""
        return Path(path).parent.name


def _cached(function: Function, flags: dict[str, Any]) -> Function:
    if CACHE_FOLDER is None:
        return cast(Function, njit(**flags)(function))
    locators = f"{AnyInstallation.__module__}.{AnyInstallation.__name__},{UserProvidedCacheLocator.__name__}"
    wanted = {"CACHE_DIR": str(CACHE_FOLDER), "CACHE_LOCATOR_CLASSES": locators}
    before = {name: getattr(settings, name, None) for name in wanted}
    for name, value in wanted.items():
        setattr(settings, name, value)  # read by numba while it decorates, and only then
    try:
        return cast(Function, njit(cache=True, **flags)(function))
    finally:
        for name, old in before.items():
            setattr(settings, name, old)
