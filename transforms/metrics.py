"""Names of Beam's metrics, and dead letters counted in them."""

from __future__ import annotations

from typing import Any

from apache_beam.metrics import Metrics

from .dead_letters import DeadLetters
from .event_fields import Role

METRICS_NAMESPACE = "rocsteady"

COUNTERS: dict[Role, dict[str, str]] = {
    "event": {"read": "events_read", "invalid": "dead_letters", "late": "late"},
    "prediction": {"read": "events_read", "invalid": "dead_letters", "late": "late"},
    "label": {"read": "labels_read", "invalid": "labels_invalid", "late": "labels_late"},
}
"""Names of the counters of a source's records, by what they are."""


def letter_metrics(kind: str) -> str:
    """Return the namespace of Beam distributions over positions, one for every kind of reason.

    >>> letter_metrics("late"), letter_metrics("invalid")
    ('rocsteady.late', 'rocsteady.dead_letters')
    """
    return f"{METRICS_NAMESPACE}.{'dead_letters' if kind == 'invalid' else kind}"


def count_letters(letters: DeadLetters) -> None:
    """Count dead letters by kind and kind of reason, with their positions."""
    metrics: dict[tuple[str, str], Any] = {}
    for kind, reason, position in letters.kinds():
        metric = metrics.get((kind, reason))
        if metric is None:
            metric = metrics[kind, reason] = Metrics.distribution(letter_metrics(kind), reason)
        metric.update(position)


def count_records(role: Role, records: int, letters: DeadLetters, times: tuple[int, int] | None) -> None:
    """Count records that were read, dead letters among them, and the least and greatest event time."""
    names = COUNTERS[role]
    Metrics.counter(METRICS_NAMESPACE, names["read"]).inc(records)
    if len(letters):
        kinds = letters.batch.column("kind").to_pylist()
        for kind in sorted({*kinds}):
            Metrics.counter(METRICS_NAMESPACE, names[kind]).inc(kinds.count(kind))
        count_letters(letters)
    if times is not None:
        seconds = Metrics.distribution(METRICS_NAMESPACE, "event_seconds")
        for micros in times:
            seconds.update(micros // 1_000_000)
