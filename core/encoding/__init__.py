"""Writes and reads bytes, with errors that say what was found instead. The folder imports `errors` alone.

`fields` writes and reads the fields of a payload one after another, and puts a head and a checksum around it.
`json` reads JSON that may be damaged. Each format is defined beside the class that it stores:
`docs/how-to/state.md` lists the formats.
"""
