"""The evaluation of models: `models` (`EvaluateModels`), `join_labels` and `alert`; `shards` is beneath."""
