"""Learners that are tested on every event and then trained with it.

`fold` (`PrequentialFold`) is the state machine, of one learner and one fold. `settings`, `folds` and
`holdout` say who is tested and trained with what. `learners` makes learners of text: `named`, `models`,
`calls`, `baselines`, `noise`; `instances` is what they are given, `wire` their bytes. `generators` make
streams.
"""
