"""All models and slices of a shard.

`table` (`EvaluatorTable`) is the state machine. `pool` keeps the evaluators of models and slices: small
windows in an arena, all others in `singles`; `class_pool` keeps the evaluators of models with a score of each
class. `slices` numbers models and slices. `pending` gathers events that are applied together. `idle` finds
silent models, which then leave.
"""
