"""CombineFns: AUC, polynomial AUC and its fit over any PCollection, without order.

`events` reads the elements; `auc`, `polynomial_auc` and `fit` combine them.
"""
