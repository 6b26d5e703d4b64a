"""`rocsteady.evaluate`: a frame of scored events in, rows and dead letters out, without Beam.

`evaluate` has the function, `evaluated` its result. `frames` reads frames of polars, pandas and pyarrow as
columns, and makes frames of tables. `summary` has the newest rows of models, `plot` draws rows over time.
`roll_up` makes roll-up rows of rows; `given` reads such rows, and rows of pairs, for a report. No module
imports Beam, except for a report.
"""
