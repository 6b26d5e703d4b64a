"""Turns rows into large record batches for a file, and counts rows for the summary's warnings."""

from __future__ import annotations

from collections.abc import Iterator

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.metrics.metric import Metrics
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from ...core.rows.arrow import rows_to_arrow
from ...core.rows.rows import Rows
from ...core.settings.evaluator import EvaluatorSettings
from ...transforms.beam.metrics import METRICS_NAMESPACE, see
from ...transforms.sinks.kinds import ROWS, TableKind
from ...transforms.sinks.sorted import row_schema


def rows_of(settings: EvaluatorSettings) -> TableKind:
    """Return the table kind of rows, with the evaluator's settings in the schema's metadata.

    Only Parquet files keep the metadata.
    """
    return ROWS._replace(schema=row_schema(settings))


_GATHERED = 10_000


_COUNTED = {
    "rows_with_a_positive": ("positives",),
    "rows_with_a_predicted_positive": ("tp", "fp"),
    "rows_with_a_predicted_negative": ("tn", "fn"),
    "rows_with_counts": ("tp", "fp", "tn", "fn"),
}


def held_in(rows: Rows) -> dict[str, int]:
    """Return, by the name of each counter, the number of rows in which one of its columns is above 0."""
    counts = {}
    for name, columns in _COUNTED.items():
        held = sum((rows.number(column) > 0 for column in columns), np.zeros(len(rows), np.bool_))
        counts[name] = int(np.count_nonzero(held))  # NaN, where a measure was not asked for, is not > 0
    return counts


class InColumns(beam.DoFn):
    """Rows -> record batches; counts rows by `held_in` for the summary's warnings.

    The warnings only ask whether a counter is 0, so a retried bundle does no harm. Rows come a few at a
    time, and a batch of 50 columns costs the same for one row as for thousands. So the rows of a bundle are
    gathered into one batch.
    """

    def __init__(self) -> None:
        self._counters = {name: Metrics.counter(METRICS_NAMESPACE, name) for name in _COUNTED}

    def start_bundle(self) -> None:
        """Hold no rows."""
        self._held: list[Rows] = []
        self._count = 0

    def process(self, rows: Rows) -> Iterator[pa.RecordBatch]:
        """Hold rows; yield a batch when enough rows are held."""
        see(rows)
        self._held.append(rows)
        self._count += len(rows)
        if self._count >= _GATHERED:
            yield self._gathered()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Yield a batch of the rows still held."""
        if self._held:
            yield GlobalWindows.windowed_value(self._gathered())

    def _gathered(self) -> pa.RecordBatch:
        rows = Rows.concat(self._held)
        self._held, self._count = [], 0
        for name, number in held_in(rows).items():
            if number:
                self._counters[name].inc(number)
        return rows_to_arrow(rows)
