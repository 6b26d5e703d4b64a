"""A table in order of time as a partition of a stream: each record is given at the time when it is due."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from ...transforms.events.dead_letters import NO_LETTERS, Chunk
from ...transforms.events.fields import EventFields
from ...transforms.sources.streams.partition import Fetched, Part, StreamPartition
from ..replay import Schedule


class Played(StreamPartition):
    """The records of a table as a partition; `speed` seconds of event time pass in a second.

    inf = records are given as fast as they are read.

    The offset of a record is its row. The first record that is fetched is due at once: a job that continues
    from a checkpoint does not wait for the time before it.
    """

    def __init__(self, table: pa.Table, fields: EventFields, name: str, origin: str, speed: float) -> None:
        self._batch = table.combine_chunks().to_batches()[0]
        self._times = table[fields.time].cast(pa.int64()).to_numpy()
        self._fields = fields
        self._name = name
        self._origin = origin
        self._speed = speed
        self._schedule: Schedule | None = None
        self._stopped = False

    @property
    def name(self) -> str:
        """The name of the partition in dead letters."""
        return self._name

    @property
    def origin(self) -> str:
        """The origin of the table's records: a checkpoint of another table is refused."""
        return self._origin

    def fetch(self, offset: int, limit: int, wait: float, place: str = "") -> Fetched:  # noqa: ARG002
        """Wait `wait` seconds, unless all records are due, and return the records that are then due."""
        last = len(self._times)
        if offset >= last or self._stopped:
            return Fetched((), (), offset, at_end=True, ended=True)
        if self._schedule is None:
            self._schedule = Schedule(self._speed, int(self._times[offset]), time.monotonic())
        if self._schedule.due(int(self._times[-1])) > time.monotonic():
            time.sleep(wait)  # many small steps would cost more than few
        due = int(np.searchsorted(self._times, self._schedule.reached(time.monotonic()), "right"))
        end = max(offset, min(due, offset + limit))
        if end == offset:
            return Fetched((), (), offset, at_end=True)
        chunk = Chunk(offset, self._batch.slice(offset, end - offset), None, NO_LETTERS)
        parts = [Part(self._name, self._fields, chunk)]
        return Fetched((), (), end, at_end=end == due, parts=parts, ended=end == last)

    def end(self) -> int:
        """Return the number of records."""
        return len(self._times)

    def stop(self) -> None:
        """Let the next fetch end the partition."""
        self._stopped = True
