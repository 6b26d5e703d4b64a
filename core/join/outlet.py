"""The output of a shard of the join: joined events, and the time up to which they are complete.

To an evaluator's shard, each shard of the join is a partition; its packets are numbered for each receiver.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..events.batch import EventBatch
from ..events.records import EndOfPartition, Heartbeat, StateMarker
from ..events.times import END_OF_TIME, NO_TIME
from ..events.unjoined import LabelBatch
from ..ids.sharding import shard_key, split_by_shard
from .settings import JoinSettings

Packet = tuple[str, bytes]
"""A record for a shard of the evaluators: (key of the shard, bytes)."""


class Outlet:
    """Sends the output of one shard of the join to all shards of the evaluators.

    sent      number of packets sent to each shard
    greatest  the greatest time of any joined event
    """

    def __init__(self, settings: JoinSettings, number: int) -> None:
        self.sent = [0] * settings.evaluator_shards
        self.greatest = NO_TIME
        self._settings = settings
        self._delay = settings.output_delay
        self._number = number
        self._name = f"shard {number} of the join"

    def joined(self, predictions: EventBatch, labels: LabelBatch) -> Iterator[Packet]:
        """Send an event for each pair (predictions[i], labels[i]), at the time of its label."""
        self.greatest = max(self.greatest, int(labels.times.max()))
        events = replace(
            predictions,
            times=labels.times,
            labels=labels.labels,
            label_classes=None if predictions.predicted is None else labels.label_classes,
            source=self._name,
            sources=predictions.event_sources(),
            partition=self._number,
            high_water=self.greatest,
        )
        for shard, part in split_by_shard(events, self._settings.evaluator_shards):
            yield shard_key(shard), replace(part, sequence=self.sent[shard]).pack()
            self.sent[shard] += 1

    def settle(self, clock: int) -> Iterator[Packet]:
        """Tell every shard up to which time joined events are complete when the join's clock is `clock`."""
        for shard, sent in enumerate(self.sent):
            word: EndOfPartition | Heartbeat
            if clock == END_OF_TIME:
                word = EndOfPartition(self._name, self._number, self._settings.shards, sent, self.greatest)
            else:
                settled = self._settled(clock)
                word = Heartbeat(
                    self._name, self._number, self._settings.shards, sent, settled, self.greatest
                )
            yield shard_key(shard), word.pack()

    def mark(self, marker: StateMarker, clock: int) -> Iterator[Packet]:
        """Send a marker of an export to every shard, behind earlier packets, with a sequence number."""
        settled = NO_TIME if clock == NO_TIME else self._settled(clock)
        for shard, sent in enumerate(self.sent):
            passed = replace(
                marker, source=self._name, partition=self._number, partitions=self._settings.shards,
                sequence=sent, settled=settled, high_water=self.greatest,
            )  # fmt: skip
            yield shard_key(shard), passed.pack()
            self.sent[shard] += 1

    def _settled(self, clock: int) -> int:
        """Return the time up to which events are complete: later events are at least clock - output_delay."""
        return max(clock - self._delay, NO_TIME + 1)
