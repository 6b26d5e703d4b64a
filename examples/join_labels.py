"""A Beam pipeline: predictions and the labels that come later, from two files, joined by id and evaluated.

    python examples/make_data.py data
    python examples/join_labels.py data/predictions.csv data/labels.csv out

writes rows of measures, alerts and the records that do not count into the folder `out`. To read other
sources, put other connectors of Beam in place of `read`. Options of a runner follow the three arguments.
"""

import csv
import json
import sys
from datetime import datetime

import apache_beam as beam
import rocsteady as rs
from apache_beam.io import fileio
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms.window import TimestampedValue


class ReadCsv(beam.DoFn):
    """Read records of a CSV file, each with its own time as Beam's timestamp."""

    def __init__(self, time):
        self.time = time

    def process(self, file):
        """Give the records of one file. Raises csv.Error for a quote that is never closed."""
        for record in csv.DictReader(file.read_utf8().splitlines(keepends=True), strict=True):
            yield TimestampedValue(record, datetime.fromisoformat(record[self.time]).timestamp())


def read(pipeline, path, time):
    """Return a PCollection of the records of a file."""
    if not FileSystems.match([path])[0].metadata_list:
        sys.exit(f"{path} does not exist")
    steps = fileio.MatchFiles(path) | fileio.ReadMatches() | beam.ParDo(ReadCsv(time))
    return pipeline | f"read {path}" >> steps


def as_json(record):
    """Return a row, an alert or a dead letter as a line of JSON."""
    return json.dumps(record._asdict(), default=str)


def main(predictions_path, labels_path, folder, *options):
    """Join, evaluate and write."""
    join = rs.JoinLabels(id="id", time="time", label_time="known", ttl="1d", label_lead=0, model="model")
    with beam.Pipeline(options=PipelineOptions(list(options) or ["--runner=FnApiRunner"])) as pipeline:
        joined = (read(pipeline, predictions_path, "time"), read(pipeline, labels_path, "known")) | join
        result = joined.events | rs.EvaluateModels(
            model="model",
            id="id",
            time="time",
            order=join.order,  # waits as long as a label may take
            clock="runner",  # Beam's watermark says what is complete
            window=rs.LastEvents(100),
            every=rs.EveryEvents(20),
        )
        outputs = {
            "rows": result.rows,
            "alerts": result.rows | rs.Alert("auc_high < 0.7 for 3 rows"),
            "unmatched": joined.unmatched,
            "dead_letters": result.dead_letters,
        }
        for name, records in outputs.items():
            lines = records | f"{name} as JSON" >> beam.Map(as_json)
            lines | f"write {name}" >> beam.io.WriteToText(f"{folder}/{name}.jsonl", shard_name_template="")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
