"""The CombineFn gives the AUC and H of any grouping, in all windows, however a runner adds and merges."""

from __future__ import annotations

import doctest
import random
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
import rocsteady as rs
from apache_beam.coders import BytesCoder, RowCoder, registry
from apache_beam.testing import test_stream
from apache_beam.transforms.trigger import AccumulationMode, AfterCount, Repeatedly
from apache_beam.transforms.window import (
    FixedWindows,
    GlobalWindows,
    Sessions,
    SlidingWindows,
    TimestampedValue,
)
from rocsteady.core.sketches.auc_sketch import AucSketch
from rocsteady.transforms.combine import auc as combine_auc
from rocsteady.transforms.combine.auc import AucCombineFn, CombinedAuc
from sklearn.metrics import roc_auc_score

from tests.support.invariants.combine_runs import grown_at_random
from tests.support.processes.beam_runs import PROCESSES, InOrder, Keep, kept, pipeline

Event = tuple[str, int, float, float]
"""Group, label, score, seconds."""

RNG = np.random.default_rng(3)
EVENTS: list[Event] = [
    (str(group), int(label), float(score) + int(label), float(seconds))
    for group, label, score, seconds in zip(
        RNG.choice(["a", "b", "rare"], 600, p=[0.6, 0.39, 0.01]), RNG.integers(0, 2, 600),
        RNG.normal(size=600).round(1), np.cumsum(RNG.exponential(4.0, 600)), strict=True,
    )
]  # fmt: skip


def summary(events: list[Event]) -> CombinedAuc:
    """What is to come out, from the measures of an evaluator."""
    labels, scores = [event[1] for event in events], [event[2] for event in events]
    ev = rs.ModelEvaluator(window=rs.AllEvents(), every=rs.EveryEvents(10**6))
    ev.update(labels, scores)
    both = 0 < sum(labels) < len(labels)
    auc, h = (float(roc_auc_score(labels, scores)), ev.measures().h) if both else (None, None)
    reason = None if both else "auc, h: one class in window"
    n, p = len(labels), sum(labels)
    return CombinedAuc(n, p, n - p, auc, auc, auc, h, h, h, True, reason)


def same(got: Any, wanted: CombinedAuc) -> bool:
    return all(
        value == other or (isinstance(other, float) and value == pytest.approx(other, abs=1e-12))
        for value, other in zip(got, wanted, strict=True)
    )


def keyed(events: list[Event]) -> list[Any]:
    return [TimestampedValue((group, (label, score)), time) for group, label, score, time in events]


def by_pane(events: list[Event], size: float, period: float) -> dict[Any, list[Event]]:
    groups = defaultdict(list)
    for event in events:
        start = event[3] // period * period
        while start > event[3] - size:
            groups[event[0], (int(start), int(start + size))].append(event)
            start -= period
    return groups


def by_session(events: list[Event], gap: float) -> dict[Any, list[Event]]:
    groups: dict[Any, list[Event]] = {}
    for group in sorted({event[0] for event in events}):
        session: list[Event] = []
        for event in sorted((e for e in events if e[0] == group), key=lambda e: e[3]):
            if session and event[3] >= session[-1][3] + gap:
                groups[group, session[0][3]] = session
                session = []
            session.append(event)
        groups[group, session[0][3]] = session
    return groups


@pytest.mark.parametrize("runner", ["in process", PROCESSES])
def test_it_combines_per_key_and_globally(tmp_path: Path, runner: str) -> None:
    with pipeline(runner) as p:
        events = p | InOrder(keyed(EVENTS)) | beam.Map(lambda event: event)
        events | beam.CombinePerKey(AucCombineFn()) | "keyed" >> Keep(tmp_path, "keyed")
        values = events | beam.Values()
        whole = values | beam.CombineGlobally(AucCombineFn(cost=rs.UniformCost(), priors=0.3))
        whole | "whole" >> Keep(tmp_path, "whole")
    results = {group: value for (group, value), _, _ in kept(tmp_path, "keyed")}
    assert results.keys() == {"a", "b", "rare"}
    for group, got in results.items():
        assert same(got, summary([event for event in EVENTS if event[0] == group]))
    ((got, _, _),) = kept(tmp_path, "whole")
    ev = rs.ModelEvaluator(window=rs.AllEvents(), cost=rs.UniformCost(), priors=0.3)
    ev.update([event[1] for event in EVENTS], [event[2] for event in EVENTS])
    assert CombinedAuc(*got).h == pytest.approx(ev.measures().h, abs=1e-12)


