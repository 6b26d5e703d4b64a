"""RollUp: takes rows of measures, and gives roll-up rows of groups of models and slices.

The rows of a bundle are packed by the shards of their groups and by Beam window before they travel, with the
AUC alone. A shard is a `FleetTable`. Roll-up rows depend neither on the order in which rows arrive, nor on
repeated rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.coders import RowCoder, registry
from apache_beam.utils.windowed_value import WindowedValue

from ...core.errors import ConfigError
from ...core.fleet.members import MemberRows
from ...core.fleet.roll_up_settings import RollUpSettings, choices_of
from ...core.fleet.table import FleetTable
from ...core.ids.sharding import shard_of
from ...core.rows.roll_ups import RollUpRow
from ...core.rows.rows import Rows
from ...core.settings.durations import Duration, lateness_of
from ...core.shard.protocol import DEFAULT_CACHE_BYTES
from ..beam.machine import RunStateMachine, refuse_merging_windows, timestamp
from .members import members_of_table
from .pack_rows import PackRows, RowTables

_MOST_SHARDS = 8

_HOW = "apply it to .rows or .batches of EvaluateModels with every=EverySeconds(...)"


class RollUp(beam.PTransform[beam.PCollection[Any], beam.PCollection[RollUpRow]]):
    """Makes a `RollUpRow` of each group of models or slices at each grid point, from rows of measures.

    by           "models": all models are one group; "slices": a group for every model and column of slices;
                 a pattern of models, such as "team1/*"; or a list of these.
    stale        how long the last row of a silent member counts: "1d", a number of seconds, or a timedelta;
                 0 = not at all.
    confidence   the confidence of the rows' intervals, and of the intervals that are made.
    dependent    True if models score the same events: intervals then hold for any dependence.
    lateness     how far rows may be behind Beam's watermark: "10m", or 0. A grid point is closed when the
                 watermark has passed it by this duration. A row that comes later counts only for later grid
                 points (counter `roll_up_rows_late`). None = grid points are closed at the end of the input,
                 or of the window, and no row is late.
    shards       the number of keys of the state, fixed for the life of the job.
    cache_bytes  bytes of live state that a worker process keeps between bundles (1 GiB).

    Rows are MeasureRows, or pyarrow RecordBatches of them: `.rows` or `.batches` of `EvaluateModels`, on a
    grid of times (`every=EverySeconds("1h")`). The input must have all rows of a group. Without late rows,
    roll-up rows are the same on every runner. Their Beam timestamp is `due`, and they are in the window of
    their rows. `FleetTable` describes the state.

    Raises ConfigError for an invalid setting, for windows that merge, and for an input without an end and
    without windows if `lateness` is None. The job fails with an error if no row has `due`, and for rows of
    different windows or grids in one group.

        roll_ups = result.rows | rs.RollUp(by=["models", "team1/*"], stale="6h")
    """

    def __init__(
        self,
        by: str | Iterable[str] = "models",
        *,
        stale: Duration = "1d",
        confidence: float = 0.95,
        dependent: bool = False,
        lateness: Duration | None = None,
        shards: int = 1,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
    ) -> None:
        super().__init__()
        settings = RollUpSettings(choices_of(by), lateness_of(stale, "stale"), confidence, dependent)
        self._late = None if lateness is None else lateness_of(lateness, "lateness")
        self._parts = _Parts(settings, shards, cache_bytes, self._late)

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[RollUpRow]:
        """Roll up the rows."""
        if not isinstance(rows, beam.PCollection):
            raise ConfigError(f"{self.label}: it is applied to a {type(rows).__name__}; {_HOW}")
        refuse_merging_windows(rows, self.label)
        if self._late is None and not rows.is_bounded and rows.windowing.is_default():
            raise ConfigError(
                f"{self.label}: the rows have no end and no windows, so that no grid point would ever be "
                "closed; say by how much rows may be late, such as lateness='10m'"
            )
        roll_ups: beam.PCollection[RollUpRow] = rows | "Shards" >> self._parts
        return roll_ups


class RollUpShards(beam.PTransform[beam.PCollection[Any], beam.PCollection[RollUpRow]]):
    """Rolls up `Rows` on a grid of times; the evaluators' words say when grid points are complete.

    shards  the number of shards of the evaluators; None = each model is a shard. There are at most 8 shards
            of roll-ups, because each gets the word of every shard at each grid point
    """

    def __init__(self, settings: RollUpSettings, shards: int | None, cache_bytes: int) -> None:
        super().__init__()
        self._parts = _Parts(settings, min(_MOST_SHARDS, shards or 1), cache_bytes, None, on_grid=True)

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[RollUpRow]:
        """Roll up the rows."""
        rolled: beam.PCollection[RollUpRow] = rows | "Shards" >> self._parts
        return rolled


class _Parts(beam.PTransform[beam.PCollection[Any], beam.PCollection[RollUpRow]]):
    """Packs rows for the shards of their groups, and rolls them up.

    lateness  see `RunStateMachine`
    on_grid   whether the rows are known to be on a grid of times: `due` may then be null in all rows
    """

    def __init__(
        self,
        settings: RollUpSettings,
        shards: int,
        cache_bytes: int,
        lateness: int | None,
        *,
        on_grid: bool = False,
    ) -> None:
        super().__init__()
        shard_of((), shards)
        self._pack = _PackMembersDoFn(settings, shards, on_grid)
        self._machines = RunStateMachine(
            RowTables(FleetTable, settings), RollUpRow, cache_bytes, lateness=lateness
        )

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[RollUpRow]:
        """Pack the rows, and give the roll-up rows at their own times."""
        packed = rows | "Pack rows" >> beam.ParDo(self._pack).with_output_types(tuple[str, bytes])
        rolled = packed | "Roll up" >> self._machines
        roll_ups: beam.PCollection[RollUpRow] = rolled.outputs | "At their times" >> beam.FlatMap(
            _at_its_time
        ).with_output_types(RollUpRow)
        return roll_ups


class _PackMembersDoFn(PackRows[MemberRows]):
    """Packs `MemberRows` for the shards of their groups."""

    def __init__(self, settings: RollUpSettings, shards: int, on_grid: bool) -> None:
        super().__init__(_HOW)
        self._settings = settings
        self._shards = shards
        self._on_grid = on_grid

    def take(self, rows: pa.RecordBatch | Rows | list[Any]) -> MemberRows:
        """Return the members of the groups."""
        if isinstance(rows, pa.RecordBatch):
            return members_of_table(rows, self._settings, _HOW)
        if isinstance(rows, Rows):
            return MemberRows.of_rows(rows, self._settings)
        return MemberRows.of_records(rows, self._settings)

    def split(self, rows: MemberRows) -> Iterable[tuple[int, MemberRows]]:
        """Yield the rows of each shard."""
        return (rows.on_a_grid() if self._on_grid else rows).split(self._shards)


def _at_its_time(row: RollUpRow, window: Any = beam.DoFn.WindowParam) -> Iterator[WindowedValue]:
    """Yield a roll-up row with its grid point as the timestamp, in the window of its rows."""
    yield WindowedValue(row, timestamp(row.due), (window,))


registry.register_coder(RollUpRow, RowCoder)
