"""What Dataflow is handed, as a proto: nothing in it that its runner does not know.

Dataflow (Runner v2) runs stateful DoFns with value, bag and timer state behind a key whose coder is
deterministic, in windows that do not merge
(https://beam.apache.org/documentation/runners/capability-matrix/).
"""

from __future__ import annotations

import apache_beam as beam
import pytest
import rocsteady as rs
from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_runner_api_pb2 as proto
from apache_beam.transforms.window import FixedWindows, Sessions

PARDO = common_urns.primitives.PAR_DO.urn
STATES = {"bag_spec": "element_coder_id", "read_modify_write_spec": "coder_id"}
"""Kinds of state, and where each has its coder."""

REQUIREMENTS = {"beam:requirement:pardo:stateful:v1", "beam:requirement:pardo:finalization:v1"}


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


@pytest.fixture(params=[evaluated, in_panes, joined])
def graph(request):
    pipeline = beam.Pipeline()
    request.param(pipeline)
    return pipeline.to_runner_api()


def stateful(graph):
    found = []
    for transform in graph.components.transforms.values():
        if transform.spec.urn == PARDO:
            payload = proto.ParDoPayload.FromString(transform.spec.payload)
            if payload.state_specs or payload.timer_family_specs:
                found.append((transform, payload))
    return found


def test_it_asks_for_nothing_that_dataflow_lacks(graph):
    assert {*graph.requirements} <= REQUIREMENTS


def test_its_state_and_timers_are_of_known_kinds(graph):
    assert stateful(graph)
    for _, payload in stateful(graph):
        assert {spec.WhichOneof("spec") for spec in payload.state_specs.values()} == {*STATES}
        domains = {spec.time_domain for spec in payload.timer_family_specs.values()}
        assert domains <= {proto.TimeDomain.EVENT_TIME}
        assert not payload.requires_time_sorted_input


def test_state_lies_behind_keys_with_a_deterministic_coder_and_is_bytes(graph):
    coders = graph.components.coders
    for transform, payload in stateful(graph):
        (name,) = transform.inputs.values()
        coder = coders[graph.components.pcollections[name].coder_id]
        assert coder.spec.urn == common_urns.coders.KV.urn
        key, value = (coders[part].spec.urn for part in coder.component_coder_ids)
        assert (key, value) == (common_urns.coders.STRING_UTF8.urn, common_urns.coders.BYTES.urn)
        for spec in payload.state_specs.values():
            kind = spec.WhichOneof("spec")
            coder = coders[getattr(getattr(spec, kind), STATES[kind])]
            assert coder.spec.urn == common_urns.coders.BYTES.urn


def test_no_windows_merge(graph):
    for windowing in graph.components.windowing_strategies.values():
        assert windowing.merge_status == proto.MergeStatus.NON_MERGING


def test_windows_that_merge_are_refused_when_the_graph_is_built():
    with pytest.raises(rs.ConfigError, match="Sessions"):
        events_of(beam.Pipeline()) | beam.WindowInto(Sessions(60)) | rs.EvaluateModels()
