"""Learning a linear score by polynomial AUC, in few scans of the data.

Source: Calders and Jaroszewicz 2007. `fit` finds the direction, by `passes` over the data and a search
along a `line`. `objectives` has the objectives over pairs, and `chebyshev` computes their series.
`standardised_rows` reads the features. `classifier` is the estimator by scikit-learn's conventions.
`learner` takes one event at a time.
"""
