"""The CombineFn gives the polynomial AUC of any grouping, in all windows, however a runner merges."""

from __future__ import annotations

import doctest
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
import rocsteady as rs
from apache_beam.coders import BytesCoder, RowCoder, registry
from apache_beam.transforms.window import FixedWindows, Sessions, TimestampedValue
from rocsteady.core.measures.polynomial_auc import PolynomialAuc
from rocsteady.transforms.combine import auc as combine_auc
from rocsteady.transforms.combine.auc import CombinedPolynomialAuc, PolynomialAucCombineFn
from sklearn.metrics import roc_auc_score

from tests.support.invariants.combine_runs import grown_at_random
from tests.support.processes.beam_runs import PROCESSES, InOrder, Keep, kept, pipeline

RNG = np.random.default_rng(3)
_groups = RNG.choice(["a", "b", "rare"], 400, p=[0.6, 0.39, 0.01])
LABELS = RNG.integers(0, 2, 400)
SCORES = np.tanh(RNG.normal(size=400) + LABELS).round(2)
_seconds = np.cumsum(RNG.exponential(4.0, 400))


def summary(labels: Any, scores: Any, **choices: Any) -> CombinedPolynomialAuc:
    auc = PolynomialAuc(**choices)
    auc.add(labels, scores)
    estimate = auc.estimate()
    return CombinedPolynomialAuc(
        auc.events, auc.positives, auc.negatives, estimate.low, estimate.auc, estimate.high, estimate.bound,
        "auc: one class in window" if estimate.auc is None else None,
    )  # fmt: skip


def keyed() -> list[Any]:
    columns = (_groups.tolist(), LABELS.tolist(), SCORES.tolist(), _seconds.tolist())
    return [
        TimestampedValue((group, (label, score)), time)
        for group, label, score, time in zip(*columns, strict=True)
    ]


@pytest.mark.parametrize("runner", ["in process", PROCESSES])
def test_it_combines_per_key_and_globally(tmp_path: Path, runner: str) -> None:
    with pipeline(runner) as p:
        events = p | InOrder(keyed()) | beam.Map(lambda event: event)
        events | beam.CombinePerKey(PolynomialAucCombineFn()) | "keyed" >> Keep(tmp_path, "keyed")
        whole = (
            events | beam.Values() | beam.CombineGlobally(PolynomialAucCombineFn(12, (-1, 2), "chebyshev"))
        )
        whole | "whole" >> Keep(tmp_path, "whole")
    results = {group: value for (group, value), _, _ in kept(tmp_path, "keyed")}
    assert results == {
        group: summary(LABELS[_groups == group], SCORES[_groups == group]) for group in ("a", "b", "rare")
    }
    ((got, _, _),) = kept(tmp_path, "whole")
    assert got == summary(LABELS, SCORES, degree=12, interval=(-1, 2), fit="chebyshev")
    assert got[3] < roc_auc_score(LABELS, SCORES) < got[5]


def test_no_events_have_counts_and_a_reason(tmp_path: Path) -> None:
    with pipeline() as p:
        p | beam.Create([]) | beam.CombineGlobally(PolynomialAucCombineFn()) | Keep(tmp_path, "none")
    (only,) = kept(tmp_path, "none")
    assert only.value == (0, 0, 0, None, None, None, None, "auc: one class in window")


@pytest.mark.parametrize("windows", [FixedWindows(100), Sessions(20)], ids=["fixed", "sessions"])
def test_every_window_has_an_auc(tmp_path: Path, windows: Any) -> None:
    with pipeline() as p:
        events = p | InOrder(random.Random(1).sample(keyed(), 400)) | beam.Map(lambda event: event)
        combined = events | beam.WindowInto(windows) | beam.CombinePerKey(PolynomialAucCombineFn())
        combined | Keep(tmp_path, "panes")
    results = kept(tmp_path, "panes")
    assert sum(value.events for (_, value), _, _ in results) == 400
    assert len(results) > 20
    for (group, got), _, pane in results:
        assert pane is not None
        inside = (_groups == group) & (_seconds >= pane[0]) & (_seconds < pane[1])
        assert got == summary(LABELS[inside], SCORES[inside])


