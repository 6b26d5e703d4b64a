"""Live streams of events: topics and folders, read at every tick.

`partition` is the protocol of a partition; `kafka_partition` and `folder_partition` are two. `messages`
makes columns of what they give. `reader` (`StreamReader`) reads partitions in step; `read` is the transform
around it. `kafka_offsets` says where a topic is read from. `live_readers` reads pipes and folders in the
launching process.
"""
