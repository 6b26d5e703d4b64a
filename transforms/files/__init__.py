"""Files as they are stored on a disk or in a cloud.

`formats` has the formats, and reads Parquet; `lines` cuts bytes into whole lines. `csv_quotes` finds quotes
that swallow records of CSV, `csv_text` cuts CSV text into whole records, and `csv_chunks` reads the records.
`stored` reads files of a stored state.
"""
