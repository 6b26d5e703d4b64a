"""The parts that run inside Beam: `machine` is the one stateful DoFn; it hosts any state machine of core.

`cells` declares its numbered state cells, `state_sizes` measures cached state. `metrics` and `progress` count
records and rows while a job runs. `newest` keeps the numbers in the newest rows of models.
"""
