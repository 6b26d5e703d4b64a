"""The window with weights: scores in order, masses with bounds on their rounding, and the hull.

`tree` (`WeightedTree`) is the face; `store` holds its events; `layout` says what lies where. `update`
inserts and removes, with `balance` and `exponents`; `build` makes a tree at once; `sums` keeps the sums and
hulls; `query`, `hull`, `rows`, `answers` and `measures` read them. `room` grows the arrays, `inputs` checks
what comes, `check` every invariant.
"""
