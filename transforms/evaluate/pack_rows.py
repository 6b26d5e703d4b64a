"""The steps and tables that `Alert` and `RollUp` share: rows are packed for the shards of a state machine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import apache_beam as beam
import pyarrow as pa
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from ...core.errors import InputError
from ...core.ids.sharding import shard_key
from ...core.rows.rows import Rows
from ...core.shard.machine import Pane

_PACKED_ROWS = 10_000
"""The most single rows of all windows that are buffered together."""


class _Packable(Protocol):
    """Rows in the form that a machine takes: `WatchedRows` or `MemberRows`."""

    def pack(self) -> bytes:
        """Return the wire form."""


Taken = TypeVar("Taken", bound=_Packable)


@dataclass(frozen=True)
class RowTables:
    """Makes the tables that read packed rows, for a job; it is a `MachineFactory`.

    Rows have their panes in themselves.

    table     `AlertTable` or `FleetTable`: a class of state machines that are made from settings alone
    settings  the settings of all tables
    """

    table: type[Any]
    settings: Any

    def warm_up(self) -> None:
        """Compile nothing, because the tables have no kernels."""

    def new(self, pane: Pane | None, key: str) -> Any:  # noqa: ARG002
        """Return an empty table."""
        return self.table(self.settings)

    def load(self, snapshot: bytes, pane: Pane | None, key: str) -> Any:  # noqa: ARG002
        """Return the table of a snapshot.

        Raise OtherConfigurationError for other settings, a `WireError` for damaged bytes.
        """
        return self.table.from_bytes(snapshot, self.settings)


class PackRows(beam.DoFn, Generic[Taken]):
    """Makes packets (shard, packed rows) of rows, single or in columns, each in the window of its rows.

    how  the remedy in errors: where the rows must come from
    """

    def __init__(self, how: str) -> None:
        self._how = how

    @abstractmethod
    def take(self, rows: pa.RecordBatch | Rows | list[Any]) -> Taken:
        """Return rows in the form that the machine takes.

        Raises AttributeError for a single row that lacks a field.
        """

    @abstractmethod
    def split(self, rows: Taken) -> Iterable[tuple[int, Taken]]:
        """Yield the rows of each shard."""

    def start_bundle(self) -> None:
        """Begin without rows."""
        self._open: dict[Any, tuple[list[Any], Timestamp]] = {}
        self._held = 0

    def process(
        self,
        element: Any,
        time: Any = beam.DoFn.TimestampParam,
        window: Any = beam.DoFn.WindowParam,
    ) -> Iterator[WindowedValue]:
        """Hold a single row, or pack rows in columns at once."""
        if isinstance(element, pa.RecordBatch | Rows):
            yield from self._packets(self.take(element), time, window)
        else:
            rows, newest = self._open.get(window, ([], time))
            rows.append(element)
            self._open[window] = rows, max(newest, time)
            self._held += 1
            if self._held == _PACKED_ROWS:
                yield from self._flush()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Yield the packets of the rows still held."""
        return self._flush()

    def _flush(self) -> Iterator[WindowedValue]:
        held, self._open, self._held = self._open, {}, 0
        for window, (rows, time) in held.items():
            try:
                taken = self.take(rows)
            except AttributeError as missing:
                raise InputError(
                    f"a {type(missing.obj).__name__!r} without {missing.name!r} is no row of measures; "
                    f"{self._how}"
                ) from None
            yield from self._packets(taken, time, window)

    def _packets(self, rows: Taken, time: Any, window: Any) -> Iterator[WindowedValue]:
        for shard, part in self.split(rows):
            yield WindowedValue((shard_key(shard), part.pack()), time, (window,))
