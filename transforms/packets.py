"""Packets of one partition of the input, numbered for every shard, and the words about them.

Invariant
    For every shard the packets of a partition are numbered from 0 without a gap, and its end says how many
    there were. So a machine can put them in order, whatever a runner does on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core.events import EventBatch
from ..core.join_batches import LabelBatch, PredictionBatch
from ..core.records import EndOfPartition, Heartbeat
from ..core.sharding import shard_key, split_records
from .file_partition import with_packet


class Packets:
    """Numbers the packets of one partition for every shard.

    sent  how many packets each shard got so far; what goes on from a checkpoint goes on from these
    """

    def __init__(self, source: str, partition: int, partitions: int, sent: Sequence[int]) -> None:
        self._source = source
        self._partition = partition
        self._partitions = partitions
        self.sent = [*sent]

    def split(self, batch: EventBatch | PredictionBatch | LabelBatch) -> Iterator[tuple[str, bytes]]:
        """Yield the packets of a batch."""
        for shard, part in split_records(batch, len(self.sent)):
            packet = with_packet(part, partition=self._partition, sequence=self.sent[shard])
            yield shard_key(shard), packet.pack()
            self.sent[shard] += 1

    def heartbeats(self, settled: int, high_water: int) -> Iterator[tuple[str, bytes]]:
        """Tell every shard how far the partition is settled."""
        for shard, sent in enumerate(self.sent):
            word = Heartbeat(self._source, self._partition, self._partitions, sent, settled, high_water)
            yield shard_key(shard), word.pack()

    def ends(self, high_water: int) -> Iterator[tuple[str, bytes]]:
        """Tell every shard that the partition has ended."""
        for shard, sent in enumerate(self.sent):
            word = EndOfPartition(self._source, self._partition, self._partitions, sent, high_water)
            yield shard_key(shard), word.pack()
