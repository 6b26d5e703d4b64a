"""Streams as the input of `rocsteady evaluate`, as the options name them.

`topics` reads topics of Kafka, and `growing` reads stdin or growing folders. `labels` reads the options of
labels that come later, from files or from any of these.
"""
