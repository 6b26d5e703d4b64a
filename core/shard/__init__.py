"""The order of events in a shard, and the shard's state between bundles. No module here computes a measure.

`machine` is the protocol that every state machine follows. `protocol` keeps the snapshot and the log of a
machine, and decides when a live machine may be used; `parts` cuts large snapshots.

`order` defines the protocol of an order of events. `orders` has the orders of arrival, of position, and of
time (with `buffer`): they hold events back until the events may apply. `buffer` also keeps rows by number.
`partitions` counts what each source has sent.
"""
