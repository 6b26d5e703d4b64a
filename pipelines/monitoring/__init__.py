"""Numbers for monitoring systems: one set of time series, fetched by Prometheus or sent by OpenTelemetry.

`series` defines every time series. `prometheus` serves them to a server that fetches, and `otlp` sends them.
`rocsteady evaluate` and `rocsteady serve` use both. docs/reference/metrics.md lists the series for users.

`command` is `rocsteady monitoring`, which writes files for Grafana and Prometheus: `dashboard` makes a
dashboard, `rules` makes alert rules, and `prometheus_settings` says which addresses Prometheus scrapes. Their
queries take the names of series from `named`, which knows the definitions: so a query cannot name a series
that was renamed or removed.
"""
