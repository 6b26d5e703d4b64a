"""The settings that users choose. They are checked when made: other rooms take the objects without checking.

Every choice has one spelling, the command line's (`last:10000`, `beta:2,2`). `str()` writes the spelling and
`parse_...` reads it. The spellings make the canonical text of a configuration; the hash is taken of that
text.

In reading order: `windows` (windows and emissions, with `durations`), `costs` and `measures` are the parts
that `evaluator` puts together in `EvaluatorSettings`, the settings of one model. `slices` and `shards` are
the parts that `table` adds in `TableSettings`, the settings of all models of a job. A field of these two
classes uses `declared` to say what options and stored states need to know of it. `classes` has the spelling
of a class.
"""
