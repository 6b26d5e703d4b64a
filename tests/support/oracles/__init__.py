"""Slow, obvious twins of what the product computes; an oracle shares no code with what it checks.

By what they check: `measures` of a window, `score_tree`, `weighted` and `weighted_windows`, `windows`,
`adaptive` windows, `classes`, `pairs` and the matching of pairs (`pair_matcher`), `labels` and `duplicates`
of a join, `roll_ups`, `alerts`, `evidence`, and `aum` of error functions.
"""
