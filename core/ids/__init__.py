"""Hashes of ids, and what is decided by them.

`hash128` and `index` hash and number ids. `sharding` deals events to shards by the hash of their model.
`chances` makes chances of hashes. `deduplicator` remembers ids for a while and drops repetitions, in the
panes of `remembered`.
"""
