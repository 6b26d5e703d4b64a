"""Where events come from.

`files` (bounded) and `streams` (live). `pack_records` packs any PCollection's records, in the batches of
`packed_events`.
"""
