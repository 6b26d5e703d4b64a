"""`rocsteady serve` and `rocsteady watch`: rows shown while they come, in a browser and in a terminal.

`command` is `rocsteady serve`, `watch` is `rocsteady watch`, and `job` serves the page of a job of this
process (`rocsteady evaluate --serve`); `parser` has the arguments.

`reading` reads sources in threads. `gathered` takes what they give, and keeps rows in a `history` and curves
in `curves`, in bounded memory. For a browser, `keeper` makes pages of them (`pages`, by the templates and the
code of the report) and the numbers of its charts (`epoch`). `app` gives pages, numbers and events to
browsers, `gauges` the latest rows to Prometheus, and `guard` says who may ask. `server` runs the application
in a thread.
"""