def test_no_events_have_counts_and_a_reason(tmp_path: Path) -> None:
    with pipeline() as p:
        p | beam.Create([]) | beam.CombineGlobally(AucCombineFn()) | Keep(tmp_path, "none")
    (only,) = kept(tmp_path, "none")
    reason = "auc, h: one class in window"
    assert only.value == (0, 0, 0, None, None, None, None, None, None, True, reason)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("windows", "size", "period"),
    [(FixedWindows(100), 100, 100), (SlidingWindows(120, 40), 120, 40)],
    ids=["fixed", "sliding"],
)
def test_fixed_and_sliding_windows_have_an_auc_each(
    tmp_path: Path, windows: Any, size: float, period: float
) -> None:
    with pipeline() as p:
        events = p | InOrder(keyed(EVENTS)) | beam.Map(lambda event: event)
        events | beam.WindowInto(windows) | beam.CombinePerKey(AucCombineFn()) | Keep(tmp_path, "panes")
    results = {(value[0], pane): value[1] for value, _, pane in kept(tmp_path, "panes")}
    wanted = by_pane(EVENTS, size, period)
    assert results.keys() == wanted.keys()
    assert len({pane for _, pane in wanted}) > 15
    for key, events in wanted.items():
        assert same(results[key], summary(events))


@pytest.mark.parametrize("runner", ["in process", PROCESSES])
def test_sessions_merge_into_one_auc(tmp_path: Path, runner: str) -> None:
    shuffled = random.Random(1).sample(EVENTS, len(EVENTS))
    with pipeline(runner) as p:
        events = p | InOrder(keyed(shuffled)) | beam.Map(lambda event: event)
        (
            events
            | beam.WindowInto(Sessions(20))
            | beam.CombinePerKey(AucCombineFn())
            | Keep(tmp_path, "sessions")
        )
    wanted = by_session(EVENTS, 20)
    assert 20 < len(wanted) < 200
    assert max(map(len, wanted.values())) > 30
    results = kept(tmp_path, "sessions")
    assert len(results) == len(wanted)
    for (group, got), _, pane in results:
        assert pane is not None
        inside = [event for event in EVENTS if event[0] == group and pane[0] <= event[3] < pane[1]]
        assert same(got, summary(inside))
        assert inside in wanted.values()


def test_accumulating_panes_hold_everything_so_far(tmp_path: Path) -> None:
    stream = test_stream.TestStream()
    for label, score in [(0, 0.1), (1, 0.3), (0, 0.3), (1, 0.2)]:
        stream.add_elements([(label, score)])
    stream.advance_watermark_to_infinity()
    with pipeline("retrying", "--streaming") as p:
        windowed = p | stream | beam.WindowInto(
            GlobalWindows(),
            trigger=Repeatedly(AfterCount(1)),
            accumulation_mode=AccumulationMode.ACCUMULATING,
        )  # fmt: skip
        combined = windowed | beam.CombineGlobally(AucCombineFn()).without_defaults()
        combined | Keep(tmp_path, "panes")
    panes = sorted({CombinedAuc(*pane.value) for pane in kept(tmp_path, "panes")}, key=lambda one: one.events)
    assert [(one.events, one.auc) for one in panes] == [(1, None), (2, 1.0), (3, 0.75), (4, 0.625)]


def test_batches_are_as_single_events(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, 9_000), rng.normal(size=9_000)
    cuts = [0, 3, 700, 701, 6_000, 9_000]
    batches = [(labels[a:b], scores[a:b]) for a, b in pairwise(cuts)]
    with pipeline() as p:
        combined = p | InOrder(batches) | beam.CombineGlobally(AucCombineFn(2048))
        combined | Keep(tmp_path, "batches")
        pairs = p | "one by one" >> InOrder(list(zip(labels.tolist(), scores.tolist(), strict=True)))
        pairs | "single" >> beam.CombineGlobally(AucCombineFn(2048)) | Keep(tmp_path, "single")
    ((batch, _, _),), ((single, _, _),) = kept(tmp_path, "batches"), kept(tmp_path, "single")
    assert batch == single
    result = CombinedAuc(*batch)
    assert not result.exact
    assert result.events == 9_000
    assert result.auc_low < roc_auc_score(labels, scores) < result.auc_high
    assert result.h_low < result.h < result.h_high


@pytest.mark.parametrize("seed", range(8))
def test_it_does_not_matter_how_a_runner_adds_merges_and_compacts(seed: int) -> None:
    rng = random.Random(seed)
    events = rng.choice((20, 400, 5_000))
    pairs = [(rng.randint(0, 1), rng.gauss(0, 1)) for _ in range(events)]
    combine, sketch = AucCombineFn(1024), AucSketch(1024)
    for label, score in pairs:
        sketch.add(label, score)
    expected = CombinedAuc(
        events, sketch.positives, sketch.negatives, *sketch.bounds(), *sketch.h_bounds(), events == 20, None
    )
    for _ in range(3):
        assert combine.extract_output(grown_at_random(combine, pairs, rng)) == expected


