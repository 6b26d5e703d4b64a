"""Reads files of a stored state by their bare names in one folder, without trust in the writer of the folder.

Whoever can write to the folder can write the manifest. Without these checks, a name in a manifest could be a
path out of the folder, a FIFO that is never written to, or a device that never ends.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from ...core.errors import InputError
from .formats import has_scheme

_REMEDY = "export again, or copy it again"


def joined(folder: str, name: str) -> str:
    """Return the path of a file in a folder."""
    return f"{folder.rstrip('/')}/{name}" if has_scheme(folder) else str(Path(folder) / name)


def names_in(folder: str) -> list[str]:
    """Return the names of the files in a folder. Raises the errors of its file system."""
    if not has_scheme(folder):
        return [file.name for file in Path(folder).iterdir()]
    found = FileSystems.match([joined(folder, "*")])[0].metadata_list
    return [each.path.rpartition("/")[2] for each in found]


def is_bare(name: str) -> bool:
    r"""Return whether a name is a bare file name, without a path.

    >>> [is_bare(name) for name in ("a.state", "../a", "a/b", "..", "", "a\0b", "C:a")]
    [True, False, False, False, False, False, False]
    """
    return name not in ("", ".", "..") and not any(mark in name for mark in "/\\:\0")


def read_in(folder: str, name: str, at: int = 0, size: int | None = None, most: int | None = None) -> bytes:
    """Return bytes of a file in a folder, by default all of them. The file's size is checked before the read.

    at, size  the part to read: `size` bytes from `at` on
    most      the most bytes that the whole file may have

    Raises InputError, which names the path: if the name is a path, or if the file is missing. Also if it is
    not a regular file of this folder, is longer than `most`, or ends before the part.
    """
    path = joined(folder, name)
    if not is_bare(name):
        raise InputError(f"{name!r} is no bare name of a file in {folder}; {_REMEDY}")

    def part_of(there: int) -> int:
        """Return how many bytes to read from a file of `there` bytes."""
        if most is not None and there > most:
            raise InputError(f"{path} has {there:,} bytes, more than the {most:,} that can be; {_REMEDY}")
        wanted = there - at if size is None else size
        if at + wanted > there or wanted < 0:
            raise InputError(
                f"{path} has {there:,} of {at + wanted:,} bytes: the export was damaged; {_REMEDY}"
            )
        return wanted

    try:
        return (_remote if has_scheme(path) else _local)(path, at, part_of)
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(
            f"{path} does not exist, and belongs to the export; export or copy it again"
        ) from None
    except Exception as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _local(path: str, at: int, part_of: Callable[[int], int]) -> bytes:
    real = os.path.realpath(path)
    if Path(real).parent != Path(path).parent.resolve():
        raise InputError(f"{path} is a link to {real}, outside of its folder; put the file itself there")
    descriptor = os.open(real, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"{path} is no regular file, and a stored state is made of these; {_REMEDY}")
        wanted = part_of(found.st_size)
        file.seek(at)
        return file.read(wanted)


def _remote(path: str, at: int, part_of: Callable[[int], int]) -> bytes:
    matches = FileSystems.match([path])[0].metadata_list
    found = next((each for each in matches if each.path == path), None)
    if found is None:
        raise FileNotFoundError(path)
    wanted = part_of(found.size_in_bytes)
    with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
        file.seek(at)
        return bytes(file.read(wanted))
