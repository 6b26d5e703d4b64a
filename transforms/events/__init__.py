"""From records to events: the room reads and checks columns; an invalid record becomes a dead letter.

`fields` names the roles of columns. `chunk` is a piece of records; `validate` turns a chunk into a batch of
events, with `columns`, `time_formats`, `lateness` and `faults`. `dead_letters` describes unusable records,
`time_doubts` warns of a wrong unit. `batches`, `records` and `text` turn records into columns and back.
"""
