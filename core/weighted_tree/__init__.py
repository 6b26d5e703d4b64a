"""The window with weights: scores in order, masses with bounds on their rounding, and the hull.

`tree` (`WeightedTree`) has the public class. `store` checks and holds its events. `layout` defines the
records. `update` inserts and removes events; `balance` splits and merges nodes and leaves. `build` makes a
tree from sorted events or entries. `sums` keeps the sums and hulls; `query` and `tree_rows` read them.
`measures` has the measures that need every entry.
"""
