"""Rows of measures, which every sink writes.

`columns` has the schema and the codes of reasons. `slots` has the place of each number in a row. `records`
has one row as a named tuple, `rows` many rows in columns. `curves` has the ROC curve of a window as a record.
`reasons` writes and reads the text of a row's reason. `display` formats figures for consoles and notebooks.
`arrow` makes tables of Arrow and pandas. `differences` gives the interval of the AUC difference of two rows.
"""
