"""Rows of measures: what every sink writes.

`columns` has the schema and the codes of reasons, `slots` the place of each number, `records` one row as a
named tuple. `rows` has many rows in columns, and `curves` the ROC curve of a window as a record. `reasons`
and `display` put a row's reason and figures into words, `arrow` puts rows into tables. `differences` gives
the interval of a difference between two rows.
"""
