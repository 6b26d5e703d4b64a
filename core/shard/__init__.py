"""The order of events in a shard, and its state between bundles. What a shard computes is not known here.

`machine` is the protocol of a state machine. `protocol` keeps a machine's snapshot and log, and decides
when a live machine may be used (docs/architecture.md, "State", rules 1 to 6); `parts` cuts large
snapshots. `order` holds events back until their turn; it stands on `partitions` (what each source has
sent), `buffer` and `by_time`.
"""
