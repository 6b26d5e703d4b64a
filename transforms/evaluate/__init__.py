"""The evaluation of models on Beam.

`models` has `EvaluateModels`, `join_labels` joins predictions with labels, `compare_pairs` compares models
with a champion, `alert` watches rows, and `roll_up` makes roll-up rows of them; `pack_rows` packs rows for
both, and makes their tables. `shards` evaluates packets, for `models` and `join_labels`. These modules do not
use Beam: `choices` makes settings from keywords, `class_limits` refuses settings that do not go with scores
of classes, `row_columns` reads tables of rows, and `members` makes rows for roll-ups from them.
"""
