"""The state of a shard in an export, and the records that wait for a cut to pass all partitions."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ..encoding.fields import Reader, framed, packed_text, unframed
from ..encoding.json import read_json, read_object, reading, text_of, whole
from ..events.records import StateMarker, unpack_record

STATE_MAGIC, WAITING_MAGIC = b"RSXS", b"RSXW"
VERSION = 1


@dataclass(frozen=True)
class ShardState:
    """The state of one shard of one step, as an export holds it: a file.

    id, folder  the id and the folder of the export
    step        the step of the shard: "evaluators" or "join"
    shard       the shard's number, and the number of shards
    positions   the position of each partition's reader: {partition: (source, position)}, in the reader's
                own form
    snapshot    the snapshot of the shard's machine

    Wire form: a frame (encoding/fields.py) with magic "RSXS"; payload: all fields but the snapshot (text,
    JSON), then the snapshot.
    """

    id: str
    folder: str
    step: str
    shard: int
    shards: int
    positions: dict[int, tuple[str, str]]
    snapshot: bytes

    def pack(self) -> bytes:
        """Return the wire form of the state."""
        head = {
            **vars(self),
            "positions": [[number, *said] for number, said in sorted(self.positions.items())],
        }
        del head["snapshot"]
        return framed(STATE_MAGIC, VERSION, packed_text(json.dumps(head)) + self.snapshot)

    @classmethod
    def unpack(cls, data: bytes) -> ShardState:
        """Read a state from its wire form. Raises a `WireError` for other bytes."""
        reader = Reader(unframed(data, STATE_MAGIC, VERSION, "the exported state of a shard"))
        with reading("the exported state of a shard"):
            head = read_object(reader.text(), "the exported state of a shard")
            positions = {
                whole(number, 0): (text_of(source), text_of(position))
                for number, source, position in head["positions"]
            }
            for _, position in positions.values():
                read_json(position, "the position of a reader")
            name, folder, step = (text_of(head[each]) for each in ("id", "folder", "step"))
            shards = whole(head["shards"], 1)
            shard = whole(head["shard"], 0, shards - 1)
            return cls(name, folder, step, shard, shards, positions, bytes(reader.rest()))


_PASSED_ON = "cut"


def cut_of(positions: dict[int, tuple[str, str]]) -> str:
    """Return a cut as text (JSON).

    The text has the positions of the markers in the input of the job, also if a step passed the markers on.

    The text is equal in all shards and steps of one cut.
    """
    said = {position for _, position in positions.values()}
    if len(said) == 1:
        passed = read_json(next(iter(said)), "the position of a reader")
        if isinstance(passed, dict) and _PASSED_ON in passed:
            return json.dumps(passed)
    return json.dumps({_PASSED_ON: [[number, *each] for number, each in sorted(positions.items())]})


@dataclass(frozen=True)
class WaitingState:
    """The content of an `ExportingMachine`'s bytes if any record waits, or if the machine awaits its state.

    records  for each record that waits: its partition, the number of packets before it, and its bytes
    """

    awaits: bool
    stopped: bool
    export: str
    markers: list[StateMarker]
    snapshot: bytes
    records: list[tuple[int, int, bytes]]

    @classmethod
    def unpack(cls, data: bytes) -> WaitingState:
        """Read the content from its wire form. Raises a `WireError` for other bytes."""
        reader = Reader(unframed(data, WAITING_MAGIC, VERSION, "the state of a shard in an export"))
        with reading("the state of a shard in an export"):
            head = read_object(reader.text(), "the state of a shard in an export")
            markers = [unpack_record(bytes.fromhex(marker)) for marker in head["markers"]]
            snapshot = reader.sized()
            records = [(*reader.numbers("<iq"), reader.sized()) for _ in range(reader.number("<I"))]
            reader.end()
            cut = [marker for marker in markers if isinstance(marker, StateMarker)]
            if len(cut) < len(markers):
                raise ValueError("a marker that is none")
            export = text_of(head["export"])
            return cls(bool(head["awaits"]), bool(head["stopped"]), export, cut, snapshot, records)
