"""The sinks of rows, curves, alerts and dead letters.

`kinds` has the kinds of tables with their schemas, `comparisons` the kinds that compare learners; `batches`
puts records on Beam into batches. `open` picks the sink of a path, and writes folders of parts; `appended`
writes files that grow. `table` writes one file, `kafka` a topic.
"""
