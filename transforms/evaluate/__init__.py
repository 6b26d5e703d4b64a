"""The evaluation of models on Beam.

`models` has `EvaluateModels`, `join_labels` joins predictions with labels, `compare_pairs` compares models
with a champion, `alert` watches rows, and `roll_up` makes roll-up rows of them; `pack_rows` packs rows for
both. `shards` evaluates packets, for `models` and `join_labels`. `choices` makes settings from keywords, and
`members` reads rows of tables for roll-ups, both without Beam.
"""
