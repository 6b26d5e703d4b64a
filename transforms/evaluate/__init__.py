"""The evaluation of models on Beam.

`models` has `EvaluateModels`, `join_labels` joins predictions with labels, `compare_pairs` compares models
with a champion, `alert` watches rows, and `roll_up` makes roll-up rows of them; `pack_rows` packs rows for
both, and makes their tables. `shards` evaluates packets, for `models` and `join_labels`. Without Beam:
`choices` makes settings from keywords, `class_limits` says what does not go with scores of classes,
`row_columns` reads tables of rows, and `members` makes rows of them for roll-ups.
"""
