"""Files of events, read in order as partitions of a source.

`listing` finds files and their columns, `partition` reads one and cuts it for shards, `json_lines` and
`timed_lines` read its lines; `read` is the transform. `generated` makes events instead of reading them.
"""
