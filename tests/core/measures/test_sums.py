"""AUM and the losses of probabilities, kept by a tree or summed by a scan: exact, and rounded once."""

from __future__ import annotations

import copy
import math
import pickle
from itertools import product

import numpy as np
import pytest
from rocsteady.core.errors import MissingEventError
from rocsteady.core.kernels.cache_folder import COMPILED
from rocsteady.core.measures.scan import area_of_entries
from rocsteady.core.score_tree.layout import scores_of
from rocsteady.core.score_tree.store import NOTHING
from rocsteady.core.score_tree.tree import ScoreTree

from tests.support.invariants.helpers_called import called
from tests.support.invariants.score_tree import check_invariants
from tests.support.invariants.sliding_window import SlidingWindow
from tests.support.oracles.score_tree import Oracle, streams
from tests.support.thorough import at_length, some

AREA = NOTHING._replace(aum=1)
BOTH = NOTHING._replace(aum=1, losses=1)
STREAMS = [name for name, _, _ in streams(1, 0)]


def oracle_of(labels: np.ndarray, scores: np.ndarray) -> Oracle:
    return Oracle(list(zip(labels.tolist(), scores.tolist(), strict=True)))


def is_exact(found: float, window: Oracle) -> bool:
    return found == window.aum() if window.has_both else math.isnan(found)


