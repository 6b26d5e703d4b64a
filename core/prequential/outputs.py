"""What a fold gives out, and the records that it takes in."""

from __future__ import annotations

import zlib
from typing import NamedTuple

from ..errors import CorruptBytesError
from ..rows.rows import Rows

_SHARED = b"RSZR"


class FoldOutput(NamedTuple):
    """Rows that fell due, and packed `FoldReport`s, in their order."""

    rows: Rows
    reports: tuple[bytes, ...]


def shared_record(record: bytes) -> bytes:
    """Return a record as it goes to every fold of every learner: squeezed once, for the copies it becomes.

    >>> from rocsteady.core.events.records import EndOfInput
    >>> own_record(shared_record(EndOfInput().pack())) == EndOfInput().pack()
    True
    """
    return _SHARED + zlib.compress(record, 1)


def own_record(record: bytes) -> bytes:
    """Return what `shared_record` was given; any other record as it is."""
    if record[: len(_SHARED)] != _SHARED:
        return record
    try:
        return zlib.decompress(record[len(_SHARED) :])
    except zlib.error as damage:
        raise CorruptBytesError(f"a record of all folds is damaged: {damage}") from None
