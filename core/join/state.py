"""A label join as bytes, for a restart on any machine.

Wire form, version 1, little-endian: a frame (encoding/fields.py) with magic "RSJN"; payload: settings (text),
progress (text, JSON), the matcher's state, the rows of waiting predictions and of labels (batches without
the ids and times, which the matcher holds), the deduplicator's state, predictions and labels that wait for
the clock (u32 count, batches). Texts and bytes are preceded by their length, u32 or u64.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..encoding.fields import Reader, framed, packed_bytes, packed_text, unframed
from ..encoding.json import read_json, read_object, reading, whole
from ..events.batch import EventBatch, LabelRows
from ..process.console import lines_text
from ..shard.partitions import SourcePartitions, clock_in_words
from .matching import LabelMatcher

MAGIC = b"RSJN"
VERSION = 1


@dataclass(frozen=True, eq=False)
class JoinState:
    """Everything on which the later results of a join depend.

    predictions, labels  the matcher's rows in the matcher's order, without ids and times; None: no rows
    seen                 number of records so far, and the total bytes of their packets
    """

    clock: int
    greatest: int
    greatest_joined: int
    sent: Sequence[int]
    sources: dict[str, Any] | None
    matcher: bytes
    predictions: EventBatch | None
    labels: LabelRows | None
    coming_predictions: Sequence[bytes]
    coming_labels: Sequence[bytes]
    seen: tuple[int, int]
    deduplicator: bytes = b""

    def pack(self, meaning: str) -> bytes:
        """Return the state as bytes."""
        progress = [self.clock, self.greatest, self.greatest_joined, list(self.sent), self.sources, self.seen]
        predictions = b"" if self.predictions is None else self.predictions.pack()
        labels = b"" if self.labels is None else self.labels.pack()
        parts = [packed_text(meaning), packed_text(json.dumps(progress))]
        parts += map(packed_bytes, (self.matcher, predictions, labels, self.deduplicator))
        for packets in (self.coming_predictions, self.coming_labels):
            parts += [struct.pack("<I", len(packets)), *map(packed_bytes, packets)]
        return framed(MAGIC, VERSION, b"".join(parts))

    @classmethod
    def unpack(cls, data: bytes) -> tuple[JoinState, str]:
        """Read the bytes; return the state and its settings as text. Raises a `WireError` for other bytes."""
        reader = Reader(unframed(data, MAGIC, VERSION, "the state of a label join"))
        with reading("the state of a label join"):
            meaning = reader.text()
            read_object(meaning, "the settings of a label join")
            progress = read_json(reader.text(), "the progress of a label join")
            *times, sent, sources, seen = progress
            clock, greatest, greatest_joined = map(whole, times)
            if sources is not None:
                SourcePartitions.of_progress(sources)
            matcher, predictions, labels, deduplicator = (reader.sized() for _ in range(4))
            coming = [[reader.sized() for _ in range(reader.number("<I"))] for _ in range(2)]
            reader.end()
            state = cls(
                clock,
                greatest,
                greatest_joined,
                [whole(number, 0) for number in sent],
                sources,
                matcher,
                EventBatch.unpack(predictions) if predictions else None,
                LabelRows.unpack(labels) if labels else None,
                coming[0],
                coming[1],
                (whole(seen[0], 0), whole(seen[1], 0)),
                deduplicator,
            )
            return state, meaning


def describe_join(state: JoinState, meaning: str) -> str:
    """Describe the state of a join in words, for a user."""
    settings = read_object(meaning, "the settings of a label join")
    matcher = LabelMatcher.from_bytes(state.matcher)
    coming = len(state.coming_predictions) + len(state.coming_labels)
    return lines_text(
        [
            f"rocsteady label join, version {VERSION}",
            ", ".join(f"{name} {value}" for name, value in settings.items()),
            f"clock: {clock_in_words(state.clock)}",
            f"predictions that wait for a label: {matcher.waiting:,}",
            f"labels held for predictions that may come: {matcher.held:,}",
            f"packets that wait for the clock: {coming:,}",
        ]
    )
