"""CombineFns of AUC and polynomial AUC, for groups of events in any order; and a fit to AUC.

`auc` combines events, and `fit` fits a linear model to AUC.
"""
