"""Bytes of every stored form: samples, what reads them, and bytes that are damaged.

`readers` lists every function that reads stored bytes; `corpus` keeps bytes of every form in a file for each
version, and says what they mean; `class_bytes` has samples with a score of each class; `damage` changes
bytes; `awkward_rows` has all that a sink must get right.
"""
