"""The names of time series in queries, made from the definitions: a query cannot name what is not served."""

from __future__ import annotations

from functools import cache

from .series import PREFIX, Series, followed_series, job_series


def named(name: str) -> str:
    """Return the name of a series as Prometheus knows it. Raises KeyError for a series that is not defined.

    >>> named("events_read"), named("model_auc")
    ('rocsteady_events_read_total', 'rocsteady_model_auc')
    """
    return PREFIX + name + "_total" * (_known()[name].kind == "counter")


@cache
def _known() -> dict[str, Series]:
    """Return the series of jobs and of pages by their names."""
    page = followed_series(lambda: 0, lambda: None)
    return {series.name: series for series in (*job_series(), *page)}
