"""Where rows, curves, alerts and dead letters go.

`kinds` names the kinds of tables; `open` picks the sink of a path. `table` writes one file, `parts` a
folder, `sorted` one sorted file, `append` a growing file, `kafka` a topic. `alerts`, `curves` and
`comparisons` have the schemas.
"""
