"""Learners that are tested on every event and then trained with it.

`fold` (`PrequentialFold`) is the state machine for one learner in one fold. `fold_settings`, `folds` and
`holdout` say which learner is tested and trained with which instances. `learners` makes a learner from its
name, with `named`, `models` (noise too) and `calls`. `instances` has the inputs and outputs of a learner,
`wire` its bytes. `generators` makes streams.
"""
