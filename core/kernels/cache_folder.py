"""The folder of compiled kernels.

Its name says everything on which the machine code depends, and only this user can write to it.

The name of the folder is made of everything on which the machine code depends (the text of all modules of
`core`, the versions of numba, llvmlite and numpy, the size of a bucket, whether bounds are checked). numba
itself looks at one file only, and would load stale code after a change in an imported helper. The text of all
of `core` counts, because a kernel may contain constants of modules that have no kernels.

numba unpickles files of the folder, and unpickling can run any code. So the folder is made for this user
alone, and a folder to which others could have written is not used (`_danger_of`).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import llvmlite
import numba
import numpy as np

from ..process.user_cache import user_cache

CORE = Path(__file__).parents[1]
"""The folder of `core`, which has all functions and constants that are compiled."""

BUCKET_SLOTS_VARIABLE = "ROCSTEADY_BUCKET_SLOTS"

settings = cast(Any, numba.config)  # numba's type hints lack these flags

COMPILED: bool = not settings.DISABLE_JIT

_KEPT = 3
"""How many folders of other versions stay when a new folder is made: the folders that were used last."""

_IN_USE_SECONDS = 3600.0
"""A folder that was used within so many seconds stays as well: a process may still load kernels from it."""


def source_fingerprint() -> str:
    """Return a hash of everything on which the machine code depends.

    Numba itself adds the processor to the names of files. Takes 5 ms.
    """
    digest = hashlib.sha256()
    for source in sorted(CORE.rglob("*.py")):
        name = source.relative_to(CORE).as_posix()
        digest.update(name.encode() + b"\0" + source.read_bytes() + b"\0")
    for word in (
        numba.__version__,
        llvmlite.__version__,
        np.__version__,
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
        folder = (Path(root) if root else user_cache()) / source_fingerprint()
        is_new = not folder.exists()
        make_private(folder)
        folder = folder.resolve()
        danger = _danger_of(folder) or _foreign_in(folder)
        if not danger and not any(folder.rglob("*.nbi")):
            with tempfile.TemporaryFile(dir=folder):
                pass
    except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home folder
        problem = f"cannot be written ({error})"
    else:
        if not danger:
            _note_use(folder, is_new)
            return folder
        problem = f"{folder} is not used: {danger}, and what is in it would be run"
    warnings.warn(
        f"rocsteady: the folder for compiled kernels {problem}; every start compiles them anew, which takes "
        "seconds; set ROCSTEADY_CACHE_DIR to a folder of your own",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


def _note_use(folder: Path, is_new: bool) -> None:
    """Set the folder's time of last use; when the folder is new, remove old folders of other versions."""
    # the folder is read-only, as in the image of a worker; or another process removes them, too
    with suppress(OSError):
        os.utime(folder)
        if is_new:
            others = [each for each in folder.parent.iterdir() if re.fullmatch("[0-9a-f]{16}", each.name)]
            used = sorted(((each.stat().st_mtime, each) for each in others if each != folder), reverse=True)
            for last_use, each in used[_KEPT:]:
                if last_use < time.time() - _IN_USE_SECONDS:
                    shutil.rmtree(each, ignore_errors=True)


def make_private(folder: Path) -> None:
    """Make a folder, and its missing parents, for this user alone."""
    if not folder.parent.exists():
        make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def _danger_of(folder: Path) -> str:
    """Return a sentence that says who else can put files into a folder; empty if only this user and root can.

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
    """Return a sentence that names an entry of a folder which belongs to another user.

    That user made the entry before the folder became private.
    """
    if not hasattr(os, "geteuid"):
        return ""
    for place in folder.rglob("*"):
        try:
            owner = place.lstat().st_uid
        except FileNotFoundError:  # a file under a temporary name, which another process has renamed
            continue
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
