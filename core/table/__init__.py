"""All models and slices of a shard.

`table` (`EvaluatorTable`) is the state machine. `slices` numbers models and slices, and `pool` keeps their
evaluators. `pending` gathers events that are applied together. `idle` finds silent models, which then leave.
"""
