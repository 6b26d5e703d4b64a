"""The window of events that have weights of their own, or fade.

`window` has the class to use (`WeightedWindow`), with the ring of events and their weights. `ranking` keeps
the order of the scores and writes the measures of the order. `decisions` keeps the masses of labels,
predictions and right decisions. `measures` writes a row's measures of decisions.
"""
