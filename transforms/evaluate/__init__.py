"""The evaluation of models on Beam.

`models` has `EvaluateModels`, `join_labels` joins predictions with labels, and `alert` watches rows.
`compare_pairs` has `ComparePairs`, which compares models with a champion. `shards`
evaluates packets, for `models` and `join_labels`. `choices` makes settings from keywords, without Beam.
"""
