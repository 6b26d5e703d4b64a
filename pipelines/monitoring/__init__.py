"""Numbers for monitoring systems: one set of time series, fetched by Prometheus or sent by OpenTelemetry.

`series` defines every time series. `prometheus` gives them to a server that fetches, and `otlp` sends them.
`rocsteady evaluate` and `rocsteady serve` use both. docs/reference/metrics.md lists the series for users.

`command` is `rocsteady monitoring`, which writes files for Grafana and Prometheus: `dashboard` makes a
dashboard, `rules` makes alert rules, and `settings` says what is scraped. Their queries take the names of
series from `named`, which knows the definitions: a series that is renamed or removed cannot stay in a query.
"""
