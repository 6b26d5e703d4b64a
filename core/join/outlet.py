"""What a shard of the join sends on: joined events, and how far they are settled.

To the shards of the evaluators a shard of the join is a partition of its own, whose packets are numbered for
each of them.
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
"""A record for a shard of the evaluators: (key, bytes)."""


class Outlet:
    """The way from one shard of the join to all shards of the evaluators.

    sent      packets to each shard so far
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
        """Send pairs, row by row: events with the times of their labels."""
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
        """Tell every shard up to where joined events are settled, when the join stands at `clock`."""
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
        """Send a marker of an export to every shard, behind what was sent before; it takes a number."""
        settled = NO_TIME if clock == NO_TIME else self._settled(clock)
        for shard, sent in enumerate(self.sent):
            passed = replace(
                marker, source=self._name, partition=self._number, partitions=self._settings.shards,
                sequence=sent, settled=settled, high_water=self.greatest,
            )  # fmt: skip
            yield shard_key(shard), passed.pack()
            self.sent[shard] += 1

    def _settled(self, clock: int) -> int:
        """Return up to where events are settled: one may be `output_delay` earlier than the clock."""
        return max(clock - self._delay, NO_TIME + 1)
