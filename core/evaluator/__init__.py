"""One model: its window, its measures at every row, and its state. The heart of the package.

`evaluator` (`ModelEvaluator`) is the face. `steps` decides who enters and leaves and when a row is due;
`ranking` says how the order of scores is measured, `sorted_ranking` and `tree_ranking` do it, and
`weighted_ranking` does where events have weights; `weighted_window` is the window of such events,
`weighted_decisions` and `weighted_measures` are its decisions. `adwin` and `adaptive_signal` adapt the
window. `state` and `snapshot` are the bytes.
"""
