"""Tests of which of two learners is better, and the state machines that get the values for these tests.

`mcnemar` and `significance` have the tests, and `comparisons` applies them to all learners. `fold_pairs` and
`learners` are state machines that compare learners at checkpoints. `fold_report` has their records, and
collects them. `comparison_settings` has the settings of a comparison. `ties` says which values are equal.
"""
