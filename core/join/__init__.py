"""Labels that come later than their predictions: the join by id, exact under any interleaving.

`join` (`LabelJoin`) is the state machine, by its `settings`. `outlet` sends joined events on, `fates` makes
dead letters of what is in no pair. `matching` finds the pairs, with kernels in `matching_state` and
`matching_steps`; `row_store` keeps what waits. `state` and `matching_wire` are the bytes of its state.
"""
