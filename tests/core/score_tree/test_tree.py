"""ScoreTree against brute force, with its invariants recomputed.

Run as it is with buckets of full size; `test_score_tree_modes` runs it again with buckets of 8, in
which splits, merges, rotations and emptied buckets are common, interpreted, and bounds checked.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import CapacityError, InputError, MissingEventError
from rocsteady.core.kernels.cache_folder import COMPILED
from rocsteady.core.measures.sums import fixed_point_scale
from rocsteady.core.score_tree.layout import MAX_WEIGHT, SLOTS, key_of, keys_of, score_of, scores_of
from rocsteady.core.score_tree.store import COST_CURVATURE, NOTHING
from rocsteady.core.score_tree.tree import ScoreTree

from tests.support.invariants.score_tree import check_invariants
from tests.support.oracles.score_tree import Oracle, streams
from tests.support.thorough import at_length, examples, some

SMALL_BUCKETS = SLOTS == 8
STREAMS = [name for name, _, _ in streams(1, 0)]
SHARES = [0.0, 0.01, 0.1, 0.29, 0.5, 0.9, 1.0]
GROWTHS = [1.0, 1.125, 1.5, 4.0]
COSTS = [0.05, 0.2, 0.3, 0.5, 0.9]


def events_of(labels: np.ndarray, scores: np.ndarray) -> list[tuple[int, float]]:
    return list(zip(labels.tolist(), scores.tolist(), strict=True))


def agree_on_sums(tree: ScoreTree, oracle: Oracle) -> None:
    """Everything that is kept, to the last bit."""
    assert len(tree) == oracle.positives + oracle.negatives
    assert tree.delong() == (
        oracle.positives, oracle.negatives, oracle.pairs2(), *oracle.squares()
    )  # fmt: skip
    row = tree.row(NOTHING._replace(aum=1, losses=1))
    if len(tree):
        assert row.brier == oracle.brier()
        assert row.log_loss == pytest.approx(oracle.log_loss(), rel=1e-14, abs=1e-300)
    else:
        assert np.isnan([row.brier, row.log_loss, row.aum]).all()
    if oracle.has_both:
        assert row.aum == oracle.aum()
        assert tree.auc() == oracle.pairs2() / (2 * oracle.positives * oracle.negatives)
        curvature = COST_CURVATURE[tree.cost]
        assert tree.h_sum()[0] == oracle.loss(fixed_point_scale(tree.capacity), curvature)
        assert tree.h() == pytest.approx(oracle.h(tree.cost), abs=1e-12)
        assert tree.ks() == oracle.ks()
    else:
        assert tree.auc() is tree.h() is tree.ks() is None


def agree_on_questions(tree: ScoreTree, oracle: Oracle) -> None:
    """Everything that is computed when asked for."""
    x, y = tree.hull()
    assert (x.tolist(), y.tolist()) == oracle.hull()
    for growth in GROWTHS:
        (x, y), needed = tree.hull_subset(growth)
        assert (x.tolist(), y.tolist(), needed) == oracle.hull_subset(growth)
    entries = tree.to_sorted()
    assert entries.scores.tolist() == oracle.scores
    assert entries.positives.tolist() == oracle.p
    assert entries.negatives.tolist() == oracle.n
    if not oracle.scores:
        assert np.isnan(tree.calibrated([0.0])).all()
        assert tree.quantile(0.5) is None
        return
    ordered = list(oracle.ordered())
    assert tree.select(np.arange(len(tree))).tolist() == ordered
    assert tree.quantile(0.25) == np.quantile(ordered, 0.25, method="inverted_cdf")
    asked = np.array([*oracle.scores, -1e9, 0.5, 1e9])
    assert tree.rank(asked).tolist() == np.searchsorted(ordered, asked, "left").tolist()
    assert tree.rank(asked, "right").tolist() == np.searchsorted(ordered, asked, "right").tolist()
    assert tree.calibrated(asked).tolist() == [oracle.calibrated(s) for s in asked]
    for label in (0, 1):
        np.testing.assert_allclose(
            tree.placement(np.full(len(asked), label), asked),
            [oracle.placement(label, s) for s in asked],
            rtol=1e-14,
        )
    if oracle.has_both:
        for share in SHARES:
            assert tree.tpr_at_fpr(share) == pytest.approx(oracle.tpr_at_fpr(share), abs=1e-12)
            assert tree.fpr_at_tpr(share) == pytest.approx(oracle.fpr_at_tpr(share), abs=1e-12)
        for cost in COSTS:
            assert tree.cost_threshold(cost) == oracle.cost_threshold(cost)


@pytest.mark.parametrize(
    ("window", "stream"), [*some(product([1, 2, 3], STREAMS)), *some(product([10, 60], STREAMS))]
)
@pytest.mark.at_length
def test_every_event_of_a_sliding_window_agrees_with_brute_force(stream: str, window: int) -> None:
    events = (at_length(150, 80) if window == 60 else at_length(50, 30)) if COMPILED else 22
    labels, scores = next((y, s) for name, y, s in streams(events, window) if name == stream)
    trees = [ScoreTree(window + 1), ScoreTree(window + 1, cost=(1, 1), keeps_hull=False)]
    for t in range(events):
        for tree in trees:
            tree.insert(labels[t : t + 1], scores[t : t + 1])
            if t >= window:
                tree.remove(labels[t - window : t - window + 1], scores[t - window : t - window + 1])
        begin = max(0, t + 1 - window)
        oracle = Oracle(events_of(labels[begin : t + 1], scores[begin : t + 1]))
        for tree in trees:
            agree_on_sums(tree, oracle)
            if SMALL_BUCKETS or t % 8 == 0:
                check_invariants(tree)
            if t % 5 == 0:
                agree_on_questions(tree, oracle)
    for tree in trees:
        tree.remove(labels[begin:], scores[begin:])
        assert len(tree) == 0
        check_invariants(tree)


pool = st.sampled_from(
    [-np.inf, -1e300, -2.0, -1.0, -5e-324, -0.0, 0.0, 5e-324, 0.5, 1.0, 1.5, 3.0, 1e300, np.inf]
)
anything = st.floats(allow_nan=False)
batches = st.lists(
    st.tuples(st.booleans(), st.lists(st.tuples(st.integers(0, 1), pool | anything), max_size=30)),
    max_size=8,
)


@settings(max_examples=examples(60 if COMPILED else 5))
@given(batches, st.booleans())
def test_any_batches_agree_with_brute_force(
    batches: list[tuple[bool, list[tuple[int, float]]]], keeps_hull: bool
) -> None:
    tree, held = ScoreTree(4, keeps_hull=keeps_hull), []
    for adds, batch in batches:
        if adds:
            tree.insert([y for y, _ in batch], [s for _, s in batch])
            held += batch
        else:
            gone = held[: len(batch)]
            tree.remove([y for y, _ in gone], [s for _, s in gone])
            held = held[len(gone) :]
        check_invariants(tree)
        oracle = Oracle(held)
        agree_on_sums(tree, oracle)
        agree_on_questions(tree, oracle)


@settings(max_examples=examples(100 if COMPILED else 20))
@given(st.lists(anything, min_size=2, max_size=20))
def test_keys_order_as_scores_do(scores: list[float]) -> None:
    keys = keys_of(np.array(scores))
    of_kernel, from_kernel = (getattr(f, "py_func", f) for f in (key_of, score_of))
    assert keys.tolist() == [of_kernel(s) for s in scores]
    assert scores_of(keys).tolist() == scores == [from_kernel(key) for key in keys]
    assert np.argsort(keys, kind="stable").tolist() == np.argsort(scores, kind="stable").tolist()


@pytest.mark.parametrize("size", [0, 1, 2, 5, 45, 46, 47, 200, 1500] if COMPILED else [0, 1, 47])
@pytest.mark.parametrize("keeps_hull", [True, False])
def test_bulk_build_is_the_same_as_insertion(size: int, keeps_hull: bool) -> None:
    rng = np.random.default_rng(size)
    labels, scores = rng.integers(0, 2, size), rng.normal(size=size).round(2)
    grown = ScoreTree(16, keeps_hull=keeps_hull)
    grown.insert(labels, scores)
    built = ScoreTree.from_sorted(*grown.to_sorted(), capacity=16, keeps_hull=keeps_hull)
    check_invariants(built)
    assert built.capacity == grown.capacity
    assert built.delong() == grown.delong()
    assert built.h_sum() == grown.h_sum()
    assert built.to_sorted().scores.tolist() == grown.to_sorted().scores.tolist()
    built.remove(labels, scores)
    check_invariants(built)


def test_capacity_and_fixed_point_do_not_depend_on_batches() -> None:
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, 100), rng.normal(size=100)
    at_once, one_by_one = ScoreTree(10), ScoreTree(10)
    at_once.insert(labels, scores)
    for t in range(100):
        one_by_one.insert(labels[t : t + 1], scores[t : t + 1])
    assert at_once.capacity == one_by_one.capacity == 160
    assert at_once.h_sum() == one_by_one.h_sum()


def test_a_hull_taken_up_later_is_the_same() -> None:
    rng = np.random.default_rng(0)
    size = 500 if COMPILED else 60
    tree = ScoreTree(keeps_hull=False)
    tree.insert(rng.integers(0, 2, size), rng.normal(size=size))
    before = tree.h_sum(), tree.hull().x.tolist()
    tree.keeps_hull = True
    check_invariants(tree)
    assert (tree.h_sum(), tree.hull().x.tolist()) == before
    tree.keeps_hull = False
    tree.insert([1], [0.0])
    check_invariants(tree)


@pytest.mark.parametrize("seed", range(at_length(40, 8)) if COMPILED else [])
def test_a_scan_finds_the_hull_however_the_window_changed_since_the_last_row(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scanned, bridged = ScoreTree(2000, keeps_hull=False), ScoreTree(2000)
    labels, scores = np.empty(0, np.int8), np.empty(0)
    for batch in range(60):
        size = int(rng.integers(1, 300))
        if len(labels) + size <= 2000 and rng.random() < 0.6:
            y, s = rng.random(size) < 0.3, rng.normal(size=size)
            labels, scores = np.append(labels, y), np.append(scores, s)
            for tree in (scanned, bridged):
                tree.insert(y, s)
        else:
            go = rng.permutation(len(labels))[:size]
            for tree in (scanned, bridged):
                tree.remove(labels[go], scores[go])
            labels, scores = np.delete(labels, go), np.delete(scores, go)
        assert scanned.row().tobytes() == bridged.row().tobytes()
        if batch % 10 == 9:
            check_invariants(scanned)


def test_removing_what_is_not_there_is_an_error_and_changes_nothing() -> None:
    tree = ScoreTree()
    tree.insert([0, 1, 1], [0.1, 0.2, 0.2])
    before = tree.delong(), tree.h_sum()
    for labels, scores in ([0], [0.3]), ([0], [0.2]), ([1, 1, 1], [0.2] * 3), ([1, 1], [0.2, 0.1]):
        with pytest.raises(MissingEventError, match="nothing was removed"):
            tree.remove(labels, scores)
        check_invariants(tree)
        assert (tree.delong(), tree.h_sum()) == before


def test_bad_input_is_refused_in_words() -> None:
    tree = ScoreTree()
    with pytest.raises(InputError, match="NaN at position 1"):
        tree.insert([0, 1], [0.0, np.nan])
    with pytest.raises(InputError, match="2 is none; give 0 and 1"):
        tree.insert([0, 2], [0.0, 1.0])
    with pytest.raises(InputError, match="-1 is none; give 0 and 1"):
        tree.insert(np.array([-1], np.int8), [0.0])
    with pytest.raises(InputError, match="1 of them for 2 labels"):
        tree.insert([0, 1], [0.0])
    with pytest.raises(InputError, match="one dimension"):
        tree.insert([[0]], [[0.0]])
    with pytest.raises(InputError, match="not ascending and distinct"):
        ScoreTree.from_sorted([1.0, 0.0], [1, 1], [0, 0])
    with pytest.raises(InputError, match="not ascending and distinct"):
        ScoreTree.from_sorted([0.0, -0.0], [1, 1], [0, 0])
    with pytest.raises(InputError, match="count below 0"):
        ScoreTree.from_sorted([1.0], [0], [0])
    with pytest.raises(InputError, match=r"Beta\(3, 1\)"):
        ScoreTree(cost=(3, 1))
    with pytest.raises(InputError, match="give a share"):
        tree.tpr_at_fpr(1.5)
    for growth in (0.99, np.nan, np.inf):
        with pytest.raises(InputError, match="give a factor, 1 or more"):
            tree.hull_subset(growth)
    with pytest.raises(InputError, match="of 0 events"):
        tree.select([0])
    assert len(tree) == 0


def test_the_kernel_refuses_nan_by_itself() -> None:
    tree = ScoreTree()
    for nan in (np.nan, -np.nan, np.array([0x7FF0000000000001]).view(np.float64)[0]):
        with pytest.raises(InputError, match="nan at position 1"):
            tree._apply(np.zeros(2, np.int8), np.array([0.5, nan]), 1)
        check_invariants(tree)


def test_numbers_without_equal_are_ordered_and_zeros_are_one() -> None:
    tree = ScoreTree()
    tree.insert([1, 0, 1, 0, 1], [np.inf, -np.inf, 0.0, -0.0, 5e-324])
    assert tree.to_sorted().scores.tolist() == [-np.inf, 0.0, 5e-324, np.inf]
    assert tree.auc() == 5.5 / 6
    tree.remove([0], [0.0])
    tree.remove([0], [-np.inf])
    check_invariants(tree)
    assert tree.auc() is None


@pytest.mark.skipif(not COMPILED, reason="a million events")
def test_a_million_equal_scores() -> None:
    tree = ScoreTree(1_000_000)
    labels = np.arange(1_000_000) % 4 == 0
    tree.insert(labels, np.zeros(1_000_000))
    assert tree.auc() == 0.5
    assert tree.ks() == (0.0, 0.0)
    check_invariants(tree)
    tree.remove(labels[1:], np.zeros(999_999))
    assert tree.delong()[:2] == (1, 0)


@pytest.mark.skipif(not COMPILED, reason="millions of events")
def test_sums_are_right_at_the_limit_and_refused_beyond() -> None:
    positives = MAX_WEIGHT // 3  # where the sum of squares is greatest
    negatives = MAX_WEIGHT - positives
    rng = np.random.default_rng(0)
    hull = np.arange(1, 1001.0)
    for keeps_hull in (True, False):
        tree = ScoreTree.from_sorted([0.0, 1.0], [0, positives], [negatives, 0], keeps_hull=keeps_hull)
        assert tree.capacity == MAX_WEIGHT
        assert tree.delong().squares_positive == 4 * positives * negatives**2 > 2**62
        assert tree.auc() == tree.h() == 1.0
        with pytest.raises(CapacityError, match="counts exactly up to"):
            tree.insert([1], [2.0])
        tree.remove([0], [0.0])
        tree.insert([0], [0.0])
        assert tree.delong().squares_positive == 4 * positives * negatives**2
        check_invariants(tree)
        # a hull of many long edges: products of the bridge search at their greatest
        share = np.sqrt(hull / 1000.0)
        weight = np.full(1000, MAX_WEIGHT // 1000)
        p = (0.9 * share * weight).astype(np.int64)
        tree = ScoreTree.from_sorted(hull, p, weight - p, keeps_hull=keeps_hull)
        for _ in range(50):
            y, s = rng.integers(0, 2, 20), rng.integers(1, 1001, 20) * 1.0
            tree.remove(y, s)
            tree.insert(y, s + rng.choice([-0.5, 0.0]))
        check_invariants(tree)
    with pytest.raises(CapacityError, match="counts exactly"):
        ScoreTree(MAX_WEIGHT + 1)
    with pytest.raises(CapacityError, match="counts exactly"):
        ScoreTree.from_sorted([0.0], [MAX_WEIGHT], [1])
