"""A piece of a source's records, in columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ...core.arrays import Int64Array
from .dead_letters import DeadLetters, RawRecords


class Chunk(NamedTuple):
    """Consecutive records of a source.

    first_position  the position of the first record, which is a row or a dead letter; -1 = unknown.
    batch           the records that are rows; columns of any types.
    positions       int64: the position of every row of the batch; None = the positions are consecutive.
    dead            dead letters of the records that are not rows.
    bytes_read      the reader's approximate offset in the file; for a stream, the bytes of the records.
    raw             a function that returns whole records, if the batch lacks some of their fields.
    """

    first_position: int
    batch: pa.RecordBatch
    positions: Int64Array | None
    dead: DeadLetters
    bytes_read: int = 0
    raw: RawRecords | None = None

    def places(self) -> Int64Array | None:
        """Return the position of every row of the batch; None where the first position is unknown."""
        if self.positions is not None or self.first_position < 0:
            return self.positions
        return np.arange(self.first_position, self.first_position + self.batch.num_rows)

    @property
    def records(self) -> int:
        """The number of records, including dead letters."""
        return int(self.batch.num_rows) + len(self.dead)
