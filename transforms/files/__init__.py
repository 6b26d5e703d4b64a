"""Files as they are stored.

`formats` has the formats, and reads CSV and Parquet; `lines` cuts bytes into whole lines. `stored` reads
files of a stored state.
"""
