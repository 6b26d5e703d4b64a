"""The join of predictions with labels that arrive later, by id: exact under any interleaving of the inputs.

`join` (`LabelJoin`) is the state machine, by its `join_settings`. `outlet` sends joined events on, and makes
dead letters of records without a partner. `matching` finds the pairs, with kernels in `matching_state` and
`matching_steps`; `shard.buffer` keeps the rows that wait. `state` is the join's state as bytes.
"""
