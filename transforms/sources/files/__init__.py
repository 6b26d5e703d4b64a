"""Files of events, read in order as partitions of a source.

`listing` finds files and their columns, and `folder_columns` has the columns of folders `key=value`.
`json_lines` and `timed_lines` read lines. `read` reads a file, cuts it for shards, and has the transforms.
`generated` makes instances instead of reading them.
"""
