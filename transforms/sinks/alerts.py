"""Alerts as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import apache_beam as beam
import pyarrow as pa
from apache_beam.pvalue import PCollection
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from ...core.alerts.rows import AlertRow

ALERT_SCHEMA = pa.schema(
    [
        pa.field("rule", pa.string(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("model", pa.string(), nullable=False),
        pa.field("slice", pa.string(), nullable=False),
        pa.field("pane_start", pa.timestamp("us", "UTC")),
        pa.field("pane_end", pa.timestamp("us", "UTC")),
        pa.field("row", pa.int64(), nullable=False),
        pa.field("time", pa.timestamp("us", "UTC")),
        pa.field("since_row", pa.int64(), nullable=False),
        pa.field("since_time", pa.timestamp("us", "UTC")),
        pa.field("column", pa.string(), nullable=False),
        pa.field("value", pa.float64(), nullable=False),
        pa.field("limit", pa.float64(), nullable=False),
        pa.field("reference_row", pa.int64()),
        pa.field("reference_value", pa.float64()),
        pa.field("message", pa.string(), nullable=False),
    ]
)
"""The columns of an alert, in every sink: the fields of `AlertRow`."""

ALERT_ORDER = ("model", "slice", "pane_start", "row", "rule")

_GATHERED = 10_000


def alerts_to_arrow(alerts: Sequence[AlertRow]) -> pa.RecordBatch:
    """Return alerts as a record batch with ALERT_SCHEMA. O(cells), in Python."""
    columns = list(zip(*alerts, strict=True)) or [()] * len(ALERT_SCHEMA)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, ALERT_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ALERT_SCHEMA)


class AlertBatches(beam.PTransform[PCollection[AlertRow], PCollection[pa.RecordBatch]]):
    """Alerts -> record batches (ALERT_SCHEMA), as sinks take them."""

    def expand(self, alerts: PCollection[AlertRow]) -> PCollection[pa.RecordBatch]:
        """Apply to the alerts of a job."""
        batches: PCollection[pa.RecordBatch] = alerts | beam.ParDo(_InColumns()).with_output_types(
            pa.RecordBatch
        )
        return batches


class _InColumns(beam.DoFn):
    """Alerts -> record batches; a bundle's alerts are gathered into one batch."""

    def __init__(self) -> None:
        self._held: list[AlertRow] = []

    def start_bundle(self) -> None:
        """Hold no alerts."""
        self._held = []

    def process(self, alert: AlertRow) -> Iterator[pa.RecordBatch]:
        """Hold alerts; yield a batch when enough alerts are held."""
        self._held.append(alert)
        if len(self._held) == _GATHERED:
            yield alerts_to_arrow(self._held)
            self._held = []

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Yield a batch of the alerts still held."""
        if self._held:
            yield GlobalWindows.windowed_value(alerts_to_arrow(self._held))
