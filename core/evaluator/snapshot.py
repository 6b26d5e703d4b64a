"""Snapshots: the state of a shard (or of one evaluator) as bytes, for a restart on any machine.

A snapshot always holds a table of models. Nothing is pickled. Sorted scores and class masses are left out: to
rebuild them is faster than to read them. Other bytes raise a named error.

Wire form, version 1, little-endian
    magic "RSST", version u16, reserved u16, fingerprint 16 bytes, payload length u64, payload crc32 u32;
    payload: settings (u32 length, JSON), progress of the input (u32 length, JSON), held packets (u32
    count; partition i32, sequence i64, u32 length, bytes each), evaluators (u32 count; state.py),
    other parts of the table (u32 count; name as text, u64 length, bytes each).
The fingerprint is a hash of all settings that decide the meaning of the state: the settings that change
values, the slices, and the number of shards.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..encoding.fields import Reader, framed, packed_bytes, packed_text, unframed
from ..encoding.json import read_object, reading
from ..errors import CorruptBytesError, ForeignBytesError, OtherConfigurationError, check_settings
from ..events.times import END_OF_TIME, NO_TIME
from ..ids.deduplicator import Deduplicator
from ..process.console import lines_text, name_text
from ..settings.durations import duration_text
from ..settings.evaluator import EvaluatorSettings
from ..settings.table import DEDUPLICATOR, IDLE, OF_CLASSES, TableSettings
from ..shard.orders import order_of
from ..shard.partitions import clock_in_words
from .state import EvaluatorState, IdleState, read_evaluator, write_evaluator

if TYPE_CHECKING:
    from collections.abc import Sequence

MAGIC = b"RSST"
VERSION = 1
FINGERPRINT_BYTES = 16


class Packed(NamedTuple):
    """The wire forms of states without weights, and their number."""

    evaluators: int
    states: bytes


NOTHING_PACKED = Packed(0, b"")


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The content of a snapshot.

    settings   the settings of the table.
    progress   the table's progress in its input, as `EvaluatorTable` has it.
    held       packets that wait for earlier packets: (partition, sequence, packed batch).
    evaluators one state per (model, slice).
    beside     bytes of other parts of the table, by name.
    packed     the wire forms of more states, which come before those of `evaluators`; they serve only `pack`
    """

    settings: TableSettings
    progress: dict[str, Any]
    held: Sequence[tuple[int, int, bytes]]
    evaluators: Sequence[EvaluatorState]
    beside: dict[str, bytes] = field(default_factory=dict)
    packed: Packed = NOTHING_PACKED

    @classmethod
    def of_evaluator(cls, settings: EvaluatorSettings, state: EvaluatorState) -> Snapshot:
        """Return the snapshot of a table of one evaluator."""
        return cls(TableSettings(settings), {}, (), (state,))

    def one_evaluator(self, settings: EvaluatorSettings | None) -> tuple[EvaluatorSettings, EvaluatorState]:
        """Return the settings and the state of the only evaluator in the snapshot.

        Raises OtherConfigurationError if the snapshot has other settings, or if it is the snapshot of a
        shard.
        """
        if settings is not None:
            self.check(replace(self.settings, evaluator=settings))
        if len(self.evaluators) != 1 or self.held or self.progress or self.beside:
            raise OtherConfigurationError(
                f"the snapshot is of a shard, with {len(self.evaluators)} evaluators and {len(self.held)} "
                "packets that wait, not of one evaluator; read it as a table (EvaluatorTable.from_bytes)"
            )
        return settings or self.settings.evaluator, self.evaluators[0]

    def check(self, wanted: TableSettings) -> None:
        """Raise OtherConfigurationError unless the state was made for the settings `wanted`.

        The error names every difference.
        """
        here, there = (settings.meaning() for settings in (wanted, self.settings))
        check_settings(here, there)

    def pack(self) -> bytes:
        """Return the wire form of the snapshot."""
        parts = [packed_text(self.settings.to_json()), packed_text(json.dumps(self.progress))]
        parts.append(struct.pack("<I", len(self.held)))
        for partition, sequence, packet in self.held:
            parts += [struct.pack("<iqI", partition, sequence, len(packet)), packet]
        parts += [struct.pack("<I", self.packed.evaluators + len(self.evaluators)), self.packed.states]
        for state in self.evaluators:
            write_evaluator(state, parts)
        parts.append(struct.pack("<I", len(self.beside)))
        for name, content in sorted(self.beside.items()):
            parts += [packed_text(name), packed_bytes(content)]
        return framed(MAGIC, VERSION, b"".join(parts), self.settings.fingerprint())

    @classmethod
    def unpack(cls, data: bytes) -> Snapshot:
        """Read a snapshot from its wire form.

        For any other bytes, raises a `WireError` that says what was found instead.
        """
        if data[:4] != MAGIC[: len(data)]:
            raise ForeignBytesError(f"bytes that start with {bytes(data[:4])!r} are no rocsteady snapshot")
        payload = unframed(data, MAGIC, VERSION, "a snapshot", FINGERPRINT_BYTES)
        with reading("a snapshot"):
            snapshot = cls._read(Reader(payload))
        if snapshot.settings.fingerprint() != data[8 : 8 + FINGERPRINT_BYTES]:
            raise CorruptBytesError("a snapshot has a fingerprint that is not its own settings'")
        return snapshot

    @classmethod
    def _read(cls, reader: Reader) -> Snapshot:
        settings = TableSettings.from_json(reader.text())
        progress = read_object(reader.text(), "the progress of a snapshot")
        held = []
        for _ in range(reader.number("<I")):
            partition, sequence, size = reader.numbers("<iqI")
            held.append((partition, sequence, bytes(reader.read(size))))
        evaluators = [read_evaluator(reader) for _ in range(reader.number("<I"))]
        beside = {}
        for _ in range(reader.number("<I")):
            name = reader.text()
            beside[name] = reader.sized()
        reader.end()
        if beside.keys() != settings.kept:
            raise ValueError(f"it keeps {sorted(beside)}, and its settings say otherwise")
        if progress:
            with reading("the progress of a snapshot"):
                order_of(settings.evaluator.order).go_on_from(progress, ())
        return cls(settings, progress, held, evaluators, beside)


