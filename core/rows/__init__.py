"""Rows of measures: what every sink writes.

`columns` is the schema and the codes of reasons; `records` one row as a named tuple; `rows` many rows in
columns; `curves` the ROC curve of a window as a record. `reasons` and `display` put rows into words,
`arrow` into tables. `differences` gives the interval of a difference between two rows.
"""
