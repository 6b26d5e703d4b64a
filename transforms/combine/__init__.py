"""CombineFns of AUC and polynomial AUC, for groups of events in any order; and a fit to AUC.

`events` reads the elements, and `auc` combines them. `fit` fits a linear model to AUC.
"""
