"""The sources of events.

`files` has bounded sources, `streams` live sources. `pack_records` packs any PCollection's records.
"""
