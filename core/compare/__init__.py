"""Tests of which of two learners is better, and the streams of folds that give the tests their data.

`significance` has the tests, `comparisons` puts them together. `fold_pairs` and `learners` are state
machines that gather folds (`gathering`, `fold_report`, `paired_fold`) and compare at checkpoints, by the
rules of `settings`.
"""
