"""From records to events: this room reads and checks columns; an invalid record becomes a dead letter.

`fields` names the roles of columns, and `class_fields` the roles of columns of classes. `dead_letters` has
chunks of records, and describes unusable records. `validate` turns a chunk into a batch of events, with
`columns`, `labels`, `time_formats`, `lateness` and `faults`. `doubts` warns of a wrong unit and of labels
such as NA, and `losses` of many dead letters. `periods` finds columns of pandas' Periods. `records` and
`text` turn records into columns and back. `batches` has the coder of columns for Beam; no other module of the
room imports Beam.
"""
