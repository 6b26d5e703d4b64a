"""The time series that monitoring systems get: names, kinds and descriptions, here and in `metrics`.

A series has a function that returns its present samples. So the series cost nothing between two requests.

Bounds
    Labels have the names of models and slices, of `Newest`. The code that makes a `Newest` bounds both, and
    counts the rest. Other labels have words of closed lists, such as the reasons of dead letters.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple

from ...core.version import __version__
from ...transforms.beam import metrics
from ...transforms.beam.metrics import NEWEST_TIMES
from ...transforms.beam.newest import MACRO_COLUMNS, NEWEST_COLUMNS, Newest

PREFIX = "rocsteady_"
"""The first letters of every series' name."""

SLICE_COLUMNS = ("auc", "auc_low", "auc_high", "window_events")
"""The NEWEST_COLUMNS that slices and classes have."""

Sample = tuple[Mapping[str, str], float]
"""Labels, and the value."""


class Series(NamedTuple):
    """A time series for each set of labels.

    name     the name without PREFIX, and without the `_total` at which Prometheus ends the names of counters
    samples  returns the present samples; NaN = undefined
    """

    name: str
    kind: Literal["counter", "gauge"]
    about: str
    samples: Callable[[], Iterable[Sample]]


def _alone(value: Callable[[], float | None]) -> Callable[[], Iterable[Sample]]:
    """Return the function that gives the sample of a series without labels.

    A value of None gives no sample.
    """
    return lambda: [({}, found) for found in [value()] if found is not None]


BUILD = Series("build_info", "gauge", "The version of rocsteady.", lambda: [({"version": __version__}, 1.0)])


def job_series() -> list[Series]:
    """Return the series of the job in this process."""

    def counter(name: str) -> Callable[[], float]:
        return lambda: metrics.totals()[name]

    def gauge(name: str) -> Callable[[], float]:
        return lambda: metrics.gauges()[name]

    def by_reason() -> Iterable[Sample]:
        found = metrics.letters_by_reason()
        return [({"kind": kind, "reason": reason}, number) for (kind, reason), number in found.items()]

    def opened() -> float:
        totals = metrics.totals()
        return totals["alerts_opened"] - totals["alerts_closed"]

    return [
        BUILD,
        *(Series(name, "counter", about, _alone(counter(name))) for name, about in metrics.COUNTERS.items()),
        *(Series(name, "gauge", about, _alone(gauge(name))) for name, about in metrics.GAUGES.items()),
        Series(
            "dead_letters_by_reason", "counter", "Records that do not count, by kind and reason.", by_reason
        ),
        *newest_series(metrics.newest),
        Series(
            "rows_of_models_not_shown",
            "counter",
            "Rows of models that are not among the model_ gauges: there are more than --prometheus-models.",
            _alone(lambda: metrics.newest().rows_beyond),
        ),
        *time_series(metrics.newest_times),
        alerts_open(opened),
    ]


def newest_series(newest: Callable[[], Newest]) -> list[Series]:
    """Return the series of newest rows.

    One sample for each model or slice, and the numbers of those left out.
    """

    def of_models(name: str) -> Callable[[], Iterable[Sample]]:
        return lambda: [
            ({"model": model}, values[name]) for model, values in newest().models.items() if name in values
        ]

    def of_slices(name: str) -> Callable[[], Iterable[Sample]]:
        return lambda: [
            ({"model": model, "slice": part}, values[name])
            for (model, part), values in newest().slices.items()
            if name in values
        ]

    def of_classes(name: str) -> Callable[[], Iterable[Sample]]:
        return lambda: [
            ({"model": model, "slice": part, "class": of}, values[name])
            for (model, part, of), values in newest().classes.items()
        ]

    of_slice = {name: NEWEST_COLUMNS[name] for name in SLICE_COLUMNS}
    return [
        *(Series(f"model_{name}", "gauge", f"{about} Of a whole model.", of_models(name))
          for name, about in (NEWEST_COLUMNS | MACRO_COLUMNS).items()),
        *(Series(f"slice_{name}", "gauge", f"{about} Of a slice.", of_slices(name))
          for name, about in (of_slice | MACRO_COLUMNS).items()),
        *(Series(f"class_{name}", "gauge", f"{NEWEST_COLUMNS[name]} Of a class against all others.",
                 of_classes(name))
          for name in SLICE_COLUMNS),
        Series("models_without_gauges", "gauge", "Models beyond the most that have gauges.",
               _alone(lambda: newest().models_beyond)),
        Series("slices_without_gauges", "gauge", "Slices of models beyond the most that have gauges.",
               _alone(lambda: newest().slices_beyond)),
        Series("classes_without_gauges", "gauge", "Classes of models beyond the most that have gauges.",
               _alone(lambda: newest().classes_beyond)),
    ]  # fmt: skip


def time_series(newest_times: Callable[[], Mapping[str, float]]) -> list[Series]:
    """Return the series of the greatest times that came, by the names of NEWEST_TIMES.

    A series has no sample before the first time.
    """

    def greatest(name: str) -> Callable[[], float | None]:
        return lambda: newest_times().get(name)

    def lag() -> float | None:
        found = newest_times()
        return time.time() - max(found.values()) if found else None

    return [
        *(Series(name, "gauge", about, _alone(greatest(name))) for name, about in NEWEST_TIMES.items()),
        Series(
            "event_lag_seconds", "gauge", "The clock on the wall minus the greatest time read.", _alone(lag)
        ),
    ]


def alerts_open(number: Callable[[], float]) -> Series:
    """Return the series of the number of alerts that are open."""
    return Series("alerts_open", "gauge", "Alerts that are open now.", _alone(number))


def followed_series(came: Callable[[], int], when: Callable[[], float | None]) -> list[Series]:
    """Return the series about rows that are followed, by their number and the time of the last arrival."""
    return [
        Series("rows_followed", "counter", "Rows that came from what is followed, each once.", _alone(came)),
        Series("newest_row_timestamp_seconds", "gauge", "When rows last came, by the clock on the wall.",
               _alone(when)),
    ]  # fmt: skip
