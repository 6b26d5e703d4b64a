"""Where rows, curves, alerts and dead letters go.

`kinds` has the kinds of tables with their schemas, `comparisons` those that compare learners. `open` picks
the sink of a path. `table` writes one file, `append` a growing file, `parts` a folder, `kafka` a topic.
"""
