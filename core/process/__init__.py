"""Help for every process of the program: console, streams, options, packages. Runners may import this room.

`console` writes to people, always safely; `standard_streams` guards stdout and stderr beneath it.
`option_parser` and `near_names` read what people type. `temporary_folders` removes what a killed process
left. `packages` imports optional packages, `beam_import` mends how Beam is imported, `rare_log` logs a
message at most once in a while.
"""
