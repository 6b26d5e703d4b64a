"""Live streams of events: topics and folders, read at every tick.

`partition` is the interface of a partition: `kafka_partition`, `folder_partition`, `pipe_partition`.
`reader` (`StreamReader`) makes packets of what a partition gives: messages (`messages` puts them in columns)
or `parts`. `read` is the transform around it. `folder_listing` finds the files of a folder, `folder_files`
reads them, and `folder_place` says where a job goes on. `kafka_offsets` says where a topic is read from.
"""
