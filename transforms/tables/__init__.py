"""Tables of rows that are read back.

`rows` (`read_rows`), `read` (files of any kind), `kafka_rows` (topics).
"""
