"""The compilation of kernels: six decorators, one cache folder, and the flags of numba.

* `entry`: a kernel that Python calls. It takes whole batches and is cached on disk.
* `scanning`: an `entry` that allocates arrays of its own.
* `reordering`: an `entry` whose sums may be added in any order, as in a product of matrices.
* `kernel`: a helper compiled as a function of its own. Only kernels can call it.
* `allocating`: a `kernel` that allocates arrays.
* `inlined`: a helper that disappears into its caller.

Invariant: the cache folder is named after everything the machine code depends on (the text of all modules of
`core`, the versions of numba and llvmlite, the size of a bucket). numba itself looks at one file only, and
would load stale code after a change in an imported helper. The text of all of `core` counts, because a kernel
may contain constants of modules that have no kernels.

Only `scanning` kernels and `allocating` helpers allocate arrays. The other kernels are compiled without
numba's reference counting, which took 10 to 45% of the time of their loops. The flag is `_nrt=False`. It is
undocumented, so only this module uses it, and leaves it out if the installed numba does not know the flag.
`fastmath` stays off: it breaks NaN and the order of additions. `reordering` allows another order of
additions, for sums whose order does not matter: otherwise a dot product does not compile to vector code.

numba unpickles files of the cache folder, and unpickling can run any code. So the folder is made for this
user alone, and a folder to which others could have written is not used (`_danger_of`). A file is used only if
its checksum is right: after a power loss a file may be empty, cut short or full of zeros.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite
import numba
import numpy as np
from numba.core.caching import FunctionCache, IndexDataCacheFile, UserProvidedCacheLocator

Integer = int | np.integer[Any]
"""Types of a whole number that a kernel may receive."""

Function = TypeVar("Function", bound=Callable[..., Any])

CORE = Path(__file__).parents[1]
"""The folder of all modules whose functions or constants are compiled."""

BUCKET_SLOTS_VARIABLE = "ROCSTEADY_BUCKET_SLOTS"

njit = cast(Any, numba.njit)  # numba's type hints lack these flags and the cache classes
settings = cast(Any, numba.config)

COMPILED: bool = not settings.DISABLE_JIT


def user_cache_folder() -> Path:
    """Return the user's cache folder, by the convention of the platform."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def source_fingerprint() -> str:
    """Return a hash of all that the machine code depends on; numba itself adds the processor. 5 ms."""
    digest = hashlib.sha256()
    for source in sorted(CORE.rglob("*.py")):
        name = source.relative_to(CORE).as_posix()
        digest.update(name.encode() + b"\0" + source.read_bytes() + b"\0")
    for word in (
        numba.__version__,
        llvmlite.__version__,
        os.environ.get(BUCKET_SLOTS_VARIABLE, ""),
        str(settings.BOUNDSCHECK),
    ):
        digest.update(word.encode() + b"\0")
    return digest.hexdigest()[:16]


