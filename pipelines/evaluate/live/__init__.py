"""Evaluates a job's live events in this process: rows are written when they are due.

`run` (`evaluate_live`) reads the partitions of a job in step, and prints the job's summary. `evaluation`
makes rows from the readers' packets, `outputs` writes the rows.
"""