def describe(snapshot: Snapshot, models: Sequence[EvaluatorState] | None = None) -> str:
    """Describe a snapshot in words, for a person.

    models  an evaluator for each (model, slice); None for the evaluators of the snapshot, whose models have
            one score
    """
    models = snapshot.evaluators if models is None else models
    settings = snapshot.settings
    evaluator = settings.evaluator
    lines = [
        f"rocsteady snapshot, version {VERSION}, fingerprint {settings.fingerprint().hex()}",
        (
            f"window {evaluator.window}, a row every {evaluator.every}"
            f"{' events' * bool(evaluator.every.events)}, order {evaluator.order}, "
            f"cost {evaluator.cost}, priors {evaluator.priors}, threshold {evaluator.threshold:g} "
            f"(config {evaluator.config_hash()})"
        ),
        "shards: " + ("each model its own" if settings.shards is None else str(settings.shards)),
        "slices: " + ("; ".join(",".join(names) for names in settings.slices) or "none"),
    ]
    if evaluator.by_time and snapshot.progress:
        lines.append(f"clock: {clock_in_words(snapshot.progress['clock'])}")
        lines += _partition_lines(snapshot.progress)
    elif evaluator.order == "arrival":
        lines += _partition_lines(snapshot.progress)
    elif snapshot.progress:
        lines.append("input: " + ", ".join(f"{key} {value}" for key, value in snapshot.progress.items()))
    if snapshot.held:
        size = sum(len(packet) for _, _, packet in snapshot.held)
        lines.append(f"packets that wait for their turn: {len(snapshot.held)} ({size:,} bytes)")
    if settings.classes is not None:
        size = len(snapshot.beside[OF_CLASSES])
        lines.append(f"models with {len(settings.classes.names):,} classes: {size:,} bytes")
    held = sum(len(state.scores) for state in models)
    lines.append(f"evaluators: {len(models):,}, events held: {held:,}")
    for state in sorted(models, key=lambda state: (state.model, state.slice)):
        name = name_text(state.model) + (f" [{name_text(state.slice)}]" if state.slice else "")
        last = "" if state.greatest_time == NO_TIME else f", up to {clock_in_words(state.greatest_time)}"
        lines.append(
            f"  {name}: {len(state.scores):,} events held of {state.seq:,} applied, "
            f"{state.next_row:,} rows{last}"
        )
    if (ttl := settings.parts.get(IDLE)) is not None:
        left = len(IdleState.unpack(snapshot.beside[IDLE]).left)
        lines.append(f"left for their silence of {duration_text(ttl)}: {left:,}")
    if (horizon := settings.parts.get(DEDUPLICATOR)) is not None:
        remembered = len(Deduplicator.from_bytes(snapshot.beside[DEDUPLICATOR]))
        lines.append(f"ids remembered for {duration_text(horizon)}: {remembered:,}")
    return lines_text(lines)


def _partition_lines(progress: dict[str, Any]) -> list[str]:
    lines = []
    for number, source, received, _, packets, _, settled, *_ in progress.get("sources", {}).get("parts", ()):
        of = "" if packets is None else f" of {packets:,}"
        up_to = "" if settled in (NO_TIME, END_OF_TIME) else f", settled up to {clock_in_words(settled)}"
        lines.append(f"  partition {number}, {source}: {received:,}{of} packets{up_to}")
    return lines
