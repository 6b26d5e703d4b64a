"""A small stateful job whose output shows every state it had: sums per key, appended to a file of lines."""

from __future__ import annotations

import json
from pathlib import Path

import apache_beam as beam
from apache_beam.coders import VarIntCoder
from apache_beam.io.flink.flink_streaming_impulse_source import FlinkStreamingImpulseSource
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms.userstate import ReadModifyWriteStateSpec

PAIRS = [("a", 1), ("b", 2), ("a", 3), ("b", 4), ("a", 5)]
SUMS = {"a": 9, "b": 6}


class Sum(beam.DoFn):
    STATE = beam.DoFn.StateParam(ReadModifyWriteStateSpec("sum", VarIntCoder()))

    def __init__(self, path):
        self.path = str(path)

    def process(self, pair, state=STATE):
        total = (state.read() or 0) + pair[1]
        state.write(total)
        with Path(self.path).open("a") as lines:
            lines.write(f"{json.dumps([pair[0], total])}\n")


def sum_pairs(options, path):
    """Sum a handful of pairs; return the greatest sum of each key."""
    with beam.Pipeline(options=PipelineOptions(options)) as pipeline:
        pairs = pipeline | beam.Create(PAIRS).with_output_types(tuple[str, int])
        pairs | beam.ParDo(Sum(path))
    return {key: max(totals) for key, totals in sums(path).items()}


def count_ticks(options, path):
    """Start a job that counts ticks, twenty a second, until it is stopped; return it."""
    pipeline = beam.Pipeline(options=PipelineOptions([*options, "--streaming"]))
    ticks = pipeline | FlinkStreamingImpulseSource().set_interval_ms(50)
    pairs = ticks | beam.Map(lambda _: ("tick", 1)).with_output_types(tuple[str, int])
    pairs | beam.ParDo(Sum(path))
    return pipeline.run()


def sums(path):
    """The sums of each key in the order in which they were written; half a line does not count yet."""
    found = {}
    if Path(path).exists():
        for line in Path(path).read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                key, total = json.loads(line)
                found.setdefault(key, []).append(total)
    return found
