"""The window without weights: scores in order, exact AUC sums and the ROC convex hull at every node.

`tree` (`ScoreTree`) and `window` (`ScoreWindow`) have the public classes. `store` holds the events of a tree.
`layout` defines the records. Kernels of an update, from the leaf to the root: `bucket`, `cursor`, `bridge`,
`balance`, `update`. `build` makes a tree from sorted entries. `slide` applies batches of events. `query`,
`tree_rows` and `subset` read a tree. `followed_vertices` follows two vertices of the hull from row to row.
`sums` keeps the sums of AUM and of the losses of probabilities. See `docs/architecture/kernel.md`.
"""
