"""The settings that users choose. Settings are checked when made: other folders do not check them again.

Every choice has one spelling, that of the command line (`last:10000`, `beta:2,2`). `str()` writes the
spelling and `parse_...` reads it. The canonical text of a configuration consists of spellings, and the
configuration's hash is the hash of this text.

`windows` has the windows and emissions, `durations` their durations, `costs` the distributions of costs, and
`measure_names` the choice of measures, `periods` the periods of time, `evidence` the bound, the blocks and
the gap of evidence, `sketches` the size of sketches. `evaluator` puts these parts together in
`EvaluatorSettings`, the settings of one model. `table` adds the settings of all models of a job in
`TableSettings`, and has the names of slices. `setting` in `evaluator` declares the fields of these two
classes, for options of the command line and for stored states. `classes` has the spelling of a class.
`choices` reads keywords that are texts. `against` says with which model others are compared.
"""
