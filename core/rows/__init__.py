"""Rows of measures, which every sink writes.

`measure_table` declares the measures, and `reasons` why a measure is null. `columns` has the schema, and
`slots` the place of each number in a row.
`records` has one row as a named tuple, `rows` many rows in columns. `curves` has the ROC curve of a window as
a record. `display` formats figures for consoles and notebooks. `arrow` makes tables of Arrow and pandas.
`differences` gives the interval of the AUC difference of two rows. `roll_ups` has the row of a group of
models or slices, and `pairs` the row of a pair of models. `class_columns` has the further columns of rows of
models with more than two classes, and `class_rows` the records of such rows.
"""
