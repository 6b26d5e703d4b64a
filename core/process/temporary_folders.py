"""Folders for a command's own files in the system's temporary folder. Their names begin with `PREFIX`.

A process that is killed (SIGKILL) leaves its folder. When a later process makes its first folder, the process
removes old folders: folders of this user that are empty, older than a day and not in use.
"""

from __future__ import annotations

import functools
import os
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

PREFIX = "rocsteady-tmp-"
_DAY = 86_400


@contextmanager
def temporary_folder() -> Iterator[str]:
    """Yield the path of a new folder, and remove the folder at the end of the block."""
    _remove_old_once()
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder, in_use(folder):
        yield folder


@contextmanager
def in_use(path: str | Path) -> Iterator[bool]:
    """Lock a file or folder for the block; yield False if it is locked already or does not exist.

    The system releases the lock when the process ends, however it ends. On Windows nothing is locked.
    """
    if sys.platform == "win32":
        yield True
        return
    is_free = False
    with ExitStack() as closing:
        with suppress(OSError):
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            closing.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_free = True
        yield is_free


def remove_old() -> None:
    """Remove the folders that killed processes left, as the module describes.

    A folder that cannot be removed stays.
    """
    if sys.platform == "win32":
        return
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX):
                with suppress(OSError):
                    _remove_if_left(entry)


_remove_old_once = functools.cache(remove_old)


def _remove_if_left(entry: os.DirEntry[str]) -> None:
    found = entry.stat(follow_symlinks=False)
    is_old = found.st_mtime < time.time() - _DAY
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and is_old:
        with in_use(entry.path) as is_free:
            if is_free:
                os.rmdir(entry.path)  # noqa: PTH106 - os.rmdir refuses a folder with content
