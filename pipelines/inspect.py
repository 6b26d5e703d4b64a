"""`rocsteady inspect`: a stored state, in words."""

from __future__ import annotations

from pathlib import Path

from ..core.errors import InputError
from ..core.snapshot import Snapshot, describe


def inspect_command(path: str) -> int:
    """Print what the state in a file holds; errors name the file."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror or error}; give a file with the bytes of a snapshot"
        ) from None
    try:
        print(describe(Snapshot.unpack(data)))
    except ValueError as damage:
        raise InputError(f"{path}: {damage}") from None
    return 0
