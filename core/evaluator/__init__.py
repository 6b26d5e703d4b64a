"""One model: its window, its measures at every row, and its state. The heart of the package.

`evaluator` (`ModelEvaluator`) is the face. `steps` decides who enters and leaves and when a row is due;
`ranking` and `weighted_ranking` measure the order of scores, `weighted_decisions` the decisions;
`weighted_window` is the window of weighted events. `adwin` and `adaptive_signal` adapt the window. `state`
and `snapshot` are the bytes.
"""
