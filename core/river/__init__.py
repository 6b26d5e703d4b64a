"""rocsteady's measures by river's conventions, for users of river.

`metrics` has the metrics, `rolling` their common base, `decision_window` the window of predicted classes.
"""
