"""Files as they are stored.

`formats` (CSV, Parquet, JSON), `lines` (whole lines of a growing file), `stored`.
"""
