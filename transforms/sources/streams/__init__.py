"""Live streams of events: topics, folders and pipes, read in steps.

`partition` is the interface of a partition; `kafka_partition`, `folder_partition` and `pipe_partition`
implement the interface. `pipe_kinds` separates label records of a pipe from its other records. A partition
gives messages, which are put in columns, or parts, which are in columns. `arrow_messages` reads messages that
are Arrow IPC streams, whose sizes `arrow_sizes` finds before. `cursor` reads the records of one partition,
and `reader` (`StreamReader`) makes packets of what its cursors read. `stream_input` has the settings with
which a job reads a partition. `read` is the transform around the reader. `folder_listing` finds the files of
a folder, and `folder_files` reads them. `kafka_range` finds the offsets of a topic to read. `offsets` stores
how far a reader got in a partition or in a folder.
"""
