"""Estimators that learn AUC: `aum` minimises AUM, `polynomial` a polynomial that approximates AUC.

`settings` checks the settings of both, `features` names and standardises columns, `linear_classifier` is the
base of both classifiers. The two rooms know nothing of each other.
"""
