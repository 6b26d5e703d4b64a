"""SubsetAlt and its tree: the hull is right after every event, the bounds hold at every prefix."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import InputError
from rocsteady.core.measures.at_row import h_measure
from rocsteady.core.settings.costs import BetaCost
from rocsteady.core.settings.evaluator import EvaluatorSettings

from benchmarks.papers.subset_alt import WeightBalancedHull
from tests.support.oracles.score_tree import Oracle, steepening, streams
from tests.support.thorough import examples

FIXED = EvaluatorSettings(cost=BetaCost(2, 2), priors=0.3)
EPSILONS = (0.01, 0.1, 1.0)
STREAMS = {name: (labels, scores) for name, labels, scores in streams(120, 4)}
STREAMS["a hull as large as can be"] = steepening(160)


def h_of(x: list[int], y: list[int]) -> float:
    events, positives = np.diff(x), np.diff(y)
    return h_measure(events - positives, positives, FIXED)


def agrees(tree: WeightBalancedHull, held: list[tuple[int, float]]) -> None:
    """The tree's hull is that of the events, and its subsets keep their promise."""
    tree.check()
    oracle = Oracle(held)
    x, y = oracle.hull()
    hull = tree.subset(0.0).hull
    assert (hull.x.tolist(), hull.y.tolist()) == (x, y)
    for epsilon in EPSILONS:
        (kept_x, kept_y), expanded = tree.subset(epsilon)
        assert set(zip(kept_x.tolist(), kept_y.tolist(), strict=True)) <= set(zip(x, y, strict=True))
        assert (kept_x[0], kept_x[-1]) == (x[0], x[-1])
        assert (np.diff(kept_x) > 0).all()
        for events, missed in zip(x, y, strict=True):  # negatives not below: false positives
            covers = (kept_y <= (1 + epsilon) * missed) & (kept_x - kept_y >= events - missed)
            assert covers.any()
        leaves = oracle.positives + 1
        bound = (1 + math.log(leaves) / math.log(4 / 3)) * (2 + 4 / (3 * epsilon))
        assert expanded <= bound
        assert bound == pytest.approx(tree.most_expanded(epsilon))
        if oracle.has_both:
            h, approximate = h_of(x, y), h_of(kept_x.tolist(), kept_y.tolist())
            assert h - epsilon * (1 - h) - 1e-12 <= approximate <= h + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("stream", STREAMS)
def test_hull_and_bounds_are_right_at_every_step_of_a_window(stream: str) -> None:
    labels, scores = (column.tolist() for column in STREAMS[stream])
    tree, held, k = WeightBalancedHull(), [], 60
    for t, event in enumerate(zip(labels, scores, strict=True)):
        tree.insert(*event)
        held.append(event)
        if len(held) > k:
            tree.remove(*held.pop(0))
        agrees(tree, held) if t % 3 == 0 else tree.check()
    while held:
        tree.remove(*held.pop())
        tree.check()
    assert len(tree) == 0


@settings(max_examples=examples(60))
@given(
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0, 2.0])), max_size=60),
    st.randoms(use_true_random=False),
)
def test_any_order_of_additions_and_removals(events: list[tuple[int, float]], random: object) -> None:
    tree, held = WeightBalancedHull(), []
    for event in events:
        tree.insert(*event)
        held.append(event)
        while held and random.random() < 0.4:  # type: ignore[attr-defined]
            tree.remove(*held.pop(random.randrange(len(held))))  # type: ignore[attr-defined]
        agrees(tree, held)


@pytest.mark.parametrize("stream", STREAMS)
def test_a_tree_built_at_once_is_one_that_grew(stream: str) -> None:
    labels, scores = STREAMS[stream]
    agrees(WeightBalancedHull.of(labels, scores), list(zip(labels.tolist(), scores.tolist(), strict=True)))


def test_nodes_expanded_grow_with_the_logarithm_not_with_the_hull() -> None:
    expanded, vertices = [], []
    for events in (300, 3_000, 13_000):
        tree = WeightBalancedHull.of(*steepening(events))
        vertices.append(len(tree.subset(0.0).hull.x))
        expanded.append(tree.subset(0.5).expanded)
        assert expanded[-1] <= tree.most_expanded(0.5)
    assert vertices[2] > 8 * vertices[0]
    assert expanded[2] < 3 * expanded[0]


def test_what_is_not_there_cannot_be_removed() -> None:
    tree = WeightBalancedHull()
    tree.insert(0, 1.0)
    tree.insert(1, 2.0)
    for event in ((1, 1.0), (0, 2.0), (1, -math.inf), (1, 3.0)):
        with pytest.raises(InputError, match="remove: no "):
            tree.remove(*event)
    with pytest.raises(InputError, match="NaN"):
        tree.insert(1, math.nan)
    tree.check()
    assert len(tree) == 2
