"""Graphs that users build of our transforms need only what Dataflow's runner has.

tests/deploy/test_dataflow_request.py holds the same of the graphs that the service is handed.
"""

from __future__ import annotations

import apache_beam as beam
import pytest
import rocsteady as rs
from apache_beam.transforms.window import FixedWindows, Sessions

from tests.support.servers.dataflow_graph import asks_for_what_dataflow_has


def events_of(pipeline):
    return pipeline | beam.Create([{"model": "m", "t": 1, "score": 0.1, "label": 1}])


def evaluated(pipeline):
    result = events_of(pipeline) | rs.EvaluateModels(time="t", order="time:1h", clock="runner")
    result.rows | rs.Alert("auc < 0.8")


def in_panes(pipeline):
    events_of(pipeline) | beam.WindowInto(FixedWindows(60)) | rs.EvaluateModels(curves="end", shards=None)


def joined(pipeline):
    join = rs.JoinLabels(id="id", time="t", ttl="1d", model="model")
    predictions = pipeline | "P" >> beam.Create([{"id": "a", "t": 1, "score": 0.1, "model": "m"}])
    labels = pipeline | "L" >> beam.Create([{"id": "a", "t": 2, "label": 1}])
    ((predictions, labels) | join).events | rs.EvaluateModels(
        model="model", time="t", id="id", order=join.order, clock="runner"
    )


@pytest.mark.parametrize("build", [evaluated, in_panes, joined])
def test_a_graph_asks_for_nothing_that_dataflow_lacks(build):
    pipeline = beam.Pipeline()
    build(pipeline)
    asks_for_what_dataflow_has(pipeline.to_runner_api())


def test_windows_that_merge_are_refused_when_the_graph_is_built():
    with pytest.raises(rs.ConfigError, match="Sessions"):
        events_of(beam.Pipeline()) | beam.WindowInto(Sessions(60)) | rs.EvaluateModels()
