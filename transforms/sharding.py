"""Which shard a model belongs to, and the split of a batch into shards.

A model's shard is fixed for ever: the first 8 bytes of BLAKE2b(digest size 8) of its UTF-8, read as a
little-endian integer, modulo the number of shards. Python's own `hash` differs between processes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from ..core.errors import ConfigError
from ..core.events import EventBatch, FloatArray, IdColumn, Int8Array, Int64Array, TextColumn


@lru_cache(maxsize=1 << 18)  # some 40 MB; more models than that are hashed anew, in a microsecond
def _hash(model: str) -> int:
    digest = hashlib.blake2b(model.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def shard_of(models: Sequence[str], shards: int) -> Int64Array:
    """Return the shard of every model, int64[len(models)] in [0, shards).

    >>> shard_of(("churn", "fraud"), 64).tolist()
    [33, 57]
    """
    if isinstance(shards, bool) or not isinstance(shards, int) or shards < 1:
        raise ConfigError(f"shards={shards!r}: give a whole number, 1 or more")
    return np.fromiter((_hash(model) % shards for model in models), np.int64, len(models))


def shard_key(shard: int) -> str:
    """Return the Beam key of a shard; it never changes, because state is found by it.

    >>> shard_key(7)
    'shard-007'
    """
    return f"shard-{shard:03d}"


def split_by_shard(batch: EventBatch, shards: int) -> Iterator[tuple[int, EventBatch]]:
    """Yield (shard, its events in their order) for every shard that has events, by rising shard.

    Sorts once and cuts: O(n log n) whatever the number of shards. Every dictionary holds only what its
    part uses. Source, partition, high water and sequence are those of the batch.
    """
    if not len(batch):
        return
    of_row = shard_of(batch.models.values, shards)[batch.models.codes]
    present = np.flatnonzero(np.bincount(of_row, minlength=1))
    if len(present) == 1:
        yield int(present[0]), batch
        return
    narrow = of_row.astype(np.uint16) if shards <= 1 << 16 else of_row  # uint16 is sorted by radix
    order = np.argsort(narrow, kind="stable")
    ordered = batch.take(order)
    offsets = None if ordered.ids is None else ordered.ids.offsets
    bounds = np.searchsorted(narrow[order], [*present.tolist(), shards], side="left")
    for shard, start, end in zip(present.tolist(), bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        yield shard, _cut(ordered, start, end, offsets)


def _cut(batch: EventBatch, start: int, end: int, offsets: Int64Array | None) -> EventBatch:
    rows = np.arange(start, end)

    def text(column: TextColumn | None) -> TextColumn | None:
        return None if column is None else column.take(rows)

    def numbers(column: FloatArray | None) -> FloatArray | None:
        return None if column is None else column[start:end]

    models = batch.models.take(rows)
    labels: Int8Array = batch.labels[start:end]
    ids = None
    if batch.ids is not None and offsets is not None:
        ids = IdColumn(batch.ids.lengths[start:end], batch.ids.data[offsets[start] : offsets[end]])
    return EventBatch(
        models=models,
        scores=batch.scores[start:end],
        labels=labels,
        times=None if batch.times is None else batch.times[start:end],
        ids=ids,
        weights=numbers(batch.weights),
        label_classes=text(batch.label_classes),
        predicted=text(batch.predicted),
        slices=tuple((name, column.take(rows)) for name, column in batch.slices),
        source=batch.source,
        partition=batch.partition,
        first_position=batch.first_position,
        high_water=batch.high_water,
        sequence=batch.sequence,
    )
