"""The window with weights: scores in order, masses with bounds on their rounding, and the hull.

`tree` (`WeightedTree`) is the face; `store` checks and holds its events; `layout` says what lies where.
`update` inserts and removes, with `balance`; `build` makes a tree at once; `sums` keeps the sums and hulls;
`query`, `hull`, `rows` and `measures` read them. `check` checks every invariant.
"""
