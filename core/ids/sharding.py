"""Which shard a model or an id belongs to, and the packets of a partition for every shard.

A model's shard is the same in every version: the first 8 bytes of BLAKE2b(digest size 8) of its UTF-8, read
as a little-endian integer, modulo the number of shards. A few models may have a shard of their own
(`Shards`). The shard of an id is its `hash64_of_ids` modulo the number of shards. Ids need this faster hash,
since each record has one to be hashed. Python's own `hash` is not used: it differs between processes.

Invariant
    For every shard, the packets of a partition are numbered from 0 without a gap, and the record of the
    partition's end holds their number. So a machine can sort the packets, however a runner delivers them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..arrays import Int32Array, Int64Array
from ..events.batch import EventBatch, PredictionBatch
from ..events.columns import TextColumn
from ..events.records import Batch, EndOfPartition, Heartbeat, StateMarker
from ..events.times import NO_TIME
from ..events.wire import PacketHead
from ..settings.against import Against
from ..settings.table import Shards
from .index import hash64_of_ids


# some 40 MB; the hash of a model beyond these is computed again, in a microsecond
@lru_cache(maxsize=1 << 18)
def _hash(model: str) -> int:
    digest = hashlib.blake2b(model.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def shard_of(models: Sequence[str], shards: int) -> Int64Array:
    """Return the shard of every model, int64[len(models)] in [0, shards).

    >>> shard_of(("churn", "fraud"), 64).tolist()
    [33, 57]
    >>> shard_of(("churn", "fraud"), Shards(64, own=["fraud"])).tolist()
    [33, 64]
    """
    shards = Shards.of(shards)
    shared, own = shards.shared, {model: shards.shared + place for place, model in enumerate(shards.own)}
    found = (own[model] if model in own else _hash(model) % shared for model in models)
    return np.fromiter(found, np.int64, len(models))


def shard_key(shard: int) -> str:
    """Return the Beam key of a shard. The key never changes in a new version: the runner finds state by key.

    >>> shard_key(7)
    'shard-007'
    """
    return f"shard-{shard:03d}"


def number_of(key: str) -> int:
    """Return the shard that a key names.

    >>> number_of("shard-007")
    7
    """
    return int(key.rpartition("-")[2])


def split_by_shard(batch: EventBatch, shards: int) -> Iterator[tuple[int, EventBatch]]:
    """Yield (shard, its events, model after model) for every shard that has events, by rising shard.

    The events of a model keep their order and are contiguous, so that evaluators need not gather them. One
    radix sort, then cuts: O(n) in events. Each part's dictionaries hold only the texts that the part uses.
    The source is the batch's.
    """
    if not len(batch):
        return
    column = batch.models
    if len(set(column.values)) < len(column.values):  # a model under two codes would be cut into two parts
        column = TextColumn.of(column.to_list())
    counts = np.bincount(column.codes, minlength=len(column.values))
    used = np.flatnonzero(counts)
    of_model = shard_of([column.values[code] for code in used.tolist()], shards)
    by_shard = np.argsort(of_model, kind="stable")
    used, of_model = used[by_shard], of_model[by_shard]
    names = [column.values[code] for code in used.tolist()]
    rank = np.zeros(len(column.values), np.int32)
    rank[used] = np.arange(len(used))
    ranks = rank[column.codes]
    if len(used) > 1:
        order = _radix_order(ranks, len(used))
        ranks = ranks[order]
        batch = batch.take(order, models=TextColumn(ranks, tuple(names)))
    ends = np.cumsum(counts[used])
    firsts = np.flatnonzero(np.diff(of_model, prepend=-1)).tolist()
    start = 0
    for first, last in zip(firsts, [*firsts[1:], len(used)], strict=True):
        end = int(ends[last - 1])
        models = TextColumn(ranks[start:end] - first, tuple(names[first:last]))
        yield int(of_model[first]), batch.part(start, end, models=models)
        start = end


def split_for_comparisons(
    batch: EventBatch, against: Against, shards: int
) -> Iterator[tuple[int, EventBatch]]:
    """Yield (shard, its events, in their order) for every shard in [0, shards) that compares models.

    A model is in one shard, by its hash. The events of the champion go to every shard. If a record has the
    scores of several models, all models whose names are equal before the column are in one shard.
    """
    if not len(batch):
        return
    everywhere = shards
    of_value = np.empty(len(batch.models.values), np.int64)
    for code, model in enumerate(batch.models.values):
        stem, champion = against.champion_of(model)
        if against.columns:
            of_value[code] = _hash(stem) % shards
        else:
            of_value[code] = everywhere if model == champion else _hash(model) % shards
    of_event = of_value[batch.models.codes]
    for shard in range(shards):
        rows = np.flatnonzero((of_event == shard) | (of_event == everywhere))
        if len(rows):
            yield shard, batch.take(rows)


def split_records(batch: Batch, shards: int) -> Iterator[tuple[int, Batch]]:
    """Yield (shard, its records): events are split by their models, predictions and labels by their ids."""
    if isinstance(batch, EventBatch):
        yield from split_by_shard(batch, shards)
        if isinstance(shards, Shards) and shards.against is not None:
            first = int(shards) - shards.comparing
            for shard, part in split_for_comparisons(batch, shards.against, shards.comparing):
                yield first + shard, part
        return
    ids = batch.events.ids if isinstance(batch, PredictionBatch) else batch.ids
    if ids is None or not len(ids):
        return
    of_id = (hash64_of_ids(ids) % np.uint64(shards)).astype(np.int32)
    order = _radix_order(of_id, shards)
    batch = batch.take(order)
    ends = np.cumsum(np.bincount(of_id, minlength=shards)).tolist()
    for shard, (start, end) in enumerate(pairwise([0, *ends])):
        if end > start:
            yield shard, batch.part(start, end)


def _radix_order(keys: Int32Array, kinds: int) -> Int64Array:
    """Return the stable order of whole numbers in [0, kinds); numpy sorts 16 bits at a time by radix."""
    low = np.argsort(keys.astype(np.uint16), kind="stable")
    if kinds <= 1 << 16:
        return low
    return low[np.argsort((keys[low] >> 16).astype(np.uint16), kind="stable")]


Packet = tuple[str, bytes]
"""A packed record for a shard: (key of the shard, bytes)."""


class Cut(NamedTuple):
    """A request for the states of all shards after a certain record; see `StateMarker`.

    id, folder  the id and the folder of the export
    stops       whether the input stops at the cut: no record follows, but the input does not count as ended
    """

    id: str
    folder: str
    stops: bool = True


class Packets:
    """Numbers the packets of one partition for every shard.

    shards  a number, or `Shards`
    sent    the number of packets sent to each shard so far; after a checkpoint, a reader continues these
            numbers
    """

    def __init__(
        self, source: str, partition: int, partitions: int, shards: int, sent: Sequence[int] | None = None
    ) -> None:
        self._of = source, partition, partitions
        self._shards = shards
        self.sent = [0] * shards if sent is None else [*sent]

    def split(self, batch: Batch, high_water: int) -> Iterator[Packet]:
        """Yield the packets of a batch; `high_water` as in `PacketHead`."""
        for shard, part in split_records(batch, self._shards):
            yield shard_key(shard), part.pack(PacketHead(self._of[1], self.sent[shard], high_water))
            self.sent[shard] += 1

    def heartbeats(self, settled: int, high_water: int, source: str = "") -> Iterator[Packet]:
        """Yield a heartbeat for every shard: the time up to which the partition is settled.

        source  the name that the heartbeat says; "" = that of the partition. See `ADDED`.
        """
        name, partition, partitions = self._of
        for shard, sent in enumerate(self.sent):
            word = Heartbeat(source or name, partition, partitions, sent, settled, high_water)
            yield shard_key(shard), word.pack()

    def markers(
        self, cut: Cut, position: object, settled: int = NO_TIME, high_water: int = NO_TIME
    ) -> Iterator[Packet]:
        """Yield a marker for every shard, which requests the state of the shard after the packets so far."""
        where = json.dumps(position)
        return self.mark(StateMarker(*self._of, 0, cut.id, cut.folder, where, cut.stops, settled, high_water))

    def mark(self, marker: StateMarker) -> Iterator[Packet]:
        """Yield a marker for every shard, as a packet of this partition behind the packets so far."""
        source, partition, partitions = self._of
        for shard, sent in enumerate(self.sent):
            own = replace(marker, source=source, partition=partition, partitions=partitions, sequence=sent)
            yield shard_key(shard), own.pack()
            self.sent[shard] += 1

    def ends(self, high_water: int) -> Iterator[Packet]:
        """Yield the record of the partition's end for every shard."""
        for shard, sent in enumerate(self.sent):
            yield shard_key(shard), EndOfPartition(*self._of, sent, high_water).pack()
