"""The outputs of a fold, and the records that it takes in."""

from __future__ import annotations

import zlib
from typing import NamedTuple

from ..errors import CorruptBytesError
from ..rows.rows import Rows

_SHARED = b"RSZR"


class FoldOutput(NamedTuple):
    """Rows that fell due, and packed `FoldReport`s, both in their order."""

    rows: Rows
    reports: tuple[bytes, ...]


def shared_record(record: bytes) -> bytes:
    """Return a record in the form that goes to every fold of every learner: compressed once for all copies.

    >>> from rocsteady.core.events.records import EndOfInput
    >>> own_record(shared_record(EndOfInput().pack())) == EndOfInput().pack()
    True
    """
    return _SHARED + zlib.compress(record, 1)


def own_record(record: bytes) -> bytes:
    """Return the record that `shared_record` was given; return any other record unchanged."""
    if record[: len(_SHARED)] != _SHARED:
        return record
    try:
        return zlib.decompress(record[len(_SHARED) :])
    except zlib.error as damage:
        raise CorruptBytesError(f"a record of all folds is damaged: {damage}") from None
