"""One model: its window, its measures at every row, and its state. The heart of the package.

`evaluator` (`ModelEvaluator`) is the public class. `engine` (`WindowEngine`) applies events, makes rows and
joins the other parts. `steps` decides which events enter and leave and when a row is due. `window` defines
the interface of windows: `unit_window` holds events that count 1 each, `weighted` (a room of its own) events
with weights. `ranking` defines how the order of scores is measured; `sorted_ranking` and `tree_ranking`
measure it. `adwin` and `adaptive_signal` adapt the window. `state` and `snapshot` are the wire forms;
`display` shows an evaluator in a notebook.
"""