def _cache_folder() -> Path | None:
    """Return the folder for this version of the kernels; None, with a warning, if no folder can be trusted.

    A folder with kernels may be read-only, as in the image of a worker.
    """
    root = settings.CACHE_DIR or os.environ.get("ROCSTEADY_CACHE_DIR")
    try:
        folder = (Path(root) if root else user_cache_folder() / "rocsteady") / source_fingerprint()
        _make_private(folder)
        folder = folder.resolve()
        danger = _danger_of(folder) or _foreign_in(folder)
        if not danger and not any(folder.rglob("*.nbi")):
            with tempfile.TemporaryFile(dir=folder):
                pass
    except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home folder
        problem = f"cannot be written ({error})"
    else:
        if not danger:
            return folder
        problem = f"{folder} is not used: {danger}, and what is in it would be run"
    warnings.warn(
        f"rocsteady: the folder for compiled kernels {problem}; every start compiles them anew, which takes "
        "seconds; set ROCSTEADY_CACHE_DIR to a folder of your own",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


def _make_private(folder: Path) -> None:
    """Make a folder, and its missing parents, for this user alone."""
    if not folder.parent.exists():
        _make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def _danger_of(folder: Path) -> str:
    """Say who else can put files into a folder; empty if only this user and root can.

    The folders above count as well: a user who may rename entries of a parent can put another folder in the
    place of this folder. In a sticky folder, such as /tmp, users may rename their own entries only.
    """
    if not hasattr(os, "geteuid"):  # Windows has access lists, which by default allow this user alone
        return ""
    for place in (folder, *folder.parents):
        found = place.stat()
        if found.st_uid not in (os.geteuid(), 0):
            return f"{place} belongs to another user (number {found.st_uid})"
        is_sticky = place != folder and found.st_mode & stat.S_ISVTX
        open_to = found.st_mode & (stat.S_IWOTH | (0 if _is_own_group(found) else stat.S_IWGRP))
        if open_to and not is_sticky:
            return f"{place} can be written to by other users (mode {stat.S_IMODE(found.st_mode):o})"
    return ""


def _foreign_in(folder: Path) -> str:
    """Say which entry of a folder belongs to another user, who made it before the folder became private."""
    if not hasattr(os, "geteuid"):
        return ""
    for place in folder.rglob("*"):
        owner = place.lstat().st_uid
        if owner not in (os.geteuid(), 0):
            return f"{place} belongs to another user (number {owner})"
    return ""


def _is_own_group(found: os.stat_result) -> bool:
    """Return whether a folder's group is its owner's own group: many systems make a group for each user."""
    import grp
    import pwd

    try:
        group, owner = grp.getgrgid(found.st_gid), pwd.getpwuid(found.st_uid)
    except KeyError:  # the user has no name, as in some containers
        return False
    return group.gr_name == owner.pw_name and set(group.gr_mem) <= {owner.pw_name}


CACHE_FOLDER = _cache_folder() if COMPILED else None


def _with_compilers(flags: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Add the compilers of kernels and of helpers (`linking`), if numba has what these build on."""
    inner = {**flags, "no_cpython_wrapper": True}
    try:
        from .linking import HelperCompiler, KernelCompiler
    except (AttributeError, ImportError):
        return flags, inner
    return {**flags, "pipeline_class": KernelCompiler}, {**inner, "pipeline_class": HelperCompiler}


ALLOCATING, INNER_ALLOCATING = _with_compilers({"error_model": "numpy", "no_cfunc_wrapper": True})
"""Flags of kernels, and of helpers that only kernels call: no check of divisions, no wrapper for C."""


def _without_references(flags: dict[str, Any]) -> dict[str, Any]:
    """Add the flag of kernels that allocate nothing, if the installed numba knows the flag."""
    if COMPILED:
        with suppress(KeyError, NameError, TypeError):
            njit(_nrt=False)(lambda: None)
            return {**flags, "_nrt": False}
    return flags


FLAGS, INNER = _without_references(ALLOCATING), _without_references(INNER_ALLOCATING)


def kernel(function: Function) -> Function:
    """Compile a helper of other kernels as a function of its own."""
    return cast(Function, njit(**INNER)(function))


def allocating(function: Function) -> Function:
    """Compile a helper that allocates arrays as a function of its own."""
    return cast(Function, njit(**INNER_ALLOCATING)(function))


def inlined(function: Function) -> Function:
    """Compile a helper of other kernels into its callers."""
    return cast(Function, njit(forceinline=True, **INNER)(function))


def entry(function: Function) -> Function:
    """Compile a kernel that Python calls, and keep its machine code on disk."""
    return _cached(function, FLAGS)


def scanning(function: Function) -> Function:
    """Compile a kernel that allocates arrays, and keep its machine code on disk."""
    return _cached(function, ALLOCATING)


def reordering(function: Function) -> Function:
    """Compile an `entry` whose additions may be reordered; NaN and infinities behave as usual."""
    return _cached(function, {**FLAGS, "fastmath": {"reassoc", "contract"}})


class AnyInstallation(UserProvidedCacheLocator):
    """Locates numba's cache files of this package: the same folder for all its installations of one version.

    numba names the folder after the path of the source. So another environment with the same version, or
    another PYTHONPATH, would compile everything again. The name of the cache folder, and numba's
    hash of the source, ensure that the machine code fits the source.
    """

    @classmethod
    def from_function(cls, function: Any, path: str) -> Any:
        """Return a locator; None for a function outside this package, which numba locates by itself."""
        is_here = Path(path).is_relative_to(CORE)
        return cast(Any, super()).from_function(function, path) if is_here else None

    @classmethod
    def get_suitable_cache_subpath(cls, path: str) -> str:
        """Return the name of the folder within the cache folder."""
        return str(Path(path).parent.relative_to(CORE.parent))

    def ensure_cache_path(self) -> None:
        """Make the folder unless it exists; an existing folder may be read-only. Raises OSError."""
        _make_private(Path(self.get_cache_path()))


class _CheckedFile(IndexDataCacheFile):
    """numba's cache files of one kernel. A digest precedes every part, and the key precedes the data.

    The key is needed since two processes that compile at once may give two signatures the same file name.
    """

    _DIGEST_BYTES = 32

    def save(self, key: Any, data: Any) -> None:
        """Keep the machine code of a signature."""
        super().save(key, (key, data))

    def load(self, key: Any) -> Any:
        """Return the machine code of a signature, or None. Raises ValueError for a damaged file."""
        found = super().load(key)
        return None if found is None or found[0] != key else found[1]

    def _load_index(self) -> dict[Any, str]:
        try:
            content = self._read(self._index_path)
        except FileNotFoundError:
            return {}
        version, stamp, overloads = content
        return dict(overloads) if (version, stamp) == (self._version, self._source_stamp) else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        self._write(self._index_path, (self._version, self._source_stamp, overloads))

    def _load_data(self, name: str) -> Any:
        return self._read(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _read(self, path: str) -> Any:
        data = Path(path).read_bytes()
        digest, content = data[: self._DIGEST_BYTES], data[self._DIGEST_BYTES :]
        if hashlib.blake2b(content, digest_size=self._DIGEST_BYTES).digest() != digest:
            raise ValueError(f"{path} is not as it was written")
        return pickle.loads(content)

    def _write(self, path: str, content: Any) -> None:
        data = self._dump(content)
        with self._open_for_write(path) as file:
            file.write(hashlib.blake2b(data, digest_size=self._DIGEST_BYTES).digest() + data)


class _CheckedCache(FunctionCache):
    """numba's cache of one kernel. A damaged file causes a warning and a compilation, but no failure."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        path, base = self._cache_path, self._impl.filename_base
        self._cache_file = _CheckedFile(path, base, self._impl.locator.get_source_stamp())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel of a signature from the cache; None if the cache has no undamaged file of it."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as damage:
            _warn_once(
                "damaged",
                f"a compiled kernel in {self._cache_path} is damaged ({damage}); it is compiled anew, and so "
                "are others that are damaged",
            )
            self._forget()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compiled kernel to the cache. If that fails (full disk), only this process has the code."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _warn_once(
                "full",
                f"compiled kernels cannot be kept in {self._cache_path} ({error.strerror or error}); every "
                "start compiles them anew; make room there, or set ROCSTEADY_CACHE_DIR to another folder",
            )
        except ValueError:  # the index was damaged after it had been read
            self._forget()

    def _forget(self) -> None:
        with suppress(OSError):
            Path(self._cache_file._index_path).unlink()


_warned: set[str] = set()


def _warn_once(kind: str, sentence: str) -> None:
    """Warn once for all kernels of the process: a damaged or full folder concerns all of them."""
    if kind not in _warned:
        _warned.add(kind)
        warnings.warn(f"rocsteady: {sentence}", RuntimeWarning, stacklevel=2)


def _cached(function: Function, flags: dict[str, Any]) -> Function:
    if CACHE_FOLDER is None:
        return cast(Function, njit(**flags)(function))
    locators = f"{AnyInstallation.__module__}.{AnyInstallation.__name__},{UserProvidedCacheLocator.__name__}"
    wanted = {"CACHE_DIR": str(CACHE_FOLDER), "CACHE_LOCATOR_CLASSES": locators}
    before = {name: getattr(settings, name, None) for name in wanted}
    for name, value in wanted.items():
        setattr(settings, name, value)  # read by numba while it decorates, and only then
    try:
        compiled = njit(**flags)(function)
        with suppress(RuntimeError):  # an older numba raises for a read-only folder
            compiled._cache = _CheckedCache(function)  # what cache=True does, with numba's own class
        return cast(Function, compiled)
    finally:
        for name, old in before.items():
            setattr(settings, name, old)
