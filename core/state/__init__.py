"""State that outlives a job: one job exports the state, and another job begins with it.

`export` lets a shard give its state at a moment that all shards agree on; `exported` has the form of that
state. `take_up` checks whether a state fits the settings of the next job. `reshard` spreads a state over
another number of shards. `class_states` reads and replaces the states of models with classes. `warm_starts`
compiles all kernels, as for an image of workers. `compile_ahead` compiles what a job needs in a second
process. `checkpoint` has the form of a checkpoint of a job in one process.
"""
