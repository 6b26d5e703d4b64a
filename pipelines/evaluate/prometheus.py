"""`--prometheus`: serves this process's counters to a monitoring server while a job runs.

The metrics are computed at each request; between requests they cost the job nothing.
docs/reference/metrics.md lists the metrics.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...core.errors import InputError
from ...core.process.imports import missing_package
from ...core.version import __version__
from ...transforms.beam import metrics
from ..arguments import address_of

PREFIX = "rocsteady_"


@contextmanager
def served(address: str | None, models: int) -> Iterator[int | None]:
    """Serve the counters at an address while the block runs; yield the port, None without an address.

    models  the number of models whose newest rows are served: the first models seen

    Raises ConfigError, InputError where the address cannot be used, MissingPackageError without
    prometheus-client.
    """
    if address is None:
        yield None
        return
    try:
        from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
    except ImportError:
        raise missing_package("prometheus-client", "--prometheus", "prometheus") from None
    host, port = address_of("--prometheus", address)
    registry = CollectorRegistry()
    registry.register(_Collected())
    ProcessCollector(registry=registry)
    metrics.reset(models)
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise InputError(
            f"--prometheus {address}: nothing can listen there ({error.strerror or error}); name another "
            "port, or end what has it"
        ) from None
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        metrics.reset()


class _Collected:
    """The metrics of this process, as a collector for prometheus-client."""

    def collect(self) -> Iterator[Any]:
        """Yield every metric with its help."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

        info = InfoMetricFamily(PREFIX + "build", "The version of rocsteady.")
        info.add_metric([], {"version": __version__})
        yield info
        totals = metrics.totals()
        for name, told in metrics.COUNTERS.items():
            yield CounterMetricFamily(PREFIX + name, told, totals[name])
        held = metrics.gauges()
        for name, told in metrics.GAUGES.items():
            yield GaugeMetricFamily(PREFIX + name, told, held[name])
        newest, beyond = metrics.newest()
        for name, told in metrics.NEWEST_COLUMNS.items():
            family = GaugeMetricFamily(PREFIX + "model_" + name, told, labels=["model"])
            for model, numbers in newest.items():
                family.add_metric([model], numbers[name])
            yield family
        yield CounterMetricFamily(
            PREFIX + "rows_of_models_not_shown",
            "Rows of models that are not among the model_ gauges: there are more than --prometheus-models.",
            beyond,
        )
        moment = metrics.newest_event()
        lag = GaugeMetricFamily(
            PREFIX + "event_lag_seconds", "The clock on the wall minus the greatest event time read."
        )
        if moment is not None:
            lag.add_metric([], time.time() - moment)
        yield lag
