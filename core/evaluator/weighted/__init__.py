"""The window of events that have weights of their own, or fade.

`window` (`WeightedWindow`) is the class to use: its ring of events, and their weights. `ranking` measures the
order of the scores, `decisions` sums the masses of right decisions, `measures` writes a row's measures of
decisions.
"""
