"""Compiles the kernels of a job in a second process: `python -m rocsteady.core.state.compile_ahead`.

Meanwhile, the first process opens files, makes the pipeline or trains models. Then the first process
compiles, too: it takes the kernels in the order in which events need them, while the second process begins
with the largest kernels. The cache ensures that no kernel is compiled twice (`core/kernels/cache.py`). Only
commands start a second process. A worker or an import never starts one. One second process works at a time
for a cache folder.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from llvmlite.binding import get_host_cpu_features, get_host_cpu_name
from numba.core import event

from ..arena.arena import is_bounded, most_events
from ..evaluator.unit_window import tree_sizes
from ..join.join_settings import JoinSettings
from ..kernels.cache import ALL_COMPILED, HAS_LOCKS, are_all_kept, remove_unfinished
from ..kernels.cache_folder import CACHE_FOLDER
from ..kernels.cache_folder import settings as numba_settings
from ..process.temporary_folders import in_use
from ..settings.evaluator import EvaluatorSettings
from ..settings.table import TableSettings

Settings = EvaluatorSettings | JoinSettings | TableSettings

_OF_WINDOW, _OF_OTHERS = 300, 50
"""The numbers of functions that numba compiles for the first kind of window, and for a further kind of window
or a join.
"""


class _Functions(event.Listener):
    """A listener of numba that calls a function each time that numba has compiled a function."""

    def __init__(self, note: Callable[[], object]) -> None:
        self._note = note

    def on_start(self, event: Any) -> None:
        """Do nothing when numba begins to compile a function."""

    def on_end(self, event: Any) -> None:  # noqa: ARG002
        """Note that numba has compiled a function."""
        self._note()


class _Second:
    """The second process, as the first process sees it.

    expected  about how many functions both processes compile together
    """

    def __init__(self, expected: int) -> None:
        self._expected = expected
        self._compiled = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, pickled: bytes) -> None:
        """Start the process with pickled settings. Raises OSError if the process cannot be started."""
        # The second process finds the package at the place where this process found it, and no other module
        # there: with -P, a module of the working folder cannot take the place of a package.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        words = [sys.executable, "-P", *["-O"] * sys.flags.optimize, "-m", __name__]
        self._process = subprocess.Popen(
            words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        os.set_blocking(cast(IO[bytes], self._process.stdout).fileno(), False)
        with suppress(BrokenPipeError), cast(IO[bytes], self._process.stdin) as stdin:
            stdin.write(pickled)

    def share(self) -> float:
        """Return the share of the functions that are compiled: an estimate below 1."""
        if self._process is not None:
            self._compiled += len(cast(IO[bytes], self._process.stdout).read() or b"")
        return min(self._compiled / self._expected, 0.99)

    def note(self) -> None:
        """Note a function that the first process has compiled."""
        self._compiled += 1

    def end(self) -> None:
        """End the process. A kernel that the process has not finished is compiled when the job needs it."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        cast(IO[bytes], self._process.stdout).close()
        if CACHE_FOLDER is not None:
            remove_unfinished(CACHE_FOLDER, self._process.pid)


_second: _Second | None = None


def share_compiled() -> float | None:
    """Return the share of a job's functions that are compiled; None if no second process compiles."""
    return None if _second is None else _second.share()


@contextmanager
def compiled_ahead(*settings: Settings) -> Iterator[None]:
    """Compile the kernels of these settings in a second process, which ends with the block at the latest.

    No process starts if marks in the cache folder say that it has all of these kernels, or if the folder
    keeps no kernels.
    """
    global _second
    marks = [(one, _mark_of(one)) for one in settings]
    missing = [one for one, mark in marks if mark is not None and not mark.exists()]
    if not missing or not sys.executable:
        yield
        return
    second = _Second(_functions_of(missing))
    try:
        with suppress(OSError):  # no process can be started: the first process compiles
            second.start(pickle.dumps(missing))
            _second = second
        with event.install_listener("numba:compile", _Functions(second.note)):
            yield
    finally:
        _second = None
        second.end()


