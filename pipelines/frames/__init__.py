"""`rocsteady.evaluate`: turns a frame of scored events into rows and dead letters, without Beam.

`evaluate` has the function, `evaluated` its result. `frames` reads frames of polars, pandas and pyarrow as
columns, and makes frames of tables. `summary` has the newest rows of models, `plot` draws rows over time.
`roll_up` makes roll-up rows from rows; `given` reads roll-up rows, and rows of pairs, that a user gives for a
report. No module imports Beam, except for a report.
"""
