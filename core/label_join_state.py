"""A label join as bytes, for a restart on any machine.

Wire form, version 1, little-endian: magic "RSJN", version u16, reserved u16, fingerprint 16 bytes, payload
length u64, crc32 of it u32; payload: settings (text), progress (text, JSON), the matcher's state, what is
kept beside it of waiting predictions and of labels (batches without ids and times: the matcher has these),
predictions and labels that wait for the clock (u32 count, batches). Texts and bytes stand behind their
length, u32 or u64.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import CorruptBytesError, ForeignBytesError, FutureVersionError, TruncatedBytesError
from .evaluator_state import Reader, packed_text
from .events import EventBatch
from .join_batches import LabelRows

MAGIC = b"RSJN"
VERSION = 1
_HEAD = struct.Struct("<4sHH16sQI")


@dataclass(frozen=True, eq=False)
class JoinState:
    """What a join's future depends on.

    predictions, labels  the rows beside what the matcher holds, in its order; no ids, no times; None = none
    seen                 records that came, and the bytes of their packets
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

    def pack(self, fingerprint: bytes, meaning: str) -> bytes:
        """Return the bytes."""
        progress = [self.clock, self.greatest, self.greatest_joined, list(self.sent), self.sources, self.seen]
        predictions = b"" if self.predictions is None else self.predictions.pack()
        labels = b"" if self.labels is None else self.labels.pack()
        payload = b"".join(
            [
                packed_text(meaning),
                packed_text(json.dumps(progress)),
                *(_sized(part) for part in (self.matcher, predictions, labels)),
                *_counted(self.coming_predictions),
                *_counted(self.coming_labels),
            ]
        )
        return _HEAD.pack(MAGIC, VERSION, 0, fingerprint, len(payload), zlib.crc32(payload)) + payload

    @classmethod
    def unpack(cls, data: bytes) -> tuple[JoinState, str]:
        """Read the bytes; return with it the settings in words. Raises a `WireError` for any others."""
        if data[:4] != MAGIC:
            raise ForeignBytesError(f"bytes that start with {bytes(data[:4])!r} are no state of a label join")
        if len(data) < _HEAD.size:
            raise TruncatedBytesError(
                f"the state of a label join ends after {len(data)} bytes, inside its head"
            )
        _, version, reserved, _, size, crc = _HEAD.unpack_from(data)
        if not 0 < version <= VERSION:
            raise FutureVersionError(
                f"the state of a label join of version {version}: this rocsteady reads up to {VERSION}; "
                "upgrade it"
            )
        payload = memoryview(data)[_HEAD.size :]
        if len(payload) < size:
            raise TruncatedBytesError(
                f"the state of a label join ends after {len(data)} of {_HEAD.size + size} bytes"
            )
        if reserved or len(payload) > size or zlib.crc32(payload) != crc:
            raise CorruptBytesError("the state of a label join fails its checksum; it was damaged")
        try:
            return cls._read(Reader(payload))
        except (struct.error, ValueError, KeyError, TypeError, OverflowError, IndexError) as damage:
            raise CorruptBytesError(f"the state of a label join contradicts itself: {damage}") from damage

    @classmethod
    def _read(cls, reader: Reader) -> tuple[JoinState, str]:
        meaning = reader.text()
        clock, greatest, greatest_joined, sent, sources, seen = json.loads(reader.text())
        matcher, predictions, labels = (bytes(reader.take(reader.number("<Q"))) for _ in range(3))
        coming = [
            [bytes(reader.take(reader.number("<Q"))) for _ in range(reader.number("<I"))] for _ in range(2)
        ]
        reader.end()
        state = cls(
            int(clock),
            int(greatest),
            int(greatest_joined),
            [int(number) for number in sent],
            sources,
            matcher,
            EventBatch.unpack(predictions) if predictions else None,
            LabelRows.unpack(labels) if labels else None,
            coming[0],
            coming[1],
            (int(seen[0]), int(seen[1])),
        )
        return state, meaning


def _sized(part: bytes) -> bytes:
    return struct.pack("<Q", len(part)) + part


def _counted(parts: Sequence[bytes]) -> Iterable[bytes]:
    return [struct.pack("<I", len(parts)), *map(_sized, parts)]
