"""Alert: takes rows of measures, and gives a record when an alert opens and when it closes.

The rows of a bundle are packed by shard and Beam window before they travel, with only the columns that the
rules read. A shard is an `AlertTable`, which sorts rows by their identity, so the alerts depend neither on
the order in which rows arrive, nor on repeated rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.coders import RowCoder, registry
from apache_beam.utils.windowed_value import WindowedValue

from ...core.alerts.alert_rows import (
    AlertRow,
    Key,
    WatchedRows,
    check_kind,
    numbers_of,
    watched_columns,
)
from ...core.alerts.grammar import parse_alert
from ...core.alerts.rule_sets import checked_rules
from ...core.alerts.rules import AlertRule
from ...core.alerts.table import AlertTable
from ...core.errors import ConfigError
from ...core.ids.sharding import shard_of
from ...core.rows.columns import INTEGER_COLUMNS, TIME_COLUMNS
from ...core.rows.pairs import pair_name
from ...core.rows.rows import Rows
from ...core.shard.protocol import DEFAULT_CACHE_BYTES
from ..beam.machine import RunStateMachine, refuse_merging_windows, timestamp
from .pack_rows import PackRows, RowTables
from .row_columns import RowColumns

_HOW = (
    "apply it to .rows or .batches of EvaluateModels, with rules on groups to RollUp, with rules on pairs to "
    ".rows or .batches of ComparePairs"
)


class Alert(beam.PTransform[beam.PCollection[Any], beam.PCollection[AlertRow]]):
    """Watches rows of measures: outputs an `AlertRow` when an alert opens, and another when it closes.

    rules        texts such as "auc_high < 0.8 for 3 rows" (see `rocsteady.parse_alert`), or AlertRules.
    shards       the number of keys of the state, fixed for the life of the job.
    cache_bytes  bytes of live state that a worker process keeps between bundles (1 GiB).

    Rows are MeasureRows or ClassRows, or pyarrow RecordBatches of them: `.rows` or `.batches` of
    `EvaluateModels`. Rules
    that name columns of roll-up rows, such as "auc_mean < 0.8", watch the RollUpRows of `RollUp`. Rules
    that name columns of pairs, such as "anytime_high < 0", watch the PairRows of `ComparePairs`. The input
    must have all rows of a model: rows apply in the order of their ordinals, and a missing row holds up
    later rows until the input ends. Every (model, slice, class, pane) has its own alerts. The Beam timestamp
    of an alert is the alert's time; without a time, the timestamp of its rows. An alert is in the window of
    its rows. `AlertTable` describes the state.

    Raises ConfigError for an invalid rule, and for windows that merge. The job fails with an error if rows
    lack a column that a rule names.

        alerts = result.rows | rs.Alert("auc_high < 0.8 for 3 rows", "auc drops against 7d")
    """

    def __init__(
        self, *rules: str | AlertRule, shards: int = 64, cache_bytes: int = DEFAULT_CACHE_BYTES
    ) -> None:
        super().__init__()
        self._rules = checked_rules([parse_alert(rule) if isinstance(rule, str) else rule for rule in rules])
        shard_of((), shards)
        self._shards = shards
        self._machines = RunStateMachine(RowTables(AlertTable, self._rules), AlertRow, cache_bytes)

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[AlertRow]:
        """Pack the rows, watch them, and give the alerts at their own times."""
        if not isinstance(rows, beam.PCollection):
            raise ConfigError(f"{self.label}: it is applied to a {type(rows).__name__}; {_HOW}")
        refuse_merging_windows(rows, self.label)
        packed = rows | "Pack rows" >> beam.ParDo(_PackRowsDoFn(self._rules, self._shards)).with_output_types(
            tuple[str, bytes]
        )
        watched = packed | "Watch" >> self._machines
        alerts: beam.PCollection[AlertRow] = watched.outputs | "At their times" >> beam.FlatMap(
            _at_its_time
        ).with_output_types(AlertRow)
        return alerts


class _PackRowsDoFn(PackRows[WatchedRows]):
    """Packs `WatchedRows` for the shards of their models. Rows that no rule watches are not packed."""

    def __init__(self, rules: tuple[AlertRule, ...], shards: int) -> None:
        super().__init__(_HOW)
        self._rules = rules
        self._columns = watched_columns(rules)
        self._shards = shards

    def take(self, rows: pa.RecordBatch | Rows | list[Any]) -> WatchedRows:
        """Return the columns that the rules read."""
        if isinstance(rows, pa.RecordBatch):
            return watched_batch(rows, self._columns)
        if isinstance(rows, Rows):
            return WatchedRows.of_rows(rows, self._columns)
        return WatchedRows.of_records(rows, self._columns)

    def split(self, rows: WatchedRows) -> Iterator[tuple[int, WatchedRows]]:
        """Yield the rows that some rule covers, by shard."""
        rows = rows.covered(self._rules)
        of_row = shard_of([model for model, *_ in rows.keys], self._shards)[rows.key_codes]
        for shard in np.unique(of_row).tolist():
            yield shard, rows.take(np.flatnonzero(of_row == shard))


def watched_batch(batch: pa.RecordBatch, columns: Sequence[str]) -> WatchedRows:
    """Return the columns that rules read, from a record batch (ROW_SCHEMA, CLASS_ROW_SCHEMA, PAIR_SCHEMA).

    O(cells).

    Missing columns of times are read as null. Raises InputError, which names the column, for any other
    missing column, for a column of another type, and for rows of another kind than the rules read.
    """
    of_pairs = "against" in batch.schema.names
    check_kind("pair row" if of_pairs else "row", columns)
    read = RowColumns(batch, "an alert", _HOW, TIME_COLUMNS)
    keys: dict[Key, int] = {}
    models = read.names("model")
    if of_pairs:
        models = list(map(pair_name, models, read.names("against")))
    classes = [read.names("class")] if "class" in batch.schema.names else []
    named = zip(models, read.names("slice"), *classes, strict=True)
    codes = np.array([keys.setdefault(key, len(keys)) for key in named], np.int32)
    numbers = numbers_of(columns, read.number, batch.num_rows)
    return WatchedRows(tuple(columns), tuple(keys), codes, read.integers(*INTEGER_COLUMNS), numbers)


def _at_its_time(
    alert: AlertRow, time: Any = beam.DoFn.TimestampParam, window: Any = beam.DoFn.WindowParam
) -> Iterator[WindowedValue]:
    """Yield an alert with its own time as the timestamp, in the window of its rows."""
    yield WindowedValue(alert, time if alert.time is None else timestamp(alert.time), (window,))


registry.register_coder(AlertRow, RowCoder)
