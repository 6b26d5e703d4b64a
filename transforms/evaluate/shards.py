"""The inner step of every evaluation of a stream: takes sharded packets, and gives rows.

Packets are records of `EvaluatorTable` (`core.events.records`): packed `EventBatch`es, and records that end a
partition or the input. The key is a shard. The number of shards is fixed for the life of a state: with
another number, keys would find empty state. The fingerprint of a snapshot turns this case into an error.

The coders of `Rows`, `MeasureRow` and `ClassRow` are registered here and nowhere else.
"""

from __future__ import annotations

import json
import struct
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import apache_beam as beam
import numpy as np
from apache_beam.coders import Coder, RowCoder, registry

from ...core.encoding.fields import Reader
from ...core.encoding.json import read_json, reading, whole
from ...core.errors import ConfigError, CorruptBytesError
from ...core.events.rejected import Rejected
from ...core.ids.sharding import number_of
from ...core.join.join_settings import JoinSettings
from ...core.rows.class_columns import ClassColumns, ClassMeans
from ...core.rows.class_rows import ClassRow
from ...core.rows.columns import INTEGER_COLUMNS, NUMBER_COLUMNS
from ...core.rows.curves import RocCurve, WindowCurve
from ...core.rows.measure_table import MEASURES
from ...core.rows.records import MeasureRow
from ...core.rows.rows import Rows
from ...core.settings.table import TableSettings
from ...core.shard.machine import MachineFactory, Pane
from ...core.shard.protocol import DEFAULT_CACHE_BYTES
from ...core.state.compile_ahead import warm_up
from ...core.state.export import CutMachine, ExportingMachine
from ...core.table.table import EvaluatorTable
from ..beam.machine import Brings, MachineOutputs, RunStateMachine
from ..events.dead_letters import RejectedLetters
from ..events.fields import EventFields

_Columns = tuple[tuple[str, str, int | None], ...]
"""Names of arrays, with their types and widths; None = one dimension."""


class RowsCoder(Coder):
    """The coder of `Rows` between stages of a pipeline: a JSON head, the rows' arrays, the curves' arrays."""

    _HEAD = struct.Struct("<II")
    _CURVE: _Columns = (
        ("threshold", "<f8", None), ("tp", "<f8", None), ("fp", "<f8", None), ("on_hull", "?", None),
        ("block_score", "<f8", None),
    )  # fmt: skip

    def encode(self, rows: Rows) -> bytes:
        """Return the bytes of many rows."""
        curves = [
            [key, curve.events, curve.positives, curve.negatives, len(curve), class_]
            for *key, curve, class_ in rows.curves
        ]
        failures = None if rows.failures is None else rows.failures.tolist()
        classes = rows.classes
        of_classes = None if classes is None else [classes.names, classes.codes.tolist(), [*classes.means]]
        content = [rows.keys, rows.config, curves, failures, rows.settled, of_classes]
        content += [rows.columns] if rows.columns else []
        head = json.dumps(content).encode()
        parts = [self._HEAD.pack(len(head), len(rows)), head, *_columns_of(rows, _arrays(rows.columns))]
        for curve in rows.curves:
            parts += _columns_of(curve.curve, self._CURVE)
        return b"".join(parts)

    @reading("rows between two stages")
    def decode(self, encoded: bytes) -> Rows:
        """Return the rows that `encode` was given."""
        reader = Reader(memoryview(encoded))
        length, n = reader.numbers(self._HEAD.format)
        keys, config, heads, failures, settled, of_classes, *more = read_json(
            bytes(reader.read(length)), "rows between two stages"
        )
        (columns,) = more or [()]
        arrays = _read_columns(reader, _arrays(columns), n)
        curves = []
        for (model, slice_, pane, *rest), events, positives, negatives, points, class_ in heads:
            found = _read_columns(reader, self._CURVE, points)
            curve = RocCurve(**found, events=events, positives=positives, negatives=negatives)
            curves.append(WindowCurve._make((model, slice_, pane and tuple(pane), *rest, curve, class_)))
        if reader.at != len(encoded):
            raise CorruptBytesError(
                f"{len(encoded)} bytes between two stages are not {n} rows; the workers of a job must "
                "all run one version of rocsteady"
            )
        return Rows(
            keys=tuple((model, slice_) for model, slice_ in keys),
            config=config,
            curves=tuple(curves),
            failures=None if failures is None else np.array(failures, np.int64),
            settled=None if settled is None else _whole_numbers(settled),
            classes=None if of_classes is None else _classes_of(*of_classes),
            columns=tuple(columns),
            **arrays,
        )

    def is_deterministic(self) -> bool:
        """Equal rows have equal bytes."""
        return True

    def to_type_hint(self) -> type[Rows]:
        """Return the type that the coder encodes."""
        return Rows


def _classes_of(names: Any, codes: Any, means: Any) -> ClassColumns:
    """Return the classes of rows from their values in JSON, in which tuples have become lists."""
    found = [
        ClassMeans._make(tuple(value) if isinstance(value, list) else value for value in each)
        for each in means
    ]
    return ClassColumns(tuple(names), np.array(codes, np.int32), found)


def _whole_numbers(values: Any) -> tuple[int, int, int, int]:
    shard, shards, since, until = map(whole, values)
    return shard, shards, since, until


