"""The cache of compiled kernels on disk: checked when it is read, and written by one process at a time.

A file is used only if its checksum is right: after a power loss a file may be empty, cut short or full of
zeros. A process that finds a kernel missing locks a file, and then compiles the kernel. Another process that
needs the kernel waits, and loads what the first process wrote. So processes that start at once compile no
kernel twice, and each can compile a part of the kernels for all.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import hashlib
import os
import pickle
import time
import warnings
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from numba.core.caching import FunctionCache, IndexDataCacheFile, UserProvidedCacheLocator
from numba.core.runtime.nrt import rtsys

from .announcement import ANNOUNCEMENT
from .cache_folder import CACHE_FOLDER, CORE, make_private, settings

try:
    import fcntl
except ImportError:  # Windows: kernels are compiled by each process that finds them missing
    fcntl = None  # type: ignore[assignment]

HAS_LOCKS = fcntl is not None
"""Whether processes can share the work: one process compiles a kernel, and another waits for it."""

ALL_COMPILED = ".compiled"
"""The end of the name of a mark: an empty file that says that the cache folder has all kernels of a job."""

_UNFINISHED_SECONDS = 3_600.0
"""A file under a temporary name is a remainder if it is older: a process that was killed left it."""

_PATIENCE_SECONDS = 60.0
"""How long a process waits for another process that compiles a kernel, before it compiles the kernel itself.

After one such wait the process waits no more: the other process is stopped (Ctrl-Z), and may hold several
kernels.
"""


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
        make_private(Path(self.get_cache_path()))


class _CheckedFile(IndexDataCacheFile):
    """numba's cache files of one kernel. A digest precedes every part, and the key precedes the data.

    The key is needed since two processes that compile at once may give two signatures the same file name.
    """

    _DIGEST_BYTES = 32

    def save(self, key: Any, data: Any) -> None:
        """Save the machine code of a signature."""
        super().save(key, (key, data))

    def load(self, key: Any) -> Any:
        """Return the machine code of a signature, or None if the file has none.

        Raises ValueError for a damaged file.
        """
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
        temporary = Path(f"{path}.{os.getpid()}-{uuid4().hex[:8]}.tmp")
        try:
            temporary.write_bytes(hashlib.blake2b(data, digest_size=self._DIGEST_BYTES).digest() + data)
            temporary.replace(path)
        except BaseException:  # KeyboardInterrupt too
            temporary.unlink(missing_ok=True)
            raise


class CheckedCache(FunctionCache):
    """numba's cache of one kernel. A damaged file causes a warning and a compilation, but no failure.

    _lock   the file whose lock claims the kernel for this process, while the kernel is compiled; else -1
    _waits  the announcement, while this process waits for the kernel: to load a kernel is no such wait
    """

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        path, base = self._cache_path, self._impl.filename_base
        self._cache_file = _CheckedFile(path, base, self._impl.locator.get_source_stamp())
        self._lock = -1
        self._waits = ExitStack()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel of a signature from the cache; None if the cache has no undamaged file of it.

        If the cache does not have the kernel at once, this process claims the kernel until `release`.
        """
        found = self._load_checked(sig, target_context)
        if found is None:
            self._waits.enter_context(ANNOUNCEMENT)
            if self._claim():
                found = self._load_checked(sig, target_context)  # another process may have written it
        return found

    def _load_checked(self, sig: Any, target_context: Any) -> Any:
        try:
            # This is numba's `load_overload` without the parts that only a compilation needs: all definitions
            # of Python and numpy in numba, and `scipy.linalg`, take .3 s of processor time. A compilation
            # loads them.
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except (MemoryError, OSError):  # the file may be whole for another process
            return None
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
        global _are_all_kept
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _are_all_kept = False
            _warn_once(
                "full",
                f"compiled kernels cannot be kept in {self._cache_path} ({error.strerror or error}); every "
                "start compiles them anew; make room there, or set ROCSTEADY_CACHE_DIR to another folder",
            )
        except ValueError:  # the index was damaged after it had been read
            _are_all_kept = False
            self._forget()

    def _claim(self) -> bool:
        """Wait until no other process compiles this kernel, and claim it.

        Return False if the wait takes long, or if there are no locks.
        """
        global _patience_seconds
        if fcntl is None or self._lock >= 0:
            return False
        try:
            make_private(Path(self._cache_path))
            self._lock = os.open(f"{self._cache_file._index_path}.lock", os.O_CREAT | os.O_RDWR, 0o600)
            end = time.monotonic() + _patience_seconds
            while not _locks(self._lock):
                if time.monotonic() > end:
                    _patience_seconds = 0.0
                    self._unlock()
                    return False
                time.sleep(0.05)
        except OSError:
            self._unlock()
            return False
        return True

    def release(self) -> None:
        """End the wait for this kernel, and let other processes compile it if this process has claimed it."""
        self._waits.close()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock >= 0:
            # The file is unlocked explicitly, because closing it is not enough: a process that was forked
            # meanwhile has it open, too.
            with suppress(OSError):
                fcntl.flock(self._lock, fcntl.LOCK_UN)
            os.close(self._lock)
            self._lock = -1

    def _forget(self) -> None:
        """Remove the index of this kernel, and the marks that say that the cache has all kernels of a job."""
        marks = () if CACHE_FOLDER is None else CACHE_FOLDER.glob(f"*{ALL_COMPILED}")
        for path in (Path(self._cache_file._index_path), *marks):
            with suppress(OSError):
                path.unlink()


_are_all_kept = True
_patience_seconds = _PATIENCE_SECONDS


def are_all_kept() -> bool:
    """Return whether the cache folder has every kernel that this process has compiled."""
    return _are_all_kept


def remove_unfinished(folder: Path, process: int | None = None) -> None:
    """Remove the files that a killed process was writing.

    Without a process, remove all such files older than an hour.
    """
    old = time.time() - _UNFINISHED_SECONDS
    for temporary in folder.rglob("*.tmp" if process is None else f"*.{process}-*.tmp"):
        with suppress(OSError):
            if process is not None or temporary.stat().st_mtime < old:
                temporary.unlink()


def _locks(file: int) -> bool:
    """Lock an open file for this process; return False if another process has the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


_warned: set[str] = set()


def _warn_once(kind: str, sentence: str) -> None:
    """Warn once for all kernels of the process: a damaged or full folder concerns all of them."""
    if kind not in _warned:
        _warned.add(kind)
        warnings.warn(f"rocsteady: {sentence}", RuntimeWarning, stacklevel=2)


def keep_on_disk(function: Any, compiled: Any) -> CheckedCache | None:
    """Give a compiled function a cache as `cache=True` would, but a checked cache.

    Return the cache; None if an older numba refuses a read-only folder. The code that compiles must call
    `release` afterwards, also if the compilation failed.
    """
    locators = f"{AnyInstallation.__module__}.{AnyInstallation.__name__},{UserProvidedCacheLocator.__name__}"
    wanted = {"CACHE_DIR": str(CACHE_FOLDER), "CACHE_LOCATOR_CLASSES": locators}
    before = {name: getattr(settings, name, None) for name in wanted}
    for name, value in wanted.items():
        setattr(settings, name, value)  # numba reads the setting only while it makes a cache
    try:
        compiled._cache = CheckedCache(function)
        return cast(CheckedCache, compiled._cache)
    except RuntimeError:
        return None
    finally:
        for name, old in before.items():
            setattr(settings, name, old)
