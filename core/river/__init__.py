"""rocsteady's measures by river's conventions, for users of river.

`metrics`. `decision_window` is beneath it.
"""
