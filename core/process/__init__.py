"""Help for every process of the program: console, streams, options, packages. Runners may import this room.

`console` writes to people, always safely, and parses their options; `standard_streams` guards stdout and
stderr for it. `near_names` finds the name that a mistyped word means. `temporary_folders` removes what a
killed process left. `user_cache` is the folder of files that can be made again. `imports` repairs how Beam is
imported, imports optional packages, and says how to install these. `collector` keeps Python's garbage
collector from running.
"""
