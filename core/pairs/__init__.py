"""Two models over the same instances: which one ranks better, in a window and since the beginning.

`pair_settings` has the settings of a comparison. `placements` computes two AUCs and DeLong's variance of
their difference. `anytime` has the verdict that holds however often one looks. `window` is one pair of models
in one slice, `window_instances` its instances, and `evaluator` is the class around it for users. `matching`
finds the instances that both models scored: those of a whole batch with `whole_batch`, into the columns
of `instances`. `table` (`PairTable`) compares all models of a shard with one.
"""
