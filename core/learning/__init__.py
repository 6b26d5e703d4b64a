"""Estimators that learn AUC: `aum` minimises AUM; `polynomial` maximises a polynomial that approximates AUC.

`learner_settings` checks the settings of both. `features` names and standardises columns. `linear_classifier`
is the base of both classifiers. Neither of the two folders imports the other.
"""
