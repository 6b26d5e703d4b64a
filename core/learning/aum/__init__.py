"""AUM (area under the minimum of false positives and false negatives) and models that minimise it.

Source: Hocking and Hillman 2021. `aum` computes AUM and its gradient, with `kernels`; `line_search` finds
the best step along a direction, and `descent` repeats such steps. `classifier` and `penalty_learner` are
estimators by scikit-learn's conventions. `learner` takes one event at a time. `error_functions` and
`error_roc` are for penalties of changepoint problems.
"""
