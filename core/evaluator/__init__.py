"""The evaluation of one model: its window, its measures at every row, and its state.

`evaluator` has the public class (`ModelEvaluator`). `engine` (`WindowEngine`) applies events, makes rows and
joins the other parts. `eviction` decides which events enter and leave and when a row is due. `event_columns`
has the columns of events and the classes, `negatives` the rule of -1 and 0. `unit_window` holds events that
count 1 each; `weighted` (a folder of its own) holds events with weights. `ranking` keeps the order of scores,
in one of two forms, and computes its measures; `ranked` is the base of both. `adwin` and `adaptive_signal`
adapt the window. `evidence_columns` runs the e-detector of `core/evidence` beside the window. `state` and
`snapshot` have the wire forms.
"""
