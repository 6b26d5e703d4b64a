"""Events, labels and predictions in columns, and their wire forms between the steps of a job.

Read `columns` (text and ids), `batch` (batches of events, predictions and labels), then `wire`
and `records`: the bytes that are sent. `times` has the units of time and the special times. `moments` reads
times of any type. `outlying` finds times far from all others. `numbers` reads numbers, and tells which no
float64 holds. `inputs` checks the arrays that users give to an evaluator or a tree. `rejected` has records
that cannot be applied, the dead letters, with their reasons. `earlier` tells records of an imported state
from those that a job reads. `class_doubts` finds labels and predictions with too few classes in common.
"""
