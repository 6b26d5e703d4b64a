"""Opens the sink of a table by the form of its path: a topic, a folder of parts, or a file.

kafka://host:port/topic   each record is sent at once, as one message.
rows/                     files that are finished one after another.
rows.jsonl, ...           one file.
"""

from __future__ import annotations

from dataclasses import dataclass

import apache_beam as beam
import pyarrow as pa
from apache_beam.pvalue import PCollection

from ...core.errors import ConfigError
from ..kafka.client import check_topic
from ..kafka.topic import KafkaTopic, is_kafka
from .append import open_table
from .kafka import KafkaWriter, WriteKafka, checked_topic
from .kinds import TableKind, TableSink
from .parts import PART_FORMATS, PartFiles, WriteParts, check_folder, is_folder
from .table import WriteSortedTable, check_output


@dataclass(frozen=True)
class SinkOptions:
    """Options for writing topics and folders, for all outputs of a job.

    kafka        options of librdkafka, "key=value" or "@FILE"; they may hold a password
    part_format  the format of the files in a folder.
    csv_safe     whether text in CSV files gets an apostrophe if a spreadsheet would run it as a formula.
    """

    kafka: tuple[str, ...] = ()
    part_format: str = PART_FORMATS[0]
    csv_safe: bool = False


PLAIN_SINKS = SinkOptions()


def is_streamed(path: str) -> bool:
    """Tell whether a sink has records before a job ends, and keeps them if the job fails.

    >>> is_streamed("kafka://localhost:9092/rows"), is_streamed("rows/"), is_streamed("rows.csv")
    (True, True, False)
    """
    return is_kafka(path) or is_folder(path)


def check_sink(path: str, options: SinkOptions, what: str) -> None:
    """Check, before a job starts, that a path can be written.

    what  the option and the path, with which each error about a topic begins

    Raises ConfigError, InputError or MissingPackageError.
    """
    if is_kafka(path):
        try:
            topic = KafkaTopic.parse(path, options.kafka)
        except ConfigError as mistake:
            raise ConfigError(str(mistake).replace(path, what, 1)) from None
        check_topic(checked_topic(topic), what)
    elif is_folder(path):
        check_folder(path)
    else:
        check_output(path)


def open_sink(path: str, kind: TableKind, options: SinkOptions) -> TableSink:
    """Return the sink of a job in this process; it takes record batches in the order in which they come."""
    if is_kafka(path):
        return KafkaWriter(KafkaTopic.parse(path, options.kafka), kind)
    if is_folder(path):
        return PartFiles(path, kind, options.part_format)
    return open_table(path, kind, csv_safe=options.csv_safe)


def write_batches(
    path: str, kind: TableKind, options: SinkOptions
) -> beam.PTransform[PCollection[pa.RecordBatch], PCollection[str]]:
    """Return the transform that writes a Beam job's record batches. A file is written at the end, sorted."""
    if is_kafka(path):
        return WriteKafka(path, options.kafka)
    if is_folder(path):
        return WriteParts(path, kind, options.part_format)
    return WriteSortedTable(path, kind, csv_safe=options.csv_safe)
