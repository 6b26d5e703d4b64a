"""The time series of a served page, for monitoring systems."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...transforms.beam.newest import NEWEST_COLUMNS, Newest, as_macro
from ..monitoring.series import BUILD, Series, alerts_open, followed_series, newest_series, time_series
from ..report.alerts import alerts_of
from .keeper import Keeper
from .pages import Latest

MODELS = 1_000
"""The most models with gauges, slices and classes: each is several time series. The others are only counted.
"""

_COLUMNS = {"events": "seq", "newest_event_timestamp_seconds": "event_time"}
"""The fields of `Latest` by the names of NEWEST_COLUMNS, where these differ."""


def page_series(keeper: Keeper) -> list[Series]:
    """Return the series of the rows and alerts that a page shows, as of its newest page."""
    held: list[tuple[Sequence[Latest], Newest]] = []

    def newest() -> Newest:
        latest = keeper.published.page.latest
        if not held or held[0][0] is not latest:  # made once for a page, not once for each series
            held[:] = [(latest, newest_of(latest))]
        return held[0][1]

    def newest_times() -> dict[str, float]:
        times = [row.event_time for row in keeper.published.page.latest if row.event_time is not None]
        return {"newest_event_timestamp_seconds": max(times) / 1e6} if times else {}

    def opened() -> int:
        alerts = keeper.gathered.alerts
        return 0 if alerts is None else sum(alert.closed is None for alert in alerts_of(alerts))

    gathered = keeper.gathered
    return [
        BUILD,
        *newest_series(newest),
        *time_series(newest_times),
        *followed_series(lambda: gathered.history.came, lambda: gathered.rows_came_at),
        *([] if gathered.alerts is None else [alerts_open(opened)]),
    ]


def newest_of(latest: Sequence[Latest]) -> Newest:
    """Return the numbers of the first `MODELS` whole models, slices, and classes."""
    of_classes = [row for row in latest if row.class_]
    of_slices = [row for row in latest if row.slice and not row.class_]
    of_models = [row for row in latest if not row.slice and not row.class_]
    return Newest(
        {row.model: _numbers(row) for row in of_models[:MODELS]},
        {(row.model, row.slice): _numbers(row) for row in of_slices[:MODELS]},
        len(of_models[MODELS:]),
        len(of_slices[MODELS:]),
        classes={(row.model, row.slice, row.class_ or ""): _numbers(row) for row in of_classes[:MODELS]},
        classes_beyond=len(of_classes[MODELS:]),
    )


def _numbers(row: Latest) -> dict[str, float]:
    found = {name: getattr(row, _COLUMNS.get(name, name)) for name in NEWEST_COLUMNS}
    numbers = {name: math.nan if value is None else float(value) for name, value in found.items()}
    numbers["newest_event_timestamp_seconds"] /= 1e6
    return as_macro(numbers) if row.class_ == "" else numbers
