"""A job of Beam's own ReadFromKafka before the lines of docs/how-to/dataflow.md: on Prism, or as a request.

A process of its own: Beam leaves the pipes of those that it starts open, and pytest takes that for an error.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import apache_beam as beam
from apache_beam.io.kafka import ReadFromKafka
from apache_beam.options.pipeline_options import PipelineOptions

from tests.support import ROOT
from tests.support.processes.beam_runs import Keep

PAGE = ROOT / "docs/how-to/dataflow.md"


def shown_on_the_page(name="evaluate"):
    """A function that the page shows; `evaluate`: records -> rows, and records that are no event."""
    shown = {"__name__": "shown"}
    exec(re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)[0], shown)
    return shown[name]


def run(brokers, topic, number, folder, *options):
    """Evaluate so many records of a topic; keep what comes of it in a folder."""
    settings = {"bootstrap.servers": brokers, "auto.offset.reset": "earliest"}
    policy = ReadFromKafka.create_time_policy
    with beam.Pipeline(options=PipelineOptions(options)) as pipeline:
        records = pipeline | ReadFromKafka(
            settings, [topic], max_num_records=int(number), timestamp_policy=policy
        )
        rows, broken = shown_on_the_page()(records)
        rows | Keep(Path(folder), "rows")
        broken | Keep(Path(folder), "broken")


def request(*options):
    """Run the whole job of the page, as far as a runner takes it."""
    with beam.Pipeline(options=PipelineOptions(options)) as pipeline:
        shown_on_the_page("build")(pipeline)


if __name__ == "__main__":
    if sys.argv[1] == "request":
        request(*sys.argv[2:])
    else:
        run(*sys.argv[1:])
