"""What workers on Dataflow do with staged graphs: `python dataflow_worker.py GRAPH [GRAPH...]`.

Every step of every graph is unpickled, and the first graph is run, in this process instead of the image. The
process has rocsteady alone: what was pickled by reference to a test cannot be read here.
"""

from __future__ import annotations

import sys
from pathlib import Path

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_runner_api_pb2 as proto
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.environments import EmbeddedPythonEnvironment


def main(*places: str) -> None:
    """Read all graphs; run the first."""
    graphs = [proto.Pipeline.FromString(Path(place).read_bytes()) for place in places]
    for graph in graphs:
        beam.Pipeline.from_runner_api(graph, FnApiRunner(), PipelineOptions())
    for environment in graphs[0].components.environments.values():
        environment.CopyFrom(EmbeddedPythonEnvironment.default().to_runner_api(None))
    result = FnApiRunner().run_via_runner_api(graphs[0], PipelineOptions())
    assert str(result.wait_until_finish()) == "DONE"


if __name__ == "__main__":
    main(*sys.argv[1:])
