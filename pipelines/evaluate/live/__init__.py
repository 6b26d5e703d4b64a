"""Events evaluated as they come, in this process: rows are written when they fall due.

`run` (`evaluate_live`) reads the partitions of a job in step, and says what became of it. `evaluation` makes
rows of what the readers give, `outputs` writes them.
"""
