"""All models and slices of a shard.

`table` (`EvaluatorTable`) is the state machine. `pool` numbers models and slices, and keeps their
evaluators. `pending` gathers events that are applied together. `idle` finds silent models, which then leave.
"""