def test_accumulators_are_bytes_and_bounded() -> None:
    combine = AucCombineFn(4096)
    assert isinstance(combine.get_accumulator_coder(), BytesCoder)
    accumulator = combine.create_accumulator()
    for place in range(10_000):
        accumulator = combine.add_input(accumulator, (place % 2, place * 0.1))
        assert len(accumulator) <= 4096 + 2_048 * 9
    assert len(combine.compact(accumulator)) <= 4096
    assert AucSketch.from_bytes(combine.compact(accumulator)).events == 10_000


def test_what_comes_out_is_typed() -> None:
    p = beam.Pipeline(runner="apache_beam.runners.portability.fn_api_runner.FnApiRunner")
    pairs = p | beam.Create([(1, 0.5)])
    assert (pairs | beam.CombineGlobally(AucCombineFn())).element_type is CombinedAuc
    keyed_pairs = pairs | beam.Map(lambda pair: ("k", pair)).with_output_types(tuple[str, tuple[int, float]])
    assert (keyed_pairs | beam.CombinePerKey(AucCombineFn())).element_type == beam.typehints.Tuple[
        str, CombinedAuc
    ]
    assert isinstance(registry.get_coder(CombinedAuc), RowCoder)


@pytest.mark.parametrize("label", [1, 1.0, True, np.int64(1), np.bool_(True), np.float32(1)], ids=repr)
def test_a_label_may_be_any_kind_of_one(label: Any) -> None:
    combine = AucCombineFn()
    accumulator = combine.add_input(combine.create_accumulator(), (label, np.float32(0.5)))
    accumulator = combine.add_input(accumulator, (-1, 1))
    assert combine.extract_output(accumulator)[:5] == (2, 1, 1, 0.0, 0.0)


@pytest.mark.parametrize(
    ("element", "words"),
    [
        ((1, float("nan")), r"in \(1, nan\), scores\[0\] is nan: a score is a finite number.* filter such"),
        ((1, float("inf")), r"scores\[0\] is inf"),
        ((2, 0.5), r"in \(2, 0.5\), labels\[0\] is .*2.*map other labels to 1 and 0 before; a CombineFn"),
        (("up", 0.5), r"labels\[0\] is .*up"),
        ((None, 0.5), r"labels\[0\] is None"),
        ((1, None), r"scores\[0\] is nan"),
        ((1, "high"), "scores are not numbers"),
        (([1, 0], [0.5]), r"labels of shape \(2,\) and scores of shape \(1,\)"),
        (([1, 0], [0.5, np.nan]), r"scores\[1\] is nan"),
        (0.5, r"0.5 is no \(label, score\) and no \(labels, scores\); map events to such pairs before"),
        ({"label": 1, "score": 0.5}, r"\{'label': 1, 'score': 0.5\} is no \(label, score\)"),
        ((1, 0.5, 3), r"\(1, 0.5, 3\) is no"),
        ("10", r"'10' is no"),
        (None, "None is no"),
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_event_is_refused_with_the_remedy(element: Any, words: str) -> None:
    combine = AucCombineFn()
    with pytest.raises(rs.InputError, match=f"^AucCombineFn: .*{words}"):
        combine.add_input(combine.create_accumulator(), element)


def test_the_example_is_true() -> None:
    assert doctest.testmod(combine_auc).failed == 0


def test_a_pipeline_fails_with_that_sentence() -> None:
    with (
        pytest.raises(rs.InputError, match=r"scores\[0\] is nan: a score is a finite number"),
        pipeline() as p,
    ):
        p | beam.Create([(1, 0.5), (0, float("nan"))]) | beam.CombineGlobally(AucCombineFn())


def test_settings_that_cannot_be_are_refused() -> None:
    for wrong, words in (
        ({"max_bytes": 10}, "max_bytes=10"), ({"cost": "beta"}, "cost='beta'"), ({"priors": 2}, "priors=2"),
    ):  # fmt: skip
        with pytest.raises(rs.ConfigError, match=words):
            AucCombineFn(**wrong)


def test_extreme_costs_leave_h_null_with_a_reason() -> None:
    combine = AucCombineFn(cost=rs.BetaCost(1e308, 1e308))
    accumulator = combine.add_input(combine.create_accumulator(), ([0, 1], [0.1, 0.2]))
    result = combine.extract_output(accumulator)
    assert (result.auc, result.h, result.exact) == (1.0, None, True)
    assert result.reason == "h: the numbers are beyond what a float holds"


def test_who_refuses_sessions_names_it() -> None:
    p = beam.Pipeline(runner="apache_beam.runners.portability.fn_api_runner.FnApiRunner")
    sessions = p | beam.Create([{"model": "m", "label": 1, "score": 0.5}]) | beam.WindowInto(Sessions(10))
    with pytest.raises(rs.ConfigError, match=r"beam\.CombinePerKey\(rocsteady\.AucCombineFn\(\)\)"):
        sessions | rs.EvaluateModels()
