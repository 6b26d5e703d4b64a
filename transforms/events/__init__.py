"""From records to events: columns are read, checked, and what is wrong becomes a dead letter.

`fields` says which columns hold what. `chunk` is a piece of records; `validate` makes batches of events of
it, by `columns`, `time_formats` and `faults`. `dead_letters` and `rejected` are what could not be used,
`time_doubts` the warning of a wrong unit. `batches` and `text` turn records into columns and back.
"""
