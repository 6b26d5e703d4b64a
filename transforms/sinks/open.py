"""Where a table goes, by what its path says: a topic, a folder of parts, or a file.

kafka://host:port/topic   a message a record, at once
rows/                     files that are finished one after another
rows.jsonl, ...           one file
"""

from __future__ import annotations

from dataclasses import dataclass

import apache_beam as beam
import pyarrow as pa
from apache_beam.pvalue import PCollection

from ...core.errors import ConfigError
from ..kafka.client import check_topic
from ..kafka.topic import KafkaTopic, is_kafka
from .append import TableSink, open_table
from .kafka import KafkaWriter, WriteKafka, checked_topic
from .kinds import TableKind
from .parts import PART_FORMATS, PartFiles, WriteParts, check_folder, is_folder
from .sorted import WriteSortedTable
from .table import check_output


@dataclass(frozen=True)
class SinkOptions:
    """How topics and folders are written, whichever of a job's outputs they are.

    kafka        options of librdkafka, "key=value" or "@FILE"; they may hold a password
    part_format  of the files in a folder
    csv_safe     text in CSV files that a spreadsheet would run as a formula gets an apostrophe
    """

    kafka: tuple[str, ...] = ()
    part_format: str = PART_FORMATS[0]
    csv_safe: bool = False


PLAIN_SINKS = SinkOptions()


def is_streamed(path: str) -> bool:
    """Tell whether records are there before a job ends, and stay if it fails.

    >>> is_streamed("kafka://localhost:9092/rows"), is_streamed("rows/"), is_streamed("rows.csv")
    (True, True, False)
    """
    return is_kafka(path) or is_folder(path)


def check_sink(path: str, options: SinkOptions, what: str) -> None:
    """See, before a job starts, that a path can be written.

    what  the option and the path, with which sentences about a topic begin
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
    """Return what takes the record batches of a job in this process, in the order in which they come."""
    if is_kafka(path):
        return KafkaWriter(KafkaTopic.parse(path, options.kafka), kind)
    if is_folder(path):
        return PartFiles(path, kind, options.part_format)
    return open_table(path, kind.schema, kind.order, csv_safe=options.csv_safe)


def write_batches(
    path: str, kind: TableKind, options: SinkOptions
) -> beam.PTransform[PCollection[pa.RecordBatch], PCollection[str]]:
    """Return what writes the record batches of a job on Beam. A file is written at its end, sorted."""
    if is_kafka(path):
        return WriteKafka(path, options.kafka)
    if is_folder(path):
        return WriteParts(path, kind, options.part_format)
    counted = None if kind.counter is None else (kind.counter, kind.number)
    return WriteSortedTable(path, kind.schema, kind.order, counted, csv_safe=options.csv_safe)
