"""The measures of a window, each computed by a kernel from sorted scores or from counters.

`sorted` merges sorted scores. `scan` computes their ranking measures, `delong` the interval of their AUC.
`sums` has the measures that are sums over events or hull edges. `at_row` computes measures that are made
anew for each row. `curve` makes the ROC curve. `decisions` computes accuracy, kappa and others from predicted
classes. `polynomial_auc`, `polynomial_estimate` and `step_polynomials` compute the AUC of Calders and
Jaroszewicz. `steps` has the record of a window's steps, and `event_buffer` the events of a window that follow
them.

`core/rows/measure_table.py` declares the measures; CONTRIBUTING.md says how to add one.
"""
