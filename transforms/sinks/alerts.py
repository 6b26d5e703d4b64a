"""Alerts as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import apache_beam as beam
import pyarrow as pa
from apache_beam.pvalue import PCollection
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from ...core.alerts.rows import AlertRow
from ..events.records import in_columns, schema_of

ALERT_SCHEMA = schema_of(AlertRow)
"""The columns of an alert, in every sink: the fields of `AlertRow`."""

ALERT_ORDER = ("model", "slice", "pane_start", "row", "rule")

_GATHERED = 10_000


def alerts_to_arrow(alerts: Sequence[AlertRow]) -> pa.RecordBatch:
    """Return alerts as a record batch with ALERT_SCHEMA. O(cells), in Python."""
    return in_columns(alerts, ALERT_SCHEMA)


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
