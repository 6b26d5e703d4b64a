"""Readers of the tables that rocsteady wrote.

`table_rows` reads rows of files, folders and topics, each once (`read_rows`). `followed` follows tables as
they grow. `read` reads files of any table.
"""
