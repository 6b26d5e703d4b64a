"""State that outlives a job: what leaves one job and begins another.

`export` lets a shard give its state where a cut passes; `exported` is what it gives. `take_up` checks whether
a state fits the settings of the next job; `reshard` spreads it over another number of shards. `warm_starts`
compiles ahead what a job will need.
"""
