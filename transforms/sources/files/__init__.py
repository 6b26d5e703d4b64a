"""Files of events, read in order as partitions of a source.

`listing` finds files and their columns, `partition` reads one, `json_lines` and `timed_lines` its lines;
`packets` cuts it for shards; `read` is the transform. `generated` makes events instead of reading them.
"""
