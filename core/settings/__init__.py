"""What users choose, checked once: every other room takes these objects and checks nothing again.

Every choice has one spelling, the command line's (`last:10000`, `beta:2,2`): `str()` writes it, `parse_...`
reads it. The spellings make the canonical text of a configuration, and that text its hash.

In reading order: `windows` (windows and emissions, with `durations`), `costs` and `measures` are the parts
that `evaluator` puts together in `EvaluatorSettings`, the settings of one model. `slices` and `shards` are
the parts that `table` adds in `TableSettings`, the settings of all models of a job. `declared` is how a field
of these two says what options and stored states need to know of it; `classes` has the spelling of a class.
"""
