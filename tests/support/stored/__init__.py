"""Bytes of every stored form: samples, what reads them, and bytes that are damaged.

`readers` lists every function that reads stored bytes; `class_bytes` has samples with a score of each
class; `damage` changes bytes; `awkward_rows` has all that a sink must get right.
"""
