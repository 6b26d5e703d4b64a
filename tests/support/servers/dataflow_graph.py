"""What Dataflow's runner has, held against a graph as a proto.

Dataflow (Runner v2) runs stateful DoFns with value, bag and timer state behind a key whose coder is
deterministic, in windows that do not merge
(https://beam.apache.org/documentation/runners/capability-matrix/).
"""

from __future__ import annotations

from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_runner_api_pb2 as proto

PARDO = common_urns.primitives.PAR_DO.urn
STATES = {"bag_spec": "element_coder_id", "read_modify_write_spec": "coder_id"}
"""Kinds of state, and where each has its coder."""

REQUIREMENTS = {
    common_urns.requirements.REQUIRES_STATEFUL_PROCESSING.urn,
    common_urns.requirements.REQUIRES_BUNDLE_FINALIZATION.urn,
    common_urns.requirements.REQUIRES_SPLITTABLE_DOFN.urn,
}


def stateful(graph):
    """Return (transform, payload) of the DoFns with state or timers."""
    found = []
    for transform in graph.components.transforms.values():
        if transform.spec.urn == PARDO:
            payload = proto.ParDoPayload.FromString(transform.spec.payload)
            if payload.state_specs or payload.timer_family_specs:
                found.append((transform, payload))
    return found


def asks_for_what_dataflow_has(graph):
    """Assert that a graph has stateful DoFns, and nothing that Dataflow lacks."""
    assert {*graph.requirements} <= REQUIREMENTS
    for windowing in graph.components.windowing_strategies.values():
        assert windowing.merge_status == proto.MergeStatus.NON_MERGING
    assert stateful(graph)
    for transform, payload in stateful(graph):
        assert {spec.WhichOneof("spec") for spec in payload.state_specs.values()} <= {*STATES}
        domains = {spec.time_domain for spec in payload.timer_family_specs.values()}
        assert domains <= {proto.TimeDomain.EVENT_TIME}
        assert not payload.requires_time_sorted_input
        _keys_are_text_and_state_is_bytes(graph, transform, payload)


def _keys_are_text_and_state_is_bytes(graph, transform, payload):
    coders = graph.components.coders
    (name,) = transform.inputs.values()
    coder = coders[graph.components.pcollections[name].coder_id]
    assert coder.spec.urn == common_urns.coders.KV.urn
    key, value = (coders[part].spec.urn for part in coder.component_coder_ids)
    assert (key, value) == (common_urns.coders.STRING_UTF8.urn, common_urns.coders.BYTES.urn)
    for spec in payload.state_specs.values():
        kind = spec.WhichOneof("spec")
        coder = coders[getattr(getattr(spec, kind), STATES[kind])]
        assert coder.spec.urn == common_urns.coders.BYTES.urn
