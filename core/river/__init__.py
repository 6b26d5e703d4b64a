"""rocsteady's measures by river's conventions, for users of river.

`metrics` has the metrics, `rolling` their common base, `class_window` the window of scores of each class,
`decision_window` the window of predicted classes, `score_window` the window of one score.
"""
