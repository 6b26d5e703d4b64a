"""The measures of a window, each computed by a kernel from sorted scores or from counters.

`sorted` merges sorted scores; `scan` computes their ranking measures, `delong` the interval of their AUC;
`sums` and `at_row` the measures that only a row needs; `curve` the ROC curve; `decisions` accuracy, kappa and
others from predicted classes. `polynomial_auc`, `polynomial_estimate` and `step_polynomials` are Calders and
Jaroszewicz's AUC. `steps` names the steps of a window, `loss` the loss of a hull's edge.
"""
