"""Gives time series to a monitoring server that fetches them, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...core.errors import InputError
from ...core.process.imports import missing_package
from ..arguments import address_of
from .series import PREFIX, Series

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of the text that `exposition` returns."""


def registry_of(series: Sequence[Series]) -> Any:
    """Return a registry of prometheus-client: it has the series, and the memory and time of this process."""
    from prometheus_client import CollectorRegistry, ProcessCollector

    registry = CollectorRegistry()
    registry.register(_Collected(series))
    ProcessCollector(registry=registry)
    return registry


def exposition(registry: Any) -> bytes:
    """Return the present samples of a registry, as CONTENT_TYPE."""
    from prometheus_client import generate_latest

    return bytes(generate_latest(registry))


@contextmanager
def served(address: str | None, series: Sequence[Series]) -> Iterator[int | None]:
    """Serve series at an address while the block runs; yield the port, None without an address.

    Raises ConfigError for a text that is no address, InputError if the address cannot be used,
    MissingPackageError without prometheus-client.
    """
    if address is None:
        yield None
        return
    try:
        from prometheus_client import start_http_server
    except ImportError:
        raise missing_package("prometheus-client", "--prometheus", "prometheus") from None
    host, port = address_of("--prometheus", address)
    try:
        server, thread = start_http_server(port, host, registry_of(series))
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


class _Collected:
    """Series as a collector of prometheus-client."""

    def __init__(self, series: Sequence[Series]) -> None:
        self._series = series

    def describe(self) -> list[Any]:
        """Return nothing: registration then computes no samples."""
        return []

    def collect(self) -> Iterator[Any]:
        """Yield every series with its samples."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        family = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily}
        for name, kind, about, samples in self._series:
            found = family[kind](PREFIX + name, about)
            ending = "_total" if kind == "counter" else ""
            for labels, value in samples():
                found.add_sample(PREFIX + name + ending, dict(labels), value)
            yield found
