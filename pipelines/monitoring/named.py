"""The names of time series in queries, made from the definitions.

A query cannot name a series that is not served.
"""

from __future__ import annotations

from functools import cache

from .series import PREFIX, Series, followed_series, job_series


def named(name: str) -> str:
    """Return the name of a series as Prometheus knows it. Raises KeyError for a series that is not defined.

    >>> named("events_read"), named("model_auc")
    ('rocsteady_events_read_total', 'rocsteady_model_auc')
    """
    return PREFIX + name + "_total" * (_known()[name].kind == "counter")


def of_auc(end: str = "", labels: str = "") -> str:
    """Return the query of the AUC of models; for models with a score of each class, it is the macro AUC.

    end     "_low" or "_high" for an end of the interval
    labels  the braces that choose samples

    >>> of_auc("_low")
    '(rocsteady_model_auc_low or rocsteady_model_auc_macro_low)'
    """
    return f"({named(f'model_auc{end}')}{labels} or {named(f'model_auc_macro{end}')}{labels})"


@cache
def _known() -> dict[str, Series]:
    """Return the series of jobs and of pages by their names."""
    page = followed_series(lambda: 0, lambda: None)
    return {series.name: series for series in (*job_series(), *page)}
