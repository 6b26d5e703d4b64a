"""Exports of state as folders.

`folder` reads and writes one, `write` is its transform, `control` the requests to a running job.
"""
