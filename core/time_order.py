"""The total sort of a bounded input by time (ARCHITECTURE, "Order, lateness").

By (time, id, the record's canonical bytes), and never by where an event came from: the order is the same
however a stream was cut into files and packets.
"""

from __future__ import annotations

import struct

import numpy as np

from .errors import InputError
from .events import EventBatch, TextColumn


def in_time_order(batches: list[EventBatch]) -> EventBatch:
    """Put the events of many batches into one, sorted by (time, id, the record's canonical bytes)."""
    whole = _concat(batches)
    if whole.times is None:
        raise InputError("order 'time' needs events with times; name the column with --time")
    order = np.argsort(whole.times, kind="stable")
    times = whole.times[order]
    ties = np.flatnonzero(np.diff(times) == 0)
    if len(ties):
        ids = None if whole.ids is None else whole.ids.encoded()
        starts = ties[np.diff(ties, prepend=-2) > 1]
        ends = ties[np.diff(ties, append=ties[-1] + 2) > 1] + 2
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            rows = order[start:end].tolist()
            rows.sort(key=lambda row: ((ids[row] if ids else None) or b"", _canonical_bytes(whole, row)))
            order[start:end] = rows
    return whole.take(order)


def _canonical_bytes(batch: EventBatch, row: int) -> bytes:
    """Return the bytes that order two records of one time and id: each field with its length before it."""
    texts = [batch.models[row]]
    texts += [column[row] for column in (batch.label_classes, batch.predicted) if column is not None]
    texts += [column[row] for _, column in batch.slices]
    weight = 1.0 if batch.weights is None else float(batch.weights[row])
    parts = [struct.pack("<dbd", batch.scores[row], batch.labels[row], weight)]
    for text in texts:
        data = b"" if text is None else text.encode("utf-8", "surrogatepass")
        parts.append(struct.pack("<i", -1 if text is None else len(data)) + data)
    return b"".join([parts[1], parts[0], *parts[2:]])


def _concat(batches: list[EventBatch]) -> EventBatch:
    """Put batches of one shape one after another."""
    first = batches[0]
    if len(batches) == 1:
        return first

    def texts(columns: list[TextColumn]) -> TextColumn:
        index: dict[str, int] = {}
        codes = []
        for column in columns:
            table = [index.setdefault(value, len(index)) for value in column.values]
            codes.append(np.array([*table, -1], np.int32)[column.codes])
        return TextColumn(np.concatenate(codes), tuple(index))

    def optional(name: str) -> TextColumn | None:
        if getattr(first, name) is None:
            return None
        return texts([getattr(batch, name) for batch in batches])

    ids = [batch.ids for batch in batches if batch.ids is not None]
    times = [batch.times for batch in batches if batch.times is not None]
    weights = [batch.weights for batch in batches if batch.weights is not None]
    return EventBatch(
        models=texts([batch.models for batch in batches]),
        scores=np.concatenate([batch.scores for batch in batches]),
        labels=np.concatenate([batch.labels for batch in batches]),
        times=np.concatenate(times) if times else None,
        ids=type(ids[0])(np.concatenate([c.lengths for c in ids]), b"".join(c.data for c in ids))
        if ids
        else None,
        weights=np.concatenate(weights) if weights else None,
        label_classes=optional("label_classes"),
        predicted=optional("predicted"),
        slices=tuple(
            (name, texts([dict(batch.slices)[name] for batch in batches])) for name, _ in first.slices
        ),
        source=first.source,
    )
