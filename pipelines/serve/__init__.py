"""`rocsteady serve` and `rocsteady watch` show rows while they come, in a browser and in a terminal.

`command` is `rocsteady serve`, `watch_command` is `rocsteady watch`, and `job` serves the page of a job of
this process (`rocsteady evaluate --serve`); `parser` has the arguments.

`reading` reads sources in threads. `gathered` takes the tables that they read, and holds rows in a `history`
and curves in `curves`, in bounded memory. For a browser, `keeper` makes pages (`pages`, by the templates and
the code of the report) and the numbers of the charts (`epoch`). `app` gives pages, numbers and events to
browsers, `gauges` the latest rows to Prometheus, and `guard` decides which requests may be answered. `server`
runs the application in a thread.
"""
