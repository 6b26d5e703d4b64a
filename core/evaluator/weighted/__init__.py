"""The window of events that have weights of their own, or fade.

`window` (`WeightedWindow`) is the face: its ring of events, and their weights. `ranking` measures the order
of the scores, `decisions` counts who is right, `measures` writes what rows say of the decisions.
"""
