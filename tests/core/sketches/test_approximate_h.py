"""An approximate H, or area under the cost curve, keeps its promise at every prefix of every stream."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import ConfigError, InputError
from rocsteady.core.evaluator.evaluator import ModelEvaluator
from rocsteady.core.measures.at_row import h_measure
from rocsteady.core.score_tree.tree import ScoreTree
from rocsteady.core.settings.costs import BetaCost, Cost, SeverityCost, UniformCost
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.sketches.approximate_h import approximate_cost_curve_area, approximate_h

from tests.support.oracles.measures import beta_density, cost_curve_area, h_by_integration
from tests.support.oracles.score_tree import Oracle, steepening, streams
from tests.support.thorough import THOROUGH, at_length, examples

EPSILONS = (0.01, 0.1, 0.5, 3.0)
COSTS: list[tuple[Cost, Any]] = [
    (BetaCost(2, 2), 0.3),
    (BetaCost(2, 5.5), 0.01),
    (UniformCost(), 0.9),
    (SeverityCost(), 0.2),
    (SeverityCost("balanced"), "window"),
]
ROUNDING = 1e-12


def all_streams(events: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    found = {name: (labels, scores) for name, labels, scores in streams(events, 11)}
    return {**found, "a hull as large as can be": steepening(events)}


STREAMS = all_streams(160 if THOROUGH else 100)


def exact_h(oracle: Oracle, cost: Cost, priors: Any) -> float:
    x, y = (np.diff(column) for column in oracle.hull())
    return h_measure(x - y, y, EvaluatorSettings(cost=cost, priors=priors))


def exact_area(oracle: Oracle) -> float:
    edges = zip(*(pairwise(column) for column in oracle.hull()), strict=True)
    shares = [((e - b) / oracle.positives, (d - a - e + b) / oracle.negatives) for (a, d), (b, e) in edges]
    return sum(p * n / (p + n) for p, n in shares) / 2


def keeps_its_promise(tree: ScoreTree, oracle: Oracle, cost: Cost, priors: Any) -> None:
    if not oracle.has_both:
        assert approximate_h(tree, 0.1, priors, cost) is None
        assert approximate_cost_curve_area(tree, 0.1) is None
        return
    h, area = exact_h(oracle, cost, priors), exact_area(oracle)
    no_h, no_area = approximate_h(tree, 0, priors, cost), approximate_cost_curve_area(tree, 0)
    assert no_h
    assert no_area
    assert no_h.value == no_h.low == no_h.high == h
    assert no_area.value == no_area.low == no_area.high == pytest.approx(area, abs=ROUNDING)
    assert no_h.vertices == no_area.vertices == len(oracle.hull()[0])
    fewer = min(oracle.positives, oracle.negatives)
    for epsilon in EPSILONS:
        some_h = approximate_h(tree, epsilon, priors, cost)
        assert some_h
        assert h - epsilon * (1 - h) - ROUNDING <= some_h.value <= h + ROUNDING
        assert some_h.value == some_h.low <= h + ROUNDING
        assert h <= some_h.high + ROUNDING
        assert some_h.bound <= epsilon * (1 - h) + ROUNDING
        some_area = approximate_cost_curve_area(tree, epsilon)
        assert some_area
        assert area - ROUNDING <= some_area.value <= (1 + epsilon) * area + ROUNDING
        assert some_area.low - ROUNDING <= area
        assert some_area.value == some_area.high
        assert some_area.bound <= epsilon * area + ROUNDING
        assert some_h.vertices == some_area.vertices <= no_h.vertices
        assert some_h.vertices < 2 * math.log(fewer) / math.log(1 + epsilon) + 4


@pytest.mark.at_length
@pytest.mark.parametrize("stream", STREAMS)
def test_bounds_hold_at_every_prefix(stream: str) -> None:
    labels, scores = STREAMS[stream]
    tree = ScoreTree()
    for t in range(len(labels)):
        tree.insert(labels[t : t + 1], scores[t : t + 1])
        if t % at_length(1, 3):
            continue
        oracle = Oracle(list(zip(labels[: t + 1].tolist(), scores[: t + 1].tolist(), strict=True)))
        keeps_its_promise(tree, oracle, *COSTS[t % len(COSTS)])


@pytest.mark.slow
@pytest.mark.parametrize("stream", STREAMS)
def test_bounds_hold_at_every_step_of_a_sliding_window(stream: str) -> None:
    labels, scores = STREAMS[stream]
    tree, k = ScoreTree(), 50
    for t in range(len(labels)):
        tree.insert(labels[t : t + 1], scores[t : t + 1])
        if t >= k:
            tree.remove(labels[t - k : t - k + 1], scores[t - k : t - k + 1])
        held = slice(max(0, t + 1 - k), t + 1)
        oracle = Oracle(list(zip(labels[held].tolist(), scores[held].tolist(), strict=True)))
        keeps_its_promise(tree, oracle, *COSTS[t % len(COSTS)])


def long_stream(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "a hull as large as can be":
        return steepening(20_000)
    rng = np.random.default_rng(7)
    labels = (rng.random(20_000) < (0.01 if name == "rare positives" else 0.5)).astype(np.int8)
    return labels, rng.normal(size=20_000) + labels


@pytest.mark.parametrize(
    ("stream", "share"), [("random", 0.8), ("rare positives", 1.0), ("a hull as large as can be", 0.1)]
)
def test_bounds_hold_in_a_tree_of_several_levels(stream: str, share: float) -> None:
    labels, scores = long_stream(stream)
    tree = ScoreTree()
    tree.insert(labels, scores)
    oracle = Oracle(list(zip(labels.tolist(), scores.tolist(), strict=True)))
    for cost, priors in COSTS:
        keeps_its_promise(tree, oracle, cost, priors)
    few = approximate_h(tree, 0.25, 0.5, BetaCost())
    assert few
    assert few.vertices < share * len(tree.hull().x)


@pytest.mark.parametrize("stream", STREAMS)
def test_a_hull_says_the_same_as_its_tree(stream: str) -> None:
    labels, scores = STREAMS[stream]
    tree, ev = ScoreTree(), ModelEvaluator()
    tree.insert(labels, scores)
    ev.update(labels, np.unique(scores, return_inverse=True)[1])  # ranks: its scores are finite
    without_bridges = ScoreTree(keeps_hull=False)
    without_bridges.insert(labels, scores)
    hull = tree.hull()
    forms = [without_bridges, hull, tuple(hull), (hull.x.tolist(), hull.y / 1.0), ev.curve()]
    for epsilon in (0, *EPSILONS):
        h = approximate_h(tree, epsilon, 0.3, BetaCost(2, 3))
        area = approximate_cost_curve_area(tree, epsilon)
        for form in forms:
            assert approximate_h(form, epsilon, 0.3, BetaCost(2, 3)) == h
            assert approximate_cost_curve_area(form, epsilon) == area
    assert tree.hull().x.tolist() == hull.x.tolist(), "the hull that was handed in is as it was"


@pytest.mark.parametrize("epsilon", [0.0, *EPSILONS])
def test_no_vertex_is_dropped_that_costs_less_than_its_share(epsilon: float) -> None:
    tree = ScoreTree()
    tree.insert(*steepening(3000))
    hull = tree.hull()
    (x, y), _ = tree.hull_subset(1 + epsilon)
    negatives = len(tree) - tree.positives
    for missed, events in zip(hull.y.tolist(), hull.x.tolist(), strict=True):
        alarms = negatives - (events - missed)
        enough = (y <= (1 + epsilon) * missed) & (negatives - (x - y) <= (1 + epsilon) * alarms)
        assert enough.any()


@settings(max_examples=examples(150))
@given(
    st.lists(st.tuples(st.integers(1, 10**6), st.integers(1, 10**6)), min_size=1, max_size=60),
    st.floats(0.0, 10.0),
    st.sampled_from(COSTS),
)
def test_bounds_hold_for_any_hull_of_any_masses(
    steps: list[tuple[int, int]], epsilon: float, cost_and_priors: tuple[Cost, Any]
) -> None:
    steps.sort(key=lambda step: step[1] / step[0])
    p, n = (np.array([step[side] / 1024 for step in steps]) for side in (1, 0))
    hull = np.cumsum([0.0, *(p + n)]), np.cumsum([0.0, *p])
    cost, priors = cost_and_priors
    some = approximate_h(hull, epsilon, priors, cost)
    h = h_measure(n, p, EvaluatorSettings(cost=cost, priors=priors))
    assert some
    assert h - epsilon * (1 - h) - 1e-9 <= some.value <= h + 1e-9
    assert some.high + 1e-9 >= h


def test_exact_values_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 40)
    scores = np.round(rng.normal(size=40) + labels, 1)
    tree = ScoreTree()
    tree.insert(labels, scores)
    h = approximate_h(tree, 0, 0.2, BetaCost(2, 4))
    area = approximate_cost_curve_area(tree, 0)
    assert h
    assert area
    expected = h_by_integration(labels.tolist(), scores.tolist(), beta_density(2, 4), 0.2)
    assert h.value == pytest.approx(expected, abs=1e-8)
    assert area.value == pytest.approx(cost_curve_area(labels.tolist(), scores.tolist()), abs=1e-8)
    half = approximate_h(tree, 0, 0.5, UniformCost())
    assert half
    assert half.value == pytest.approx(1 - 4 * area.value, abs=1e-12)


def test_a_perfect_score_is_1_and_a_useless_one_0_whatever_epsilon() -> None:
    perfect, useless = ScoreTree(), ScoreTree()
    perfect.insert([0] * 50 + [1] * 50, np.arange(100.0))
    useless.insert([0, 1] * 50, np.zeros(100))
    for epsilon in (0, 0.1, 1e300):
        for tree, value in ((perfect, 1.0), (useless, 0.0)):
            h = approximate_h(tree, epsilon, 0.3, BetaCost())
            assert h
            assert (h.value, h.bound) == (value, 0.0)


def test_an_empty_tree_has_no_h() -> None:
    assert approximate_h(ScoreTree(), 0.1, 0.5, BetaCost()) is None
    assert approximate_h(ModelEvaluator().curve(), 0.1, 0.5, BetaCost()) is None


@pytest.mark.parametrize("epsilon", [-0.1, math.nan, math.inf, "0.1", None, True])
def test_an_epsilon_that_cannot_be_is_refused(epsilon: Any) -> None:
    for approximate in (lambda: approximate_h(ScoreTree(), epsilon, 0.5, BetaCost()),
                        lambda: approximate_cost_curve_area(ScoreTree(), epsilon)):  # fmt: skip
        with pytest.raises(ConfigError, match=r"^epsilon=.*: give the greatest relative error"):
            approximate()


@pytest.mark.parametrize(
    ("hull", "words"),
    [
        (3, "int; give a ScoreTree"),
        ("ab", "str; give a ScoreTree"),
        (([0, 1], [0, 1], [0, 1]), "tuple; give a ScoreTree"),
        ((["a"], ["b"]), "tuple; give a ScoreTree"),
        (([], []), "shape"),
        (([0, 1, 2], [0, 1]), "shape"),
        (([[0, 1]], [[0, 1]]), "shape"),
        (([1, 2], [0, 1]), "begin at"),
        (([0, math.inf], [0, 1]), "finite"),
        (([0, 3, 2], [0, 1, 2]), "one of them falls"),
        (([0, 3, 3], [0, 1, 1]), "one of them falls"),
        (([0, 3, 4], [0, 1, 0]), "one of them falls"),
        (([0, 3, 4], [0, 1, 3]), "rises by more"),
        (([0, 2, 4], [0, 2, 3]), "slopes fall"),
    ],
)
def test_what_is_no_hull_is_refused(hull: Any, words: str) -> None:
    with pytest.raises(InputError, match=rf"^hull: .*{words}"):
        approximate_h(hull, 0.1, 0.5, BetaCost())
    with pytest.raises(InputError, match=rf"^hull: .*{words}"):
        approximate_cost_curve_area(hull, 0.1)


@pytest.mark.parametrize(("priors", "cost"), [(1.5, BetaCost()), ("windows", BetaCost()), (0.5, "beta:2,2")])
def test_priors_and_costs_are_those_of_the_settings(priors: Any, cost: Any) -> None:
    with pytest.raises(ConfigError, match=r"^(priors|cost)="):
        approximate_h(ScoreTree(), 0.1, priors, cost)


@pytest.mark.parametrize(
    ("priors", "cost"), [(0.5, BetaCost(1e300, 1e-300)), (0.5, BetaCost(1e308, 1e308)), (5e-324, BetaCost())]
)
def test_a_loss_beyond_what_floats_hold_is_said(priors: float, cost: Cost) -> None:
    tree = ScoreTree()
    tree.insert([0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0])
    with pytest.raises(ConfigError, match=r"^cost=beta:.*, priors=.* out of a float's range"):
        approximate_h(tree, 0.1, priors, cost)
