"""The window without weights: scores in order, exact AUC sums and the ROC convex hull at every node.

`tree` (`ScoreTree`) and `window` (`ScoreWindow`) are the face; `store` holds the events of a tree; `layout`
says what lies where. Kernels, from the leaf up: `bucket`, `cursor`, `bridge`, `balance`, `update`; `build`
makes a tree at once; `slide` moves a window through it; `query`, `rows`, `subset` and `sums` read it.
`check` checks every invariant. See `docs/kernel.md`.
"""
