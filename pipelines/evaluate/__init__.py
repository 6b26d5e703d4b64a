"""`rocsteady evaluate`: files or streams in, rows, report and alerts out.

`command` runs the command: `parser` and `options` read the command line into a `job`. `on_beam` runs the job
as a Beam pipeline, by `run`; `live` runs the job in this process. Live inputs are `streams` (topics) and
`growing` (stdin, a folder). `take_up` and `savepoint` check the state that a job starts from. `summary`,
`exit_status`, `runner_log` and `prometheus` report on the job. `alerts` watches the job's rows; `row_columns`
turns rows into record batches.
"""
