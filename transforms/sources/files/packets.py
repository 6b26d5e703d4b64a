"""Packets of one partition of the input, numbered for every shard, and the words about them.

Invariant
    For every shard the packets of a partition are numbered from 0 without a gap, and its end says how many
    there were. So a machine can put them in order, whatever a runner does on the way.
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
    """The states of the shards are wanted as they are behind some record; see `StateMarker`.

    id, folder  of the export
    stops       nothing comes behind it, and the input does not end: it is cut off
    """

    id: str
    folder: str
    stops: bool = True


class Packets:
    """Numbers the packets of one partition for every shard.

    shards  a number, or `Shards`
    sent    how many packets each shard got so far; what goes on from a checkpoint goes on from these
    """

    def __init__(
        self, source: str, partition: int, partitions: int, shards: int, sent: Sequence[int] | None = None
    ) -> None:
        self._source = source
        self._partition = partition
        self._partitions = partitions
        self._shards = shards
        self.sent = [0] * shards if sent is None else [*sent]

    def split(self, batch: EventBatch | PredictionBatch | LabelBatch) -> Iterator[tuple[str, bytes]]:
        """Yield the packets of a batch."""
        for shard, part in split_records(batch, self._shards):
            packet = with_packet(part, partition=self._partition, sequence=self.sent[shard])
            yield shard_key(shard), packet.pack()
            self.sent[shard] += 1

    def heartbeats(self, settled: int, high_water: int) -> Iterator[tuple[str, bytes]]:
        """Tell every shard how far the partition is settled."""
        for shard, sent in enumerate(self.sent):
            word = Heartbeat(self._source, self._partition, self._partitions, sent, settled, high_water)
            yield shard_key(shard), word.pack()

    def markers(
        self, cut: Cut, position: object, settled: int = NO_TIME, high_water: int = NO_TIME
    ) -> Iterator[tuple[str, bytes]]:
        """Tell every shard that its state is wanted as it is behind these packets."""
        for shard, sent in enumerate(self.sent):
            marker = StateMarker(
                self._source, self._partition, self._partitions, sent, cut.id, cut.folder,
                json.dumps(position), cut.stops, settled, high_water,
            )  # fmt: skip
            yield shard_key(shard), marker.pack()
            self.sent[shard] += 1

    def ends(self, high_water: int) -> Iterator[tuple[str, bytes]]:
        """Tell every shard that the partition has ended."""
        for shard, sent in enumerate(self.sent):
            word = EndOfPartition(self._source, self._partition, self._partitions, sent, high_water)
            yield shard_key(shard), word.pack()
