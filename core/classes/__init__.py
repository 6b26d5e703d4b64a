"""More than two classes: AUCs of each class, of each pair of classes, and their means, in a window.

`class_settings` has the settings, `evaluator` the class for users (`MulticlassEvaluator`), `state` its state,
and `window` the window of one model; `adaptive` has the signal of an adaptive window. `events` has events in
columns, `one_against_rest` gives them to evaluators, and `means` has what a row says of all classes.
`figures` computes the AUCs of a window and their variances, by the masses of `population` and by two kernels:
`counted` where events count 1 each, `scan` where they have weights. `orders` keeps the pairs that classes
rank right after every event, `current` the window around it, and `values` has the means that follow from
AUCs.
"""