def _arrays(columns: Sequence[str]) -> _Columns:
    """Return the arrays of rows with columns of measures with values."""
    more = len(columns)
    return (
        ("integers", "<i8", len(INTEGER_COLUMNS)), ("numbers", "<f8", len(NUMBER_COLUMNS) + more),
        ("key_codes", "<i4", None), ("reasons", "i1", len(MEASURES) + more), ("drift", "i1", None),
    )  # fmt: skip


def _columns_of(record: Any, columns: _Columns) -> Iterator[bytes]:
    return (np.ascontiguousarray(getattr(record, name), dtype).tobytes() for name, dtype, _ in columns)


def _read_columns(reader: Reader, columns: _Columns, n: int) -> dict[str, Any]:
    return {
        name: reader.array(dtype, n) if width is None else reader.array(dtype, n * width).reshape(n, width)
        for name, dtype, width in columns
    }


registry.register_coder(Rows, RowsCoder)
registry.register_coder(MeasureRow, RowCoder)
registry.register_coder(ClassRow, RowCoder)


Settings = TypeVar("Settings")
Output = TypeVar("Output")


@dataclass(frozen=True)
class ExportingFactory(Generic[Settings, Output]):
    """Makes machines that export their states.

    With `awaits`, each machine waits for the state of another job.
    """

    settings: Settings
    awaits: bool = False

    @abstractmethod
    def made(self, pane: Pane | None, key: str) -> CutMachine[Output]:
        """Return a machine without any records."""

    @abstractmethod
    def loaded(self, pane: Pane | None, key: str, snapshot: bytes) -> CutMachine[Output]:
        """Return the machine of a snapshot.

        Raise OtherConfigurationError for other settings, a `WireError` for damaged bytes.
        """

    @abstractmethod
    def shard(self, key: str) -> tuple[int, int]:
        """Return a shard's number, and how many shards there are."""

    def _parts(self, pane: Pane | None, key: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
        return partial(self.loaded, pane, key), partial(self.shard, key)

    def new(self, pane: Pane | None, key: str) -> ExportingMachine[Output]:
        """Return an empty machine."""
        return ExportingMachine(self.made(pane, key), *self._parts(pane, key), awaits=self.awaits)

    def load(self, snapshot: bytes, pane: Pane | None, key: str) -> ExportingMachine[Output]:
        """Return the machine of a snapshot.

        Raise OtherConfigurationError for other settings, a `WireError` for damaged bytes.
        """
        return ExportingMachine.from_bytes(snapshot, partial(self.made, pane, key), *self._parts(pane, key))


@dataclass(frozen=True)
class TableFactory(ExportingFactory[TableSettings, Rows | Rejected]):
    """Makes the evaluator tables of a job.

    With `tells`, rows say up to which grid point they are complete.
    """

    tells: bool = False

    def _tells(self, key: str) -> tuple[int, int] | None:
        return self.shard(key) if self.tells else None

    def warm_up(self) -> None:
        """Compile the kernels that these settings need, or load them from their folder."""
        warm_up(self.settings)

    def made(self, pane: Pane | None, key: str) -> EvaluatorTable:
        """Return an empty table."""
        return EvaluatorTable(self.settings, pane, tells=self._tells(key))

    def loaded(self, pane: Pane | None, key: str, snapshot: bytes) -> EvaluatorTable:
        """Return the table of a snapshot."""
        return EvaluatorTable.from_bytes(snapshot, self.settings, pane, tells=self._tells(key))

    def shard(self, key: str) -> tuple[int, int]:
        """Return the number of a table's shard; raise ConfigError if models are not dealt to shards."""
        if self.settings.shards is None:
            raise ConfigError(
                "the state of models that are each their own shard cannot be exported; give a number of "
                "shards"
            )
        return number_of(key), self.settings.shards


class EvaluateShards(beam.PTransform[beam.PCollection[tuple[str, bytes]], MachineOutputs]):
    """Evaluates packets (shard, record) with one table of evaluators for each shard and Beam window.

    Outputs are `Rows`; `letters` are the late events and the duplicates.

    settings     the settings of evaluators, the slices, and the number of shards of the packets.
    fields       the user's names of an event's columns.
    cache_bytes  bytes of live tables that a process keeps between bundles.
    lateness     see `RunStateMachine`.
    label_time   the user's name of a label's time, if labels have an input of their own.
    awaits       whether every shard begins with the state that a `StateImport` brings.
    brings       see `RunStateMachine`
    tells        whether rows say up to which grid point they are complete (`EvaluatorTable`)
    """

    factory: ClassVar[Callable[..., MachineFactory[Any]]] = TableFactory
    output_type: ClassVar[Any] = Rows

    def __init__(
        self,
        settings: TableSettings | JoinSettings,
        fields: EventFields,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        lateness: int | None = None,
        *,
        label_time: str | None = None,
        awaits: bool = False,
        brings: Brings | None = None,
        tells: bool = False,
    ) -> None:
        super().__init__()
        letters = RejectedLetters(fields, label_time)
        factory = type(self).factory(settings, awaits, **({"tells": True} if tells else {}))
        self._machines = RunStateMachine(factory, self.output_type, cache_bytes, letters, lateness, brings)

    def expand(self, packets: beam.PCollection[tuple[str, bytes]]) -> MachineOutputs:
        """Apply the tables to packets; raise ConfigError for windows that merge."""
        outputs: MachineOutputs = packets | "Machines" >> self._machines
        return outputs
