"""Which of two learners is better: tests of significance, and the streams of folds that feed them.

`significance` has the tests, `comparisons` puts them together. `fold_pairs` and `learners` are state
machines that gather folds (`gathering`, `fold_report`, `paired_fold`) and compare at checkpoints, by the
rules of `settings`.
"""
