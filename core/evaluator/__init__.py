"""One model: its window, its measures at every row, and its state. The heart of the package.

`evaluator` (`ModelEvaluator`) is the public class. `engine` (`WindowEngine`) applies events, makes rows and
joins the other parts. `steps` decides which events enter and leave and when a row is due. `window` has the
columns of events and the classes: `unit_window` holds events that count 1 each, `weighted` (a room of its
own) events with weights. `ranking` chooses how the order of scores is kept; `sorted_ranking` and
`tree_ranking` measure it. `adwin` and `adaptive_signal` adapt the window. `state` and `snapshot` are the wire
forms.
"""