@pytest.mark.slow
def test_batches_are_as_single_events(tmp_path: Path) -> None:
    labels, scores = RNG.integers(0, 2, 9_000), RNG.uniform(-1, 1, 9_000)
    batches = [(labels[a:b], scores[a:b]) for a, b in pairwise([0, 3, 700, 701, 6_000, 9_000])]
    with pipeline() as p:
        combined = p | InOrder(batches) | beam.CombineGlobally(PolynomialAucCombineFn())
        combined | Keep(tmp_path, "batches")
        pairs = p | "one by one" >> InOrder(list(zip(labels.tolist(), scores.tolist(), strict=True)))
        single = pairs | "single" >> beam.CombineGlobally(PolynomialAucCombineFn())
        single | "kept" >> Keep(tmp_path, "single")
    ((batch, _, _),), ((single, _, _),) = kept(tmp_path, "batches"), kept(tmp_path, "single")
    assert batch == single == summary(labels, scores)


@pytest.mark.parametrize("seed", range(4))
def test_it_does_not_matter_how_a_runner_adds_merges_and_compacts(seed: int) -> None:
    rng = random.Random(seed)
    pairs = [(rng.randint(0, 1), rng.uniform(-1, 1)) for _ in range(rng.choice((20, 400, 5_000)))]
    combine = PolynomialAucCombineFn(8)
    expected = summary(*map(list, zip(*pairs, strict=True)), degree=8)
    grown = [grown_at_random(combine, pairs, rng) for _ in range(3)]
    assert [combine.extract_output(accumulator) for accumulator in grown] == [expected] * 3
    assert len({combine.settled(accumulator).to_bytes() for accumulator in grown}) == 1


def test_accumulators_are_bytes_and_bounded() -> None:
    combine = PolynomialAucCombineFn()
    assert isinstance(combine.get_accumulator_coder(), BytesCoder)
    accumulator = combine.create_accumulator()
    for place in range(10_000):
        accumulator = combine.add_input(accumulator, (place % 2, place / 10_000))
        assert type(accumulator) is bytes
        assert len(accumulator) <= 700 + 2_048 * 9
    assert len(combine.compact(accumulator)) <= 700
    assert PolynomialAuc.from_bytes(combine.compact(accumulator)).events == 10_000


def test_what_comes_out_is_typed() -> None:
    p = beam.Pipeline(runner="apache_beam.runners.portability.fn_api_runner.FnApiRunner")
    pairs = p | beam.Create([(1, 0.5)])
    assert (pairs | beam.CombineGlobally(PolynomialAucCombineFn())).element_type is CombinedPolynomialAuc
    assert isinstance(registry.get_coder(CombinedPolynomialAuc), RowCoder)


@pytest.mark.parametrize(
    ("element", "words"),
    [
        ((1, float("nan")), r"in \(1, nan\), scores\[0\] is nan: a score is a finite number.* filter such"),
        ((1, 1.5), r"in \(1, 1.5\), scores\[0\] is 1.5, outside the interval \(-1.0, 1.0\): make it for the"),
        (([1, 0], [0.5, -2]), r"scores\[1\] is -2.0, outside the interval"),
        ((2, 0.5), r"in \(2, 0.5\), labels\[0\] is .*2.*map other labels to 1 and 0 before; a CombineFn"),
        (([1, 0], [0.5]), r"labels of shape \(2,\) and scores of shape \(1,\)"),
        ((1, 0.5, 3), r"\(1, 0.5, 3\) is no \(label, score\) and no \(labels, scores\)"),
    ],
    ids=repr,
)
def test_what_is_no_event_is_refused_with_the_remedy(element: Any, words: str) -> None:
    combine = PolynomialAucCombineFn()
    with pytest.raises(rs.InputError, match=f"^PolynomialAucCombineFn: .*{words}"):
        combine.add_input(combine.create_accumulator(), element)


def test_the_example_is_true() -> None:
    assert doctest.testmod(combine_auc).failed == 0


def test_settings_that_cannot_be_are_refused() -> None:
    for wrong in ({"degree": 1}, {"interval": (1, 0)}, {"fit": "lower"}):
        with pytest.raises(rs.ConfigError, match=f"{next(iter(wrong))}="):
            PolynomialAucCombineFn(**wrong)
