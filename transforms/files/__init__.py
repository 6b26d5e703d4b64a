"""Files as they are stored.

`formats` (the formats, and Parquet), `csv`, `lines` (whole lines of a growing file), `stored`.
"""
