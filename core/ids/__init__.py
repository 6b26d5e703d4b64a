"""Hashes of ids, and the decisions that follow from a hash: numbers, shards, chances, duplicates.

`hash128` and `index` hash and number ids. `sharding` deals events to shards by the hash of their model, and
numbers the packets of a partition for each shard. `chances` turns hashes into random numbers. `deduplicator`
remembers ids for a while and drops repetitions; `remembered` is its memory.
"""
