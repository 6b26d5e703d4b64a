"""`rocsteady prequential`: tests and trains learners on a stream.

`command` runs the command; `parser`, `options` and `columns` read the command line.
"""
