"""Sends time series to a collector of OpenTelemetry, by the protocol OTLP over HTTP.

The SDK of OpenTelemetry sends them: every minute, or as its environment variables say, and once at the end.
Counters are cumulative sums. An undefined value is not sent.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from ...core.errors import ConfigError
from ...core.process.console import say
from ...core.process.imports import missing_package
from .series import PREFIX, Series

METRICS_PATH = "/v1/metrics"
"""The path of OTLP over HTTP, for an address without a path."""

_SECONDS = 5.0
"""Seconds that a delivery may take, with its repetitions: a job waits this long at its end."""

_NAME = "OTEL_SERVICE_NAME"


@contextmanager
def sent(address: str | None, series: Sequence[Series]) -> Iterator[None]:
    """Send series to an address while the block runs, and once more when it ends.

    An address that does not answer is reported once; the block goes on. Raises ConfigError for a text that is
    no address, MissingPackageError without the extra `otlp`.
    """
    if address is None:
        yield
        return
    url = endpoint_of(address)
    try:
        import requests
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import MetricExportResult, PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
    except ImportError:
        raise missing_package("opentelemetry-exporter-otlp-proto-http", "--otlp", "otlp") from None

    class Said(OTLPMetricExporter):  # type: ignore[misc, unused-ignore]
        """Prints when deliveries fail, and when they succeed again, in place of the SDK's log."""

        failed = False

        def export(self, *told: Any, **options: Any) -> Any:
            result = super().export(*told, **options)
            if (result is not MetricExportResult.SUCCESS) != self.failed:
                self.failed = not self.failed
                why = "does not take metrics; the job goes on, and it is tried again"
                say(f"--otlp {address} {why if self.failed else 'takes metrics again'}")
            return result

    def check(response: Any, **_: Any) -> None:
        if 300 <= response.status_code < 400:  # the SDK follows no redirection, and takes it for a success
            response.close()
            raise requests.HTTPError(f"{url} is elsewhere", response=response)

    session = requests.Session()
    session.hooks["response"] = [check]
    reader = PeriodicExportingMetricReader(Said(endpoint=url, timeout=_SECONDS, session=session))
    resource = Resource.create({} if os.environ.get(_NAME) else {"service.name": "rocsteady"})
    provider = MeterProvider([reader], resource, shutdown_on_exit=False)
    meter = provider.get_meter("rocsteady")
    make = {"counter": meter.create_observable_counter, "gauge": meter.create_observable_gauge}
    for one in series:
        make[one.kind](PREFIX + one.name, [_observer(one)], description=one.about)
    with _quiet("opentelemetry"):
        try:
            yield
        finally:
            provider.shutdown(timeout_millis=2_000 * _SECONDS)
            session.close()


def endpoint_of(address: str) -> str:
    """Return the URL to which metrics are sent. Raises ConfigError for a text that is no address.

    >>> endpoint_of("http://localhost:4318"), endpoint_of("https://host/otlp/v1/metrics")
    ('http://localhost:4318/v1/metrics', 'https://host/otlp/v1/metrics')
    """
    try:
        parts = urlsplit(address)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known or not address.isprintable() or " " in address:
        raise ConfigError(
            f"--otlp {address!r} is no address of a collector; give http://host:port, such as "
            "http://localhost:4318"
        )
    return address if parts.path.strip("/") else address.rstrip("/") + METRICS_PATH


def _observer(series: Series) -> Any:
    """Return the SDK's callback for a series."""
    from opentelemetry.metrics import Observation

    def observe(_: Any) -> Iterable[Observation]:
        return [Observation(value, labels) for labels, value in series.samples() if not math.isnan(value)]

    return observe


@contextmanager
def _quiet(logger: str) -> Iterator[None]:
    """Drop the records of a logger, and of the loggers below it, while the block runs."""
    log = logging.getLogger(logger)
    before = log.level, log.propagate, log.handlers
    log.propagate, log.handlers = False, [logging.NullHandler()]
    try:
        yield
    finally:
        log.level, log.propagate, log.handlers = before
