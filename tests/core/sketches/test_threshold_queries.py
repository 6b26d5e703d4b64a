"""AUC of weighted events by threshold queries: within its bound, by as many queries as it says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import ConfigError, InputError
from rocsteady.core.score_tree.query import MassCrossing
from rocsteady.core.score_tree.tree import ScoreTree
from rocsteady.core.sketches.threshold_queries import (
    SortedMasses,
    ThresholdQueries,
    compressed_list,
    estimate_auc,
)
from rocsteady.core.weighted_tree.tree import WeightedTree

from tests.support.thorough import examples

EPSILONS = [0.0, 0.01, 0.1, 0.5, 3.0]
Arrays = tuple[Any, Any, Any]


def exact_auc(labels: Any, scores: Any, weights: Any) -> float:
    """Every pair, one by one."""
    s, w = (np.asarray(scores, float), np.asarray(weights, float))
    positive = np.asarray(labels) == 1
    above = (s[positive][:, None] > s[~positive]) + 0.5 * (s[positive][:, None] == s[~positive])
    p, n = w[positive] / w[positive].sum(), w[~positive] / w[~positive].sum()
    return float(p @ above @ n)


def check(store: ThresholdQueries, events: Arrays, epsilon: float) -> None:
    labels, scores, weights = events
    exact = exact_auc(*events)
    for reverse in (False, True):
        estimate = estimate_auc(store, epsilon, reverse=reverse)
        assert estimate is not None
        assert abs(estimate - exact) <= epsilon / 2 * (1 - exact if reverse else exact) + 1e-12
        own_label = 0 if reverse else 1
        nodes = compressed_list(store, epsilon, own_label)
        own = np.array(labels) == own_label
        hp = [weights[own & (scores > s)].sum() for s in nodes.scores]
        p = [weights[own & (scores == s)].sum() for s in nodes.scores]
        mass = weights[own].sum()
        np.testing.assert_allclose(nodes.own_above, hp, rtol=1e-9, atol=1e-12 * mass)
        np.testing.assert_allclose(nodes.own, p, rtol=1e-9, atol=1e-12 * mass)
        hp, p = [0.0, *hp, mass], [0.0, *p]
        for v in range(len(p)):
            through = hp[v] + p[v]
            assert hp[v + 1] <= (1 + epsilon) * through + 1e-9 * mass, "Eq. 3"
            if v + 2 < len(hp):
                assert hp[v + 2] > (1 + epsilon) * through * (1 - 1e-9), "Eq. 4"
        if epsilon:
            first = weights[own & (scores == scores[own].max())].sum()
            assert len(nodes.scores) + 2 <= 2 * math.log(mass / first) / math.log1p(epsilon) + 4


def random_events(seed: int, ties: bool, weigh: str) -> Arrays:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, 300)
    scores = rng.normal(size=300) + labels
    if ties:
        scores = scores.round(1)
    age = np.arange(300)[::-1]
    weights = {
        "unit": np.ones(300),
        "random": rng.exponential(size=300),
        "fading": 0.5 ** (age / 20),
        "over 12 orders of magnitude": 10.0 ** rng.uniform(-6, 6, 300),
        "heaviest first": np.argsort(np.argsort(scores)) ** 3 + 1.0,
        "lightest first": (300.0 - np.argsort(np.argsort(scores))) ** 3,
    }[weigh]
    return labels, scores, weights


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(
    "weigh",
    ["unit", "random", "fading", "over 12 orders of magnitude", "heaviest first", "lightest first"],
)
def test_weighted_estimates_stay_within_their_bound(weigh: str, ties: bool, epsilon: float) -> None:
    for seed in range(3):
        events = random_events(seed, ties, weigh)
        check(SortedMasses.of_events(*events), events, epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("keeps_hull", [False, True])
def test_a_score_tree_answers_the_same_queries(keeps_hull: bool, epsilon: float) -> None:
    labels, scores, weights = random_events(5, True, "unit")
    tree = ScoreTree(keeps_hull=keeps_hull)
    tree.insert(labels, scores)
    check(tree, (labels, scores, weights), epsilon)
    arrays = SortedMasses.of_events(labels, scores)
    for label in (0, 1):
        for mass in (0, 0.5, 1, 17, 99.9, 150, 299, 300, 1e30, math.inf):
            assert tree.crossing(label, mass) == arrays.crossing(label, mass)
    assert estimate_auc(tree, 0.0) == pytest.approx(tree.auc(), abs=1e-13)


weighted = st.tuples(st.integers(0, 1), st.integers(0, 9), st.floats(1e-6, 1e6))


@settings(max_examples=examples(200))
@given(st.sampled_from(EPSILONS), st.lists(weighted, max_size=40))
def test_any_weights_keep_the_bound(epsilon: float, events: list[tuple[int, int, float]]) -> None:
    complete = [*events, (0, 4, 1.0), (1, 5, 1.0)]
    labels, scores, weights = (np.array(column) for column in zip(*complete, strict=True))
    check(SortedMasses.of_events(labels, scores, weights), (labels, scores, weights), epsilon)


def test_weights_of_any_size_give_an_estimate() -> None:
    rng = np.random.default_rng(9)
    labels = np.arange(500) % 2
    scores = rng.normal(size=500) + labels
    weights = 10.0 ** rng.uniform(-300, 300, 500)
    exact = exact_auc(labels, scores, weights)
    store = SortedMasses.of_events(labels, scores, weights)
    for epsilon in (0.0, 0.1):
        estimate = estimate_auc(store, epsilon)
        assert estimate is not None
        assert abs(estimate - exact) <= epsilon / 2 * exact + 1e-12


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_weighted_tree_answers_the_same_queries(epsilon: float) -> None:
    for weigh in ("unit", "random", "fading", "over 12 orders of magnitude", "heaviest first"):
        events = random_events(6, True, weigh)
        tree, arrays = WeightedTree(*events), SortedMasses.of_events(*events)
        check(tree, events, epsilon)
        tree.apply(*(column[:150] for column in events), np.full(150, -1))
        check(tree, tuple(column[150:] for column in events), epsilon)  # type: ignore[arg-type]
        arrays = SortedMasses.of_events(*(column[150:] for column in events))
        for label in (0, 1):
            assert tree.crossing(label, math.inf) is None
            for share in (0.0, 0.3, 0.77):
                mass = share * (arrays.positives if label else arrays.negatives)
                found, expected = tree.crossing(label, mass), arrays.crossing(label, mass)
                np.testing.assert_allclose(found, expected, rtol=1e-9)  # type: ignore[arg-type]
    assert estimate_auc(WeightedTree()) is None


class RoundsOtherwise(SortedMasses):
    """A store whose sums are a little too large wherever it compares them, as a tree's may be."""

    def crossing(self, label: int, mass: float) -> MassCrossing | None:
        return super().crossing(label, mass * (1 - 1e-14))


