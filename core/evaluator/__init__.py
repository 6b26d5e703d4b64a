"""One model: its window, its measures at every row, and its state. The heart of the package.

`evaluator` (`ModelEvaluator`) is the face, `engine` (`WindowEngine`) applies events and makes rows. It joins
the parts: `steps` decides who enters and leaves and when a row is due; `window` says what windows have in
common, `unit_window` is that of events that count 1 each, and `weighted` (a room of its own) that of events
with weights. `ranking` says how the order of scores is measured, `sorted_ranking` and `tree_ranking` do it.
`adwin` and `adaptive_signal` adapt the window. `state` and `snapshot` are the bytes, `display` the look in a
notebook.
"""
