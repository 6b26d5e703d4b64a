"""Exports of state as folders.

`folder` reads and writes the folder of an export. `write` has the transforms that write and read states.
`control` has the requests to a running job.
"""