def cruel(events: int, seed: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Streams on which sums in floating point lose all their digits, or their way."""
    rng = np.random.default_rng(seed)
    t = np.arange(events)
    y = (rng.random(events) < 0.4).astype(np.int8)
    noise = rng.normal(size=events)
    phases = (t // (events // 6 + 1) % 2).astype(np.int8)
    return {
        "a tiny spread far from zero": (y, 1e9 + 1e-7 * noise),
        "next to each other": (y, 1.0 + rng.integers(0, 9, events) * 2.0**-52),
        "of 1e-300": (y, 1e-300 * noise),
        "of the least doubles": (y, rng.integers(-3, 4, events) * 5e-324),
        "of all magnitudes": (y, noise * 10.0 ** rng.integers(-300, 301, events)),
        "near the greatest double": (y, rng.choice([-1.7e308, 1.7e308, 1.0], events)),
        "one class, then the other": (phases, noise),
        "one class, then the other, sorted": (phases, t * 0.1),
        "one class, then the other, falling": (phases, t * -0.1),
        "one score and a few others": (y, np.where(rng.random(events) < 0.9, 0.5, noise)),
        "zeros of both signs": (y, rng.choice([0.0, -0.0, 1.0, -1.0], events)),
        "drifting away": (y, 10.0 ** t.clip(0, 290) if events < 290 else noise + t),
    }


@pytest.mark.parametrize(
    ("size", "name"), [*some(product([1, 2, 3], cruel(1, 0))), *some(product([17, 60], cruel(1, 0)))]
)
@pytest.mark.at_length
def test_aum_of_every_prefix_is_exact_in_both_forms(name: str, size: int) -> None:
    events = at_length(200, 80) if COMPILED else 40
    labels, scores = cruel(events, size)[name]
    dense, rare = SlidingWindow(size), SlidingWindow(size)
    for t in range(events):
        begin = max(0, t + 1 - size)
        oracle = oracle_of(labels[begin : t + 1], scores[begin : t + 1])
        (row,) = dense.slide(labels[t : t + 1], scores[t : t + 1], ask=AREA)
        assert is_exact(row.aum, oracle)
        check_invariants(dense.tree)
        rare.slide(labels[t : t + 1], scores[t : t + 1], ask=NOTHING)
        if t % 13 == 0:  # the reference has far to go, or has lost its entry long ago
            assert is_exact(rare.tree.row(AREA).aum, oracle)
            check_invariants(rare.tree)
        if oracle.has_both:
            entries = dense.tree.to_sorted()
            scanned = called(area_of_entries)(entries.scores, entries.negatives, entries.positives)
            assert scanned == row.aum


@pytest.mark.parametrize("name", [*cruel(1, 0), "special numbers"])
def test_rows_do_not_tell_how_a_window_came_about(name: str) -> None:
    events, size = (300, 50) if COMPILED else (60, 15)
    labels, scores = (
        next((y, s) for stream, y, s in streams(events, 1) if stream == name)
        if name in STREAMS
        else cruel(events, 1)[name]
    )
    rows = SlidingWindow(size).slide(labels, scores, ask=BOTH)
    for stride in (1, 7):
        for keeps_hull in (True, False):
            window = SlidingWindow(size, stride=stride, keeps_hull=keeps_hull)
            parts = [
                window.slide(labels[a : a + 11], scores[a : a + 11], ask=BOTH) for a in range(0, events, 11)
            ]
            assert np.concatenate(parts).tobytes() == rows[stride - 1 :: stride].tobytes()
    growing = SlidingWindow(None, capacity=2)  # doubles its capacity, its room and its ring on the way
    leaving = (np.arange(events) >= size).astype(np.int64)
    grown = growing.slide(labels, scores, leaving, BOTH)
    assert grown[["aum", "brier", "log_loss"]].tobytes() == rows[["aum", "brier", "log_loss"]].tobytes()
    check_invariants(growing.tree)
    loaded = SlidingWindow(size)
    loaded.load(labels[events // 2 : events // 2 + size], scores[events // 2 : events // 2 + size])
    rest = slice(events // 2 + size, events)
    assert loaded.slide(labels[rest], scores[rest], ask=BOTH).tobytes() == rows[rest].tobytes()
    for twin in (copy.deepcopy(loaded), pickle.loads(pickle.dumps(loaded))):
        check_invariants(twin.tree)
        assert twin.tree.row(BOTH).tobytes() == loaded.tree.row(BOTH).tobytes()
        twin.slide([0, 1, 0], [9.0, -9.0, 3.0], ask=BOTH)
        check_invariants(twin.tree)
        check_invariants(loaded.tree)


def test_sums_survive_what_rebuilds_a_tree_and_what_is_refused() -> None:
    rng = np.random.default_rng(2)
    labels, scores = rng.integers(0, 2, 90), rng.random(90)
    tree = ScoreTree(4)
    for t in range(0, 90, 3):
        tree.insert(labels[t : t + 3], scores[t : t + 3])
        if t % 7 == 0:
            tree.keeps_hull = not tree.keeps_hull
        check_invariants(tree)
        before = tree.row(BOTH).tobytes()
        with pytest.raises(MissingEventError):
            tree.remove([0, 1, *labels[:1], 1], [7.0, *scores[:1], 0.5, 7.0])
        with pytest.raises(MissingEventError):
            tree.remove([*labels[:2], 1], [*scores[:2], 7.0])  # two had gone and came back
        assert tree.row(BOTH).tobytes() == before
        check_invariants(tree)
        window = oracle_of(labels[: t + 3], scores[: t + 3])
        assert is_exact(tree.row(BOTH).aum, window)
        assert tree.row(BOTH).brier == window.brier()
        assert tree.row(BOTH).log_loss == pytest.approx(window.log_loss(), rel=1e-14)


@pytest.mark.parametrize("extreme", [math.inf, -math.inf])
def test_an_infinite_score_that_left_leaves_the_sum_as_it_was(extreme: float) -> None:
    tree = ScoreTree()
    tree.insert([0, 1, 1, 0, 0, 1], [0.25, 0.5, 0.1, 0.75, 0.5, 0.25])
    before = tree.row(AREA).aum
    for label in (0, 1):
        tree.insert([label], [extreme])
        found = tree.row(AREA).aum
        assert found == (math.inf if (label == 0) == (extreme > 0) else pytest.approx(found))
        check_invariants(tree)
        tree.remove([label], [extreme])
        assert tree.row(AREA).aum == before
        check_invariants(tree)


@pytest.mark.parametrize("name", cruel(1, 0))
def test_a_row_moves_the_reference_past_no_more_events_than_came_and_went(name: str) -> None:
    events, size = 150, 40
    labels, scores = cruel(events, 5)[name]
    window = SlidingWindow(size)
    moves = 0
    for t in range(events):
        known = bool(window.tree._state["keeps_area"])
        before = scores_of(np.array([window.tree._state["reference"]]))[0]
        (row,) = window.slide(labels[t : t + 1], scores[t : t + 1], ask=AREA)
        moves += 1 + (t >= size)
        if math.isnan(row.aum):
            continue
        after = scores_of(np.array([window.tree._state["reference"]]))[0]
        if known:
            held = scores[max(0, t + 1 - size) : t + 1]
            passed = (held > min(before, after)) & (held < max(before, after))
            assert passed.sum() <= moves, t
        moves = 0


@pytest.mark.skipif(not COMPILED, reason="slow when interpreted")
def test_large_windows_agree_with_scans() -> None:
    rng = np.random.default_rng(3)
    size = 20_000
    window = SlidingWindow(size, keeps_hull=False)
    labels, scores = rng.integers(0, 2, 3 * size), rng.normal(size=3 * size)
    labels[size : 2 * size] = 1  # the reference wanders from one end to the other, and back
    labels[size - 9] = labels[2 * size + 6] = 0
    rows = window.slide(labels, scores, ask=AREA)
    for t in (size - 1, size + 1, 2 * size - 10, 2 * size + 7, 3 * size - 1):
        begin = t + 1 - size
        entries, which = np.unique(scores[begin : t + 1], return_inverse=True)
        positives = np.bincount(which, weights=labels[begin : t + 1]).astype(np.int64)
        assert rows[t].aum == called(area_of_entries)(entries, np.bincount(which) - positives, positives)
