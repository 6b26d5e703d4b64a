"""rocsteady's measures by river's conventions, for users of river.

`metrics` has them, `rolling` is what they have in common, `decision_window` the window of predicted classes.
"""
