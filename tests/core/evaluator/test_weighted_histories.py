"""Rows of weighted and fading windows do not tell how the stream was cut, nor where it was restarted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.weighted_tree.tree import WeightedTree

from tests.support.invariants.weighted_tree import check_invariants
from tests.support.oracles.weighted import WeightedOracle
from tests.support.streams.weighted_histories import history, rows_of, turned
from tests.support.thorough import few

THOROUGH_CASES = 100_000
BLOCK = 20


def check(seeds: range) -> None:
    for seed in seeds:
        made = history(seed, events=None if seed % 3 else 60)
        whole = rows_of(made)
        for run in (1, 2):
            assert turned(rows_of(made, np.random.default_rng([seed, run])), whole) == [], (seed, made.story)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [12, 28, 34, 43, 98, 174, 1393])
def test_histories_that_told_of_their_snapshots_do_so_no_more(seed: int) -> None:
    """Spurious nulls of AUM, AUM of subnormal scores, intervals beside one heavy event, light tied events."""
    check(range(seed, seed + 1))


@pytest.mark.slow
@pytest.mark.parametrize("first", few(3, range(0, THOROUGH_CASES, BLOCK)))
def test_rows_tell_nothing_of_cuts_and_snapshots(first: int) -> None:
    check(range(first, first + BLOCK))


def agree(found: Any, expected: float, tolerance: float = 1e-12) -> bool:
    return math.isclose(found, expected, rel_tol=tolerance, abs_tol=1e-322)


@pytest.mark.parametrize("seed", range(40))
def test_windows_of_extremes_are_those_of_fractions(seed: int) -> None:
    """AUM, AUC and its interval, with what came and went before, and of a tree built at once."""
    made = history(1_000_000 + seed, events=90)
    labels, scores, weights = made.labels, made.scores, made.weights
    held = list(zip(labels[40:].tolist(), scores[40:].tolist(), weights[40:].tolist(), strict=True))
    oracle = WeightedOracle(held)
    tree = WeightedTree()
    tree.apply(labels[:70], scores[:70], weights[:70], np.ones(70))
    tree.apply(labels[:40], scores[:40], weights[:40], -np.ones(40))
    tree.apply(labels[70:], scores[70:], weights[70:], np.ones(20))
    trees = [WeightedTree(labels[40:], scores[40:], weights[40:])]
    trees += [] if tree.needs_rebuild else [tree]
    for one in trees:
        one.auc()
        check_invariants(one)
        if not oracle.has_both:
            assert one.auc() is None
            continue
        auc, aum = one.auc(), one.aum()
        assert auc is not None
        assert aum is not None
        assert auc == pytest.approx(oracle.auc(), rel=1e-12)
        expected = oracle.aum()
        assert agree(aum, expected) or (math.isinf(expected) and aum > 1.6e308), made.story
        beyond = min(oracle.size(0), oracle.size(1)) - 1
        interval = one.interval()
        if beyond > 1.1e-9:
            assert interval == pytest.approx(oracle.interval(), rel=1e-11, abs=1e-11), made.story
        elif beyond < 0.9e-9:
            assert interval is None


@pytest.mark.parametrize("weights", [None, "one", "random", "wide"])
@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.slow
def test_decisions_at_their_ends_are_whole_numbers(weights: str | None, classes: int) -> None:
    """A classifier that is always right has 1 everywhere; always wrong of two classes it has an MCC of -1."""
    rng = np.random.default_rng(classes)
    n = 200
    labels = rng.integers(0, classes, n)
    names = np.array(list("abcde"))
    given = {
        None: None, "one": np.ones(n), "random": rng.random(n) + 0.1, "wide": 10.0 ** rng.uniform(-40, 40, n),
    }[weights]  # fmt: skip
    for window in (rs.LastEvents(7), rs.LastEvents(90), rs.AllEvents(), rs.Fading(5)):
        for predicted, end in ((labels, 1.0), ((labels + 1) % classes, -1.0)):
            ev = rs.ModelEvaluator(window=window, every=rs.EveryEvents(1), measures="all", positive="a")
            rows = ev.update(names[labels], rng.random(n), predicted=names[predicted], weights=given)
            ends = ("kappa", "kappa_m", "kappa_per", "mcc", "accuracy", "g_mean") if end > 0 else ("mcc",)
            for row in rows:
                for name in ends if end > 0 or classes == 2 else ():
                    assert getattr(row, name) in (end, None), (row.row, name)
                assert row.mcc is None or -1.0 <= row.mcc <= 1.0
                assert row.accuracy == (1.0 if end > 0 else 0.0)


def test_kappa_per_is_1_where_every_event_repeats_the_last_label() -> None:
    n = 60
    weights = np.random.default_rng(0).random(n) + 0.1
    for window in (rs.LastEvents(40), rs.AllEvents(), rs.Fading(4)):
        for given in (None, weights):
            ev = rs.ModelEvaluator(window=window, every=rs.EveryEvents(1), measures="all")
            rows = ev.update(np.ones(n), np.full(n, 0.9), weights=given)
            assert {row.kappa_per for row in rows} <= {1.0, None}
            assert rows[0].kappa_per == 1.0


def test_classes_of_any_order_make_the_same_bits() -> None:
    """Codes of classes are given as they appear in a batch; a sum over classes must not tell their order."""
    rng = np.random.default_rng(4)
    n = 300
    names = np.array(["delta", "b", "charlie", "a", "e"])
    labels = rng.integers(0, 5, n)
    predicted = np.where(rng.random(n) < 0.5, labels, rng.integers(0, 5, n))
    weights = 10.0 ** rng.uniform(-6, 6, n)

    def rows(pieces: int) -> list[Any]:
        ev = rs.ModelEvaluator(window=rs.LastEvents(80), every=rs.EveryEvents(9), measures="all")
        found: list[Any] = []
        for at in np.array_split(np.arange(n), pieces):
            found += ev.update(
                names[labels[at]], rng.random(len(at)), predicted=names[predicted[at]], weights=weights[at]
            )
        return found

    assert rows(1) == rows(150)
