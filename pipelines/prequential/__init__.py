"""`rocsteady prequential`.

Learners tested and trained. `command` runs it; `parser`, `options` and `columns` read the command line.
"""
