"""Names of Beam's metrics, and dead letters counted in them."""

from __future__ import annotations

from typing import Any

from apache_beam.metrics import Metrics

from .dead_letters import DeadLetters

METRICS_NAMESPACE = "rocsteady"


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