def _functions_of(missing: Sequence[Settings]) -> int:
    """Return about how many functions numba will compile for settings whose kernels are missing."""
    windows = sum(not isinstance(one, JoinSettings) for one in missing)
    is_first = (
        windows > 0 and CACHE_FOLDER is not None and not any(CACHE_FOLDER.glob(f"window-*{ALL_COMPILED}"))
    )
    return _OF_OTHERS * len(missing) + (_OF_WINDOW - _OF_OTHERS) * is_first


def _mark_of(settings: Settings) -> Path | None:
    """Return the path of the empty file that marks: the cache folder has all kernels of these settings.

    The file's name is a hash of the settings that choose the kernels, of Python's version and of the
    processor. None if this process keeps no kernels, or cannot share the work of compiling.
    """
    if CACHE_FOLDER is None or not HAS_LOCKS or not os.access(CACHE_FOLDER, os.W_OK):
        return None
    processor = (
        numba_settings.CPU_NAME or get_host_cpu_name(),
        numba_settings.CPU_FEATURES or get_host_cpu_features().flatten(),
    )
    kind, chosen = _kernels_of(settings)
    text = repr((chosen, sys.implementation.cache_tag, processor))
    return CACHE_FOLDER / f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:16]}{ALL_COMPILED}"


def _kernels_of(settings: Settings) -> tuple[str, tuple[Any, ...]]:
    """Return the kind of the kernels that settings need, and the values by which settings choose the kernels.

    Numbers that kernels take as arguments are left out, and so are the small kernels of deduplication and of
    idle models. After another job's mark, a job may still have to compile these small kernels, which it does
    alone.
    """
    if isinstance(settings, JoinSettings):
        return "join", (settings.second, settings.deduplicate is None)
    in_table = isinstance(settings, TableSettings)
    has_classes = isinstance(settings, TableSettings) and settings.classes is not None
    one = settings.evaluator if isinstance(settings, TableSettings) else settings
    return "window", (
        in_table and most_events(one) > 0,
        in_table and is_bounded(one),
        type(one.window).__name__,
        one.window.signal,
        bool(tree_sizes(one)),
        one.measures,
        type(one.cost).__name__,
        one.priors == "window",
        one.probabilities,
        one.flip_if_below_half,
        one.needs_times is not None,
        one.curves is None,
    ) + ((True,) if has_classes else ())


def warm_up(settings: Settings, *, largest_first: bool = False) -> None:
    """Compile the kernels of settings, or load them, and mark in the cache folder that all of them are there.

    Either process does this first.
    """
    # Imported here, so that a job without a join does not import the join.
    if isinstance(settings, JoinSettings):
        from ..join.join import warm_up as warm_up_join

        warm_up_join(settings)
    elif isinstance(settings, TableSettings):
        from ..table.table import warm_up as warm_up_table

        warm_up_table(settings, largest_first=largest_first)
    else:
        from ..evaluator.evaluator import warm_up as warm_up_evaluator

        warm_up_evaluator(settings, largest_first=largest_first)
    mark = _mark_of(settings)
    if mark is not None and are_all_kept():
        with suppress(OSError):  # without the mark, a later job starts a second process once more
            mark.touch()


def _tell() -> None:
    """Tell the first process that a function is compiled.

    End the process if the cache takes no more kernels.
    """
    os.write(1, b".")
    if not are_all_kept():
        os._exit(1)


def main() -> None:
    """Compile the kernels that the settings on stdin need."""
    pickled = sys.stdin.buffer.read()
    if CACHE_FOLDER is None:
        return
    with in_use(CACHE_FOLDER) as is_only:
        if not is_only:
            return
        remove_unfinished(CACHE_FOLDER)
        with event.install_listener("numba:compile", _Functions(_tell)):
            for settings in pickle.loads(pickled):
                warm_up(settings, largest_first=True)


if __name__ == "__main__":
    main()
