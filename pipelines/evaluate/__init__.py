"""`rocsteady evaluate`: files or streams in, rows, report and alerts out.

`command` runs it: `parser` and `options` read the command line into a `job`. `on_beam` runs the job as a
pipeline by `run`, `live` in this process. `streams` (topics) and `growing` (stdin, a folder) are its live
inputs, `take_up` and `savepoint` what it begins with. `summary`, `exit_status`, `runner_log` and `prometheus`
tell how it went; `alerts` watches its rows; `row_columns` makes them tables.
"""
