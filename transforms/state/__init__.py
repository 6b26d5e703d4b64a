"""Exports of state as folders, and checkpoints.

`folder` reads and writes the folder of an export. `write` has the transforms that write and read states.
`control` has the requests to a running job. `checkpoints` keeps the checkpoints of a job in one process.
"""
