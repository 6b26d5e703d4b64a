"""Numbers for monitoring systems: one set of time series, fetched by Prometheus or sent by OpenTelemetry.

`series` defines every time series. `prometheus` gives them to a server that fetches, and `otlp` sends them.
`rocsteady evaluate` and `rocsteady serve` use both. docs/reference/metrics.md lists the series for users.
"""
