"""What Beam needs: `machine` is the one stateful DoFn; it hosts any state machine of core.

`cells` declares its numbered state cells, `state_sizes` measures them. `metrics` and `progress` count what
goes on.
"""
