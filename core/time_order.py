"""The total sort of a bounded input by time (ARCHITECTURE, "Order, lateness").

By (time, id, a hash of the record's canonical bytes), and never by where an event came from: the order is
the same however a stream was cut into files and packets. Of equal records each has its number in the hash;
which of them is which makes no difference.

Why a hash: ordered by their bytes, events that share a time would stand by label and score, and a window
that ends among them would hold one class. (60,000 events of three dates and one decimal, whose AUC is .83
throughout: windows of 5,000 said .45 to .94 so, and say .81 to .85 by the hash.)
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter

import numpy as np

from .errors import InputError
from .events import EventBatch


def in_time_order(batches: list[EventBatch]) -> tuple[EventBatch, int]:
    """Put the events of many batches into one, sorted.

    Returns with it how many events share time, id and model with another: nothing in the input says in which
    order they came.
    """
    whole = EventBatch.concat(batches)
    if whole.times is None:
        raise InputError("order 'time' needs events with times; name the column with --time")
    order = np.argsort(whole.times, kind="stable")
    ties = np.flatnonzero(np.diff(whole.times[order]) == 0)
    if not len(ties):
        return whole.take(order), 0
    ids = None if whole.ids is None else whole.ids.encoded()
    starts = ties[np.diff(ties, prepend=-2) > 1]
    ends = ties[np.diff(ties, append=ties[-1] + 2) > 1] + 2
    tied = 0
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        rows = order[start:end].tolist()
        id_of = {row: (ids[row] if ids else None) or b"" for row in rows}
        seen: Counter[tuple[bytes, bytes]] = Counter()
        keys = {}
        for row in rows:
            record = id_of[row], _canonical_bytes(whole, row)
            keys[row] = id_of[row], _digest(record[1], seen[record])
            seen[record] += 1
        order[start:end] = sorted(rows, key=keys.__getitem__)
        of_one = Counter((id_of[row], int(whole.models.codes[row])) for row in rows)
        tied += sum(count for count in of_one.values() if count > 1)
    return whole.take(order), tied


def _digest(record: bytes, number: int) -> bytes:
    return hashlib.blake2b(number.to_bytes(8, "little") + record, digest_size=16).digest()


def _canonical_bytes(batch: EventBatch, row: int) -> bytes:
    """Return what a record is, in bytes: each field with its length before it."""
    texts = [batch.models[row]]
    texts += [column[row] for column in (batch.label_classes, batch.predicted) if column is not None]
    texts += [column[row] for _, column in batch.slices]
    weight = 1.0 if batch.weights is None else float(batch.weights[row])
    parts = [struct.pack("<dbd", batch.scores[row], batch.labels[row], weight)]
    for text in texts:
        data = b"" if text is None else text.encode("utf-8", "surrogatepass")
        parts.append(struct.pack("<i", -1 if text is None else len(data)) + data)
    return b"".join([parts[1], parts[0], *parts[2:]])
