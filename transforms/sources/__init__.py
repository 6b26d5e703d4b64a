"""The sources of events.

`files` (bounded) and `streams` (live). `pack_records` packs any PCollection's records.
"""
