"""The checkpoint of a job that runs in one process: its machines, readers and counts at one moment.

Wire form: a frame (encoding/fields.py) with magic "RSCP". The payload has all fields but the machines (text,
JSON), the number of machines (u32), and the name (text) and the snapshot (u64 length, bytes) of each machine.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..encoding.fields import Reader, framed, packed_bytes, packed_text, unframed
from ..encoding.json import read_object, reading, text_of, whole
from ..process.console import lines_text

MAGIC = b"RSCP"
VERSION = 1

_WHAT = "a checkpoint"


class ReaderPosition(NamedTuple):
    """The position of a reader in its partition.

    name, origin       the name and the origin of the partition
    state              the reader's own state, as text
    model, model_name  the source of the names of models; an earlier record may have decided the source
    """

    name: str
    origin: str
    state: str
    model: str | None
    model_name: str | None

    @property
    def offset(self) -> int:
        """The offset of the next message, or the number of records read. Raises CorruptBytesError."""
        what = "the position of a reader"
        with reading(what):
            return whole(read_object(self.state, what)["next"], 0)

    @property
    def added(self) -> list[tuple[int, int]]:
        """The (number, offset) of each partition that the stream got later and that this reader reads, too.

        Raises CorruptBytesError.
        """
        what = "the position of a reader"
        with reading(what):
            added = read_object(self.state, what).get("added", [])
            return [(whole(number, 0), whole(offset, 0)) for number, offset, *_ in added]

    def in_words(self) -> str:
        """Return in words how far the reader has read. Raises CorruptBytesError."""
        added = (f", added partition {number} at {offset:,}" for number, offset in self.added)
        return f"{self.name}: at {self.offset:,}{''.join(added)}"


@dataclass(frozen=True)
class Checkpoint:
    """The state of a job after a number of records of each partition.

    rocsteady  the version that wrote the checkpoint
    time       when the checkpoint was written, RFC 3339
    settings   the settings that decide the job's outputs, by name, as JSON values
    readers    the positions of the readers, in the order of the partitions' numbers
    counted    what the job has counted, as JSON values
    machines   the snapshot of each state machine, by name
    ended      whether the job came to the end of its input, and all outputs are complete. Then there are no
               machines

    >>> checkpoint = Checkpoint("1.0", "2026-01-31T12:00:00Z", {}, (), {}, {"evaluators": b"RSST"})
    >>> Checkpoint.unpack(checkpoint.pack()) == checkpoint
    True
    """

    rocsteady: str
    time: str
    settings: Mapping[str, Any]
    readers: Sequence[ReaderPosition]
    counted: Mapping[str, Any]
    machines: Mapping[str, bytes]
    ended: bool = False

    def pack(self) -> bytes:
        """Return the wire form of the checkpoint. O(bytes of the machines)."""
        head = {name: value for name, value in vars(self).items() if name != "machines"}
        parts = [packed_text(json.dumps(head)), struct.pack("<I", len(self.machines))]
        for name, snapshot in self.machines.items():
            parts += [packed_text(name), packed_bytes(snapshot)]
        return framed(MAGIC, VERSION, b"".join(parts))

    @classmethod
    def unpack(cls, data: bytes) -> Checkpoint:
        """Read a checkpoint from its wire form. Raises a `WireError` for other bytes."""
        reader = Reader(unframed(data, MAGIC, VERSION, _WHAT))
        with reading(_WHAT):
            head = read_object(reader.text(), _WHAT)
            machines = {reader.text(): reader.sized() for _ in range(reader.number("<I"))}
            reader.end()
            readers = []
            for name, origin, state, *models in head["readers"]:
                model, model_name = (None if each is None else text_of(each) for each in models)
                readers.append(
                    ReaderPosition(text_of(name), text_of(origin), text_of(state), model, model_name)
                )
            settings, counted = dict(head["settings"]), dict(head["counted"])
            return cls(
                text_of(head["rocsteady"]), text_of(head["time"]), settings, tuple(readers), counted,
                machines, bool(head["ended"]),
            )  # fmt: skip

    @property
    def events_read(self) -> int:
        """The number of records that the job had read."""
        return whole(self.counted.get("counts", {}).get("events_read", 0), 0)

    def describe(self) -> str:
        """Describe the checkpoint in words, for a person."""
        how = "of a job that came to the end of its input" if self.ended else "of a job that goes on"
        return lines_text(
            [
                f"rocsteady checkpoint, version {VERSION}, written {self.time} by rocsteady {self.rocsteady}",
                f"{how}, after {self.events_read:,} events",
                *(f"  {position.in_words()}" for position in self.readers),
                *(f"  {name}: {len(snapshot):,} bytes" for name, snapshot in self.machines.items()),
            ]
        )
