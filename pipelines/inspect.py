"""`rocsteady inspect`: a stored state, in words."""

from __future__ import annotations

from pathlib import Path

from ..core.alerts import MAGIC as ALERTS_MAGIC
from ..core.alerts import AlertTable
from ..core.errors import InputError
from ..core.label_join_state import MAGIC as JOIN_MAGIC
from ..core.label_join_state import JoinState, describe_join
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
        if data[:4] == JOIN_MAGIC:
            print(describe_join(*JoinState.unpack(data)))
        elif data[:4] == ALERTS_MAGIC:
            print(AlertTable.from_bytes(data).describe())
        else:
            print(describe(Snapshot.unpack(data)))
    except ValueError as damage:
        raise InputError(f"{path}: {damage}") from None
    return 0
