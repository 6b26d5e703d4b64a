"""Writing and reading of bytes, with errors that say what was found instead. Imports `errors` alone.

`fields` writes and reads the fields of a payload one after another, and puts a head and a checksum around it.
`json` reads JSON that may be damaged. Each format is defined beside the class that it stores: see
`docs/how-to/state.md`.
"""