def test_a_store_that_rounds_otherwise_makes_no_loop() -> None:
    events = random_events(1, False, "random")
    for epsilon in (0.0, 0.1):
        check(RoundsOtherwise.of_events(*events), events, epsilon)


def test_one_class_has_no_auc_and_wrong_input_is_refused_in_words() -> None:
    assert estimate_auc(SortedMasses.of_events([], [])) is None
    assert estimate_auc(SortedMasses.of_events([1, 1], [0.1, 0.2]), reverse=True) is None
    assert estimate_auc(ScoreTree()) is None
    with pytest.raises(ConfigError, match="epsilon: -1; give a finite number"):
        estimate_auc(ScoreTree(), -1)
    with pytest.raises(InputError, match=r"weights: -1\.0 is none"):
        SortedMasses.of_events([0, 1], [0.1, 0.2], [1.0, -1.0])
    with pytest.raises(InputError, match="weights: nan is none"):
        SortedMasses.of_events([0, 1], [0.1, 0.2], [1.0, math.nan])
    with pytest.raises(InputError, match="1 of them for 2 labels"):
        SortedMasses.of_events([0, 1], [0.1, 0.2], [1.0])
    with pytest.raises(InputError, match="shape"):
        SortedMasses.of_events([0, 1], [0.1, 0.2], [[1.0, 1.0]])
    with pytest.raises(InputError, match="not ascending and distinct"):
        SortedMasses([1.0, 1.0], [1.0, 1.0], [1.0, 1.0])
    with pytest.raises(InputError, match="give as many"):
        SortedMasses([1.0, 2.0], [1.0], [1.0, 1.0])
    with pytest.raises(InputError, match="sum to infinity"):
        SortedMasses([1.0, 2.0], [1.7e308, 1.7e308], [0.0, 0.0])
