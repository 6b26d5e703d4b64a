"""Rows as record batches on their way to a file: many at a time, counted for the summary's warnings."""

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
    """Return the kind of rows that say how they were made, where their format lets them."""
    return ROWS._replace(schema=row_schema(settings))


_GATHERED = 10_000


_COUNTED = {
    "rows_with_a_positive": ("positives",),
    "rows_with_a_predicted_positive": ("tp", "fp"),
    "rows_with_a_predicted_negative": ("tn", "fn"),
    "rows_with_counts": ("tp", "fp", "tn", "fn"),
}


def held_in(rows: Rows) -> dict[str, int]:
    """Count the rows that hold an event of each kind, by the name of the counter."""
    counts = {}
    for name, columns in _COUNTED.items():
        held = sum((rows.number(column) > 0 for column in columns), np.zeros(len(rows), np.bool_))
        counts[name] = int(np.count_nonzero(held))  # NaN, where a measure was not asked for, is not > 0
    return counts


class InColumns(beam.DoFn):
    """Rows -> record batches; counts the rows that hold an event of each kind, for the summary's warnings.

    Only whether a counter is 0 matters, so that a retried bundle does no harm. Rows come a few at a time,
    and a batch of 50 columns costs the same for one as for thousands: those of a bundle are gathered.
    """

    def __init__(self) -> None:
        self._counters = {name: Metrics.counter(METRICS_NAMESPACE, name) for name in _COUNTED}

    def start_bundle(self) -> None:
        """Hold no rows."""
        self._held: list[Rows] = []
        self._count = 0

    def process(self, rows: Rows) -> Iterator[pa.RecordBatch]:
        """Hold rows until they make a batch."""
        see(rows)
        self._held.append(rows)
        self._count += len(rows)
        if self._count >= _GATHERED:
            yield self._gathered()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Give what is held."""
        if self._held:
            yield GlobalWindows.windowed_value(self._gathered())

    def _gathered(self) -> pa.RecordBatch:
        rows = Rows.concat(self._held)
        self._held, self._count = [], 0
        for name, number in held_in(rows).items():
            if number:
                self._counters[name].inc(number)
        return rows_to_arrow(rows)
