"""The latest rows of whole models in the text format of Prometheus: the gauges of `evaluate --prometheus`."""

from __future__ import annotations

from collections.abc import Sequence

from ...transforms.beam.metrics import NEWEST_COLUMNS
from .pages import Latest

MODELS = 1_000
"""The most models with gauges: each is a time series of the monitoring server. The others are counted."""


def exposition(latest: Sequence[Latest]) -> str:
    """Return the gauges of the first `MODELS` whole models; null is NaN."""
    whole = [row for row in latest if not row.slice]
    lines = []
    for name, about in NEWEST_COLUMNS.items():
        metric = f"rocsteady_model_{name}"
        lines += [f"# HELP {metric} {about}", f"# TYPE {metric} gauge"]
        for row in whole[:MODELS]:
            value = getattr(row, name)
            lines.append(f'{metric}{{model="{_label(row.model)}"}} {"NaN" if value is None else repr(value)}')
    beyond = "rocsteady_models_without_gauges"
    lines += [
        f"# HELP {beyond} Models beyond the first {MODELS:,}.",
        f"# TYPE {beyond} gauge",
        f"{beyond} {max(0, len(whole) - MODELS)}",
        "",
    ]
    return "\n".join(lines)


def _label(text: str) -> str:
    r"""Return a label's value as the format wants it.

    >>> print(_label('a "b"\\c'))
    a \"b\"\\c
    """
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
