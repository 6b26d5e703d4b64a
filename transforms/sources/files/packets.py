"""Packets of one partition of the input, numbered for every shard, and control records about the partition.

Invariant
    For every shard, the packets of a partition are numbered from 0 without a gap, and the record of the
    partition's end holds their number. So a machine can sort the packets, however a runner delivers them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ....core.events.batch import EventBatch
from ....core.events.records import EndOfPartition, Heartbeat, StateMarker
from ....core.events.times import NO_TIME
from ....core.events.unjoined import LabelBatch, PredictionBatch
from ....core.ids.sharding import shard_key, split_records
from .partition import with_packet


class Cut(NamedTuple):
    """A request for the states of the shards after a certain record; see `StateMarker`.

    id, folder  the id and the folder of the export
    stops       whether the input stops at the cut: no record follows, but the input counts as not ended
    """

    id: str
    folder: str
    stops: bool = True


class Packets:
    """Numbers the packets of one partition for every shard.

    shards  a number, or `Shards`
    sent    the number of packets sent to each shard so far; after a checkpoint, a reader continues them
    """

    def __init__(
        self, source: str, partition: int, partitions: int, shards: int, sent: Sequence[int] | None = None
    ) -> None:
        self._partition = partition
        self._of = source, partition, partitions
        self._shards = shards
        self.sent = [0] * shards if sent is None else [*sent]

    def split(self, batch: EventBatch | PredictionBatch | LabelBatch) -> Iterator[tuple[str, bytes]]:
        """Yield the packets of a batch."""
        for shard, part in split_records(batch, self._shards):
            packet = with_packet(part, partition=self._partition, sequence=self.sent[shard])
            yield shard_key(shard), packet.pack()
            self.sent[shard] += 1

    def heartbeats(self, settled: int, high_water: int) -> Iterator[tuple[str, bytes]]:
        """Yield a heartbeat for every shard: the time up to which the partition is settled."""
        for shard, sent in enumerate(self.sent):
            yield shard_key(shard), Heartbeat(*self._of, sent, settled, high_water).pack()

    def markers(
        self, cut: Cut, position: object, settled: int = NO_TIME, high_water: int = NO_TIME
    ) -> Iterator[tuple[str, bytes]]:
        """Yield a marker for every shard, which requests the shard's state after the packets so far."""
        where = json.dumps(position)
        for shard, sent in enumerate(self.sent):
            marker = StateMarker(*self._of, sent, cut.id, cut.folder, where, cut.stops, settled, high_water)
            yield shard_key(shard), marker.pack()
            self.sent[shard] += 1

    def ends(self, high_water: int) -> Iterator[tuple[str, bytes]]:
        """Yield a record for every shard that the partition has ended."""
        for shard, sent in enumerate(self.sent):
            yield shard_key(shard), EndOfPartition(*self._of, sent, high_water).pack()
