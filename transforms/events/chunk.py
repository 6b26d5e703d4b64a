"""A piece of a source's records, in columns."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from ...core.arrays import Int64Array
from .dead_letters import DeadLetters, RawRecords


class Chunk(NamedTuple):
    """Consecutive records of a source.

    first_position  of the first record, in the batch or dead
    batch           the records that are rows; columns of any types
    positions       int64, of every row of the batch; None where they are consecutive
    dead            the records that are no rows
    bytes_read      how far into the file the reader is, about
    raw             gives whole records, where the batch does not have all of their fields
    """

    first_position: int
    batch: pa.RecordBatch
    positions: Int64Array | None
    dead: DeadLetters
    bytes_read: int = 0
    raw: RawRecords | None = None

    @property
    def records(self) -> int:
        """How many records there are, dead ones among them."""
        return int(self.batch.num_rows) + len(self.dead)
