"""The order of events in a shard, and its state between bundles. What a shard computes is not known here.

`machine` is the protocol of a state machine. `protocol` keeps the snapshot and the log of a machine, and
decides when a live machine may be used; `parts` cuts large snapshots.

`order` says what an order of events is, `orders` makes one by its name. `by_arrival`, `by_position` and
`by_time` (with `time_sort` and `buffer`) hold events back until their turn, `partitions` counts what each
source has sent.
"""
