"""Bytes and back, with errors that say what was found. Imports `errors` alone.

`fields` writes and reads the fields of a payload one after another. `frames` puts a head and a checksum
around one. `json` reads JSON that may be damaged. Formats themselves stand beside what they hold: see
`docs/state.md`.
"""
