"""ScoreWindow: rows at every stride, from bridges and from scans, the same to the last bit."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from rocsteady.core.errors import CapacityError, InputError
from rocsteady.core.kernels.cache_folder import COMPILED
from rocsteady.core.measures.sums import fixed_point_scale
from rocsteady.core.score_tree.layout import MAX_WEIGHT, SLOTS
from rocsteady.core.score_tree.tree import ScoreTree
from rocsteady.core.score_tree.tree_rows import Ask
from rocsteady.core.score_tree.window import keeps_hull_for

from tests.support.invariants.score_tree import check_invariants
from tests.support.invariants.sliding_window import SlidingWindow
from tests.support.oracles.score_tree import Oracle, streams
from tests.support.thorough import at_length

STREAMS = [name for name, _, _ in streams(1, 0)]
ASK = Ask(h=1, ks=1, tpr_at_fpr=1, cost_threshold=1, aum=1, fpr=0.1, cost=0.3)


def agrees(row: np.record, oracle: Oracle, capacity: int) -> None:
    sums = (row.positives, row.negatives, row.pairs2, row.squares_positive, row.squares_negative)
    assert sums == (oracle.positives, oracle.negatives, oracle.pairs2(), *oracle.squares())
    if not oracle.has_both:
        assert np.isnan([row.ks, row.ks_threshold, row.tpr_at_fpr, row.cost_threshold]).all()
        assert row.h_loss == row.h_loss_of_all == 0
        return
    assert row.h_loss == oracle.loss(fixed_point_scale(capacity), 1.0)
    assert 1.0 - row.h_loss / row.h_loss_of_all == pytest.approx(oracle.h((2, 2)), abs=1e-12)
    assert (row.ks, row.ks_threshold) == oracle.ks()
    assert row.tpr_at_fpr == pytest.approx(oracle.tpr_at_fpr(0.1), abs=1e-12)
    assert row.cost_threshold == oracle.cost_threshold(0.3)
    assert row.aum == oracle.aum()


@pytest.mark.at_length
@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("size", [1, 2, 10, 60])
def test_rows_agree_with_brute_force_whatever_the_stride_and_the_hull(stream: str, size: int) -> None:
    events = (at_length(300, 160) if size == 60 else at_length(120, 60)) if COMPILED else 25
    labels, scores = next((y, s) for name, y, s in streams(events, size) if name == stream)
    dense = SlidingWindow(size, keeps_hull=True)
    rows = dense.slide(labels, scores, ask=ASK)
    assert len(rows) == events
    for t in range(0, events, 1 if size < 60 else 3):
        begin = max(0, t + 1 - size)
        held = zip(labels[begin : t + 1].tolist(), scores[begin : t + 1].tolist(), strict=True)
        agrees(rows[t], Oracle(list(held)), size + 1)
    check_invariants(dense.tree)
    for stride in (1, 3, 7):
        for keeps_hull in (True, False):
            window = SlidingWindow(size, stride=stride, keeps_hull=keeps_hull)
            parts = [
                window.slide(labels[a : a + 11], scores[a : a + 11], ask=ASK) for a in range(0, events, 11)
            ]
            assert np.concatenate(parts).tobytes() == rows[stride - 1 :: stride].tobytes()
            check_invariants(window.tree)


def test_a_window_of_no_size_lets_go_what_it_is_told() -> None:
    rng = np.random.default_rng(0)
    events = 3000 if COMPILED else 60
    labels, scores = rng.integers(0, 2, events), rng.normal(size=events).round(1)
    leaving, held = np.zeros(events, np.int64), 0
    for t in range(events):
        held += 1
        leaving[t] = rng.integers(0, min(held, 5) + 1) if rng.random() < 0.3 else 0
        held -= leaving[t]
    window = SlidingWindow(None, capacity=16)
    rows = window.slide(labels, scores, leaving, ASK)
    for t in [*range(0, events, events // 20), events - 1]:
        begin = int(leaving[: t + 1].sum())
        held_now = zip(labels[begin : t + 1].tolist(), scores[begin : t + 1].tolist(), strict=True)
        oracle = Oracle(list(held_now))
        assert rows[t].pairs2 == oracle.pairs2()
        if oracle.has_both:
            assert (rows[t].ks, rows[t].ks_threshold) == oracle.ks()
    check_invariants(window.tree)
    held_labels, held_scores = window.to_arrays()
    begin = int(leaving.sum())
    assert held_labels.tolist() == labels[begin:].tolist()
    assert held_scores.tolist() == scores[begin:].tolist()


def test_a_window_loaded_from_its_arrays_goes_on_the_same() -> None:
    rng = np.random.default_rng(1)
    events = 1000 if COMPILED else 60
    labels, scores = rng.integers(0, 2, events), rng.normal(size=events).round(2)
    half, size = events // 2 + 3, events // 5
    straight = SlidingWindow(size, stride=10)
    straight.slide(labels[:half], scores[:half])
    resumed = SlidingWindow(size, stride=10)
    resumed.load(*straight.to_arrays())
    resumed.seq = straight.seq
    check_invariants(resumed.tree)
    a = straight.slide(labels[half:], scores[half:])
    b = resumed.slide(labels[half:], scores[half:])
    assert a.tobytes() == b.tobytes()


def test_placements_are_those_among_the_events_before() -> None:
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, 60), rng.normal(size=60).round(1)
    window = SlidingWindow(None)
    for t in range(60):
        before = Oracle(list(zip(labels[:t].tolist(), scores[:t].tolist(), strict=True)))
        expected = before.placement(int(labels[t]), float(scores[t]))
        found = window.tree.placement(labels[t : t + 1], scores[t : t + 1])[0]
        np.testing.assert_allclose(found, expected, rtol=1e-14)
        window.slide(labels[t : t + 1], scores[t : t + 1], [0])


def test_a_copy_is_a_window_of_its_own() -> None:
    original = SlidingWindow(5)
    original.slide([0, 1, 0], [0.0, 1.0, 2.0])
    for twin in (copy.deepcopy(original), pickle.loads(pickle.dumps(original))):
        twin.slide([1] * 3, [3.0] * 3)
        check_invariants(twin.tree)
        assert (len(original), len(original.tree), len(twin.tree)) == (3, 3, 5)


def test_errors_leave_the_window_unchanged() -> None:
    window = SlidingWindow(3)
    window.slide([0, 1], [0.0, 1.0])
    with pytest.raises(InputError, match="NaN at position 1"):
        window.slide([0, 1], [0.0, np.nan])
    with pytest.raises(InputError, match="4 events for a window of 3"):
        window.load([0] * 4, [0.0] * 4)
    assert len(window) == len(window.tree) == 2
    with pytest.raises(InputError, match="at least 1"):
        SlidingWindow(0)
    with pytest.raises(CapacityError, match="counts exactly"):
        SlidingWindow(MAX_WEIGHT)


def test_the_choice_of_the_hull_is_a_function_of_size_and_stride() -> None:
    assert keeps_hull_for(10_000, 1)
    assert not keeps_hull_for(10_000, 1000)


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED or SLOTS < 64, reason="buckets of full size")
def test_a_live_window_takes_less_than_64_bytes_an_event() -> None:
    rng = np.random.default_rng(0)
    size = 100_000
    window = SlidingWindow(size)
    for _ in range(4):
        window.slide(rng.integers(0, 2, size), rng.normal(size=size), ask=ASK._replace(aum=0))
    assert window.nbytes / size < 64


def test_what_would_break_a_kernel_is_refused_before_it() -> None:
    with pytest.raises(CapacityError, match="3000001"):
        SlidingWindow(3_000_000, capacity=1024)
    with pytest.raises(CapacityError, match="counts exactly"):
        ScoreTree.from_sorted([1.0, 2.0], [2**62, 2**62], [1, 1])
    with pytest.raises(InputError, match="whole numbers"):
        ScoreTree.from_sorted([1.0], [1.5], [1])
