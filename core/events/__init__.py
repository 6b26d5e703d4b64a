"""Events, labels and predictions in columns, and their bytes between the steps of a job.

Read `columns` (text and ids), `batch` (`EventBatch`), `unjoined` (batches of predictions and of labels),
then `wire` and `records`: the bytes that travel. `times` has the units of time and its special values.
`inputs` checks arrays that users hand over. `rejected` and `reasons` are for what cannot be applied: the
dead letters.
"""
