"""Bytes of every stored form: samples, what reads them, and bytes that are damaged or old.

`readers` lists every function that reads stored bytes; `class_bytes` has samples with a score of each
class; `damage` changes bytes; `old_snapshots` and `old_savepoint` are of an earlier version; `awkward_rows`
has all that a sink must get right.
"""
