"""Readers of the tables that rocsteady wrote.

`rows` reads rows, each once (`read_rows`). `read` reads files of any table, and `kafka_rows` reads topics.
"""
