"""Names of Beam's metrics, and dead letters counted in them."""

from __future__ import annotations

import pyarrow as pa
from apache_beam.metrics import Metrics

METRICS_NAMESPACE = "rocsteady"


def letter_metrics(kind: str) -> str:
    """Return the namespace of Beam distributions over positions, one for every kind of reason.

    >>> letter_metrics("late"), letter_metrics("invalid")
    ('rocsteady.late', 'rocsteady.dead_letters')
    """
    return f"{METRICS_NAMESPACE}.{'dead_letters' if kind == 'invalid' else kind}"


def count_letters(kind: str, category: str, letters: pa.RecordBatch) -> None:
    """Count dead letters of one kind and one kind of reason in Beam's metrics, with their first position."""
    metric = Metrics.distribution(letter_metrics(kind), category)
    for position in letters.column("position").fill_null(-1).to_pylist():
        metric.update(position)
