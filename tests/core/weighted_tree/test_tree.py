"""WeightedTree against a list of events in exact fractions, with its invariants recomputed.

Run as it is with leaves of full size; `test_score_tree_modes` runs it again with leaves of 8 and nodes of
4, in which splits, merges and emptied leaves are common, interpreted, and bounds checked.
"""

from __future__ import annotations

import math
from itertools import accumulate, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import InputError, MissingEventError
from rocsteady.core.kernels.cache_folder import COMPILED
from rocsteady.core.weighted_tree.layout import SLOTS
from rocsteady.core.weighted_tree.tree import WeightedTree
from sklearn.metrics import roc_auc_score

from tests.support.invariants.weighted_tree import check_invariants
from tests.support.oracles.weighted import Event, WeightedOracle, finite_streams, weightings
from tests.support.thorough import THOROUGH, at_length, examples, some

STREAMS = [name for name, _, _ in finite_streams(1, 0)]
WEIGHTINGS = [name for name, _ in weightings(1, 0)]
SHARES = [0.0, 0.01, 0.1, 0.29, 0.5, 0.9, 1.0]
COSTS = [0.05, 0.2, 0.3, 0.5, 0.9]


def stream_of(stream: str, weighting: str, events: int, seed: int = 3) -> tuple[np.ndarray, ...]:
    labels, scores = next((y, s) for name, y, s in finite_streams(events, seed) if name == stream)
    weights = next(w for name, w in weightings(events, seed) if name == weighting)
    return labels, scores, weights


def events_of(labels: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> list[Event]:
    return list(zip(labels.tolist(), scores.tolist(), weights.tolist(), strict=True))


def agree(tree: WeightedTree, oracle: WeightedOracle) -> None:
    """Everything that a tree can be asked, against exact fractions."""
    close = lambda value: pytest.approx(value, rel=1e-12, abs=1e-12)  # noqa: E731
    assert len(tree) == len(oracle.events)
    assert tree.positives == pytest.approx(float(oracle.positives), rel=1e-13)
    assert tree.negatives == pytest.approx(float(oracle.negatives), rel=1e-13)
    entries = tree.to_sorted()
    assert entries.scores.tolist() == oracle.scores
    assert entries.positives.tolist() == pytest.approx([float(p) for p in oracle.p], rel=1e-15)
    assert entries.negatives.tolist() == pytest.approx([float(n) for n in oracle.n], rel=1e-15)
    if not oracle.has_both:
        assert tree.auc() is tree.ks() is tree.interval() is tree.aum() is tree.tpr_at_fpr(0.5) is None
        return
    assert tree.auc() == close(oracle.auc())
    assert tree.aum() == pytest.approx(oracle.aum(), rel=1e-12)
    ks = tree.ks()
    assert ks is not None
    assert ks.value == close(oracle.ks()[0])
    assert ks.threshold in oracle.ks()[1]
    sizes = min(oracle.size(0), oracle.size(1))
    if sizes > 1 + 1e-6:
        assert tree.interval() == pytest.approx(oracle.interval(), abs=1e-9 if sizes < 1.01 else 1e-11)
    elif sizes < 1 + 1e-10:
        assert tree.interval() is None
    hull = tree.hull()
    assert hull.scores.tolist() == [block.scores[0] for block in oracle.blocks]
    assert hull.positives.tolist() == pytest.approx([float(b.p) for b in oracle.blocks], rel=1e-13)
    assert hull.negatives.tolist() == pytest.approx([float(b.n) for b in oracle.blocks], rel=1e-13)
    asked = np.array([*oracle.scores, -1e9, 0.5, 1e9])
    assert tree.calibrated(asked).tolist() == close([oracle.calibrated(s) for s in asked])
    for label in (0, 1):
        values = tree.placement(np.full(len(asked), label), asked).tolist()
        assert values == close([oracle.placement(label, s) for s in asked])
    agree_on_points(tree, oracle)
    for cost in COSTS:
        assert tree.cost_threshold(cost) == oracle.cost_threshold(cost)
    middle = oracle.scores[len(oracle.scores) // 2]
    below = [float(sum(m for s, m in oracle.mass[c].items() if s < middle)) for c in (0, 1)]
    assert tree.masses_below(middle) == pytest.approx(tuple(below), rel=1e-13)


def agree_on_points(tree: WeightedTree, oracle: WeightedOracle) -> None:
    """Points of the curve, within rounding of the share at which they are read: the curve has steps."""
    for share in SHARES:
        for value, at in (
            (tree.tpr_at_fpr(share), oracle.tpr_at_fpr),
            (tree.fpr_at_tpr(share), oracle.fpr_at_tpr),
        ):
            assert value is not None
            low, high = at(max(0.0, share - 1e-13)), at(min(1.0, share + 1e-13))
            assert low - 1e-12 <= value <= high + 1e-12


@pytest.mark.parametrize(("stream", "weighting"), some(product(STREAMS, WEIGHTINGS)))
@pytest.mark.at_length
def test_every_event_of_a_sliding_window_agrees_with_exact_fractions(stream: str, weighting: str) -> None:
    wide = weighting.startswith("from")
    for window, events in ((3, 12), (40, at_length(90, 56))) if COMPILED else ((11, 24),):
        labels, scores, weights = stream_of(stream, weighting, events)
        tree = WeightedTree()
        for t in range(events):
            begin = max(0, t + 1 - window)
            now = slice(begin, t + 1)
            tree.apply(labels[t : t + 1], scores[t : t + 1], weights[t : t + 1], [1])
            if t >= window:
                gone = slice(t - window, t - window + 1)
                tree.apply(labels[gone], scores[gone], weights[gone], [-1])
            if tree.needs_rebuild:
                assert wide or "giant" in weighting
                tree.rebuild(labels[now], scores[now], weights[now])
                assert not tree.needs_rebuild
            if SLOTS == 8 or t % 8 == 0:
                check_invariants(tree)
            if t % 7 == 0 or t < 5:
                agree_or_out_of_range(
                    tree, WeightedOracle(events_of(*(c[now] for c in (labels, scores, weights))))
                )
        tree.apply(labels[begin:], scores[begin:], weights[begin:], [-1] * (events - begin))
        assert len(tree) == 0
        check_invariants(tree)


def agree_or_out_of_range(tree: WeightedTree, oracle: WeightedOracle) -> None:
    """Where weights span more than floats do, what fractions tell apart may be one; AUC and KS stay."""
    weights = [weight for _, _, weight in oracle.events]
    if max(weights) / min(weights) < 1e100:
        agree(tree, oracle)
    elif oracle.has_both:
        assert tree.auc() == pytest.approx(oracle.auc(), rel=1e-12)
        ks = tree.ks()
        assert ks is not None
        assert ks.value == pytest.approx(oracle.ks()[0], abs=1e-12)
        agree_on_points(tree, oracle)


batches = st.lists(
    st.tuples(
        st.booleans(),
        st.lists(
            st.tuples(
                st.integers(0, 1),
                st.sampled_from([-1e280, -2.0, -0.0, 0.0, 5e-324, 0.5, 1.0, 1.5, 1e280])
                | st.floats(-1e280, 1e280),
                st.sampled_from([1.0, 0.1, 3.0, 1e-5]) | st.floats(1e-12, 1e12),
            ),
            max_size=30,
        ),
    ),
    max_size=8,
)


@settings(max_examples=examples(60 if COMPILED else 15))
@given(batches, st.randoms(use_true_random=False))
def test_batches_in_and_out_agree_with_a_list(steps: list[tuple[bool, list[Event]]], random: object) -> None:
    tree, held = WeightedTree(), list[Event]()
    for leaves, events in steps:
        if leaves:
            random.shuffle(held)  # type: ignore[attr-defined]
            events, held = held[: len(events)], held[len(events) :]
        else:
            held = held + events
        if not events:
            continue
        labels, scores, weights = zip(*events, strict=True)
        tree.apply(labels, scores, weights, [-1 if leaves else 1] * len(events))
        check_invariants(tree)
        if tree.needs_rebuild:
            tree.rebuild(*zip(*held, strict=True)) if held else tree.rebuild((), (), ())
        oracle = WeightedOracle(held)
        assert len(tree) == len(held)
        if oracle.has_both:
            assert tree.auc() == pytest.approx(oracle.auc(), rel=1e-12)
            assert tree.aum() == pytest.approx(oracle.aum(), rel=1e-12)
            ks = tree.ks()
            assert ks is not None
            assert ks.value == pytest.approx(oracle.ks()[0], abs=1e-12)


def test_a_removal_of_what_is_not_there_changes_nothing() -> None:
    tree = WeightedTree([0, 1, 1], [1.0, 2.0, 2.0], [1.0, 0.1, 0.2])
    before = tree.to_sorted()
    for score, label in ((3.0, 1), (1.0, 1)):
        with pytest.raises(MissingEventError, match="position 2"):
            tree.apply([0, 1, label], [5.0, 2.0, score], [1.0, 0.1, 1.0], [1, -1, -1])
        for column, old in zip(tree.to_sorted(), before, strict=True):
            assert column.tolist() == pytest.approx(old.tolist(), rel=1e-15)
        check_invariants(tree)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (([0, 1], [1.0, math.nan], [1.0, 1.0]), "NaN at position 1"),
        (([0, 1], [1.0, math.inf], [1.0, 1.0]), "inf at position 1"),
        (([0, 1], [1.0, 2.0], [1.0, 0.0]), "weights: 0.0 at position 1"),
        (([0, 1], [1.0, 2.0], [1.0, math.inf]), "weights: inf at position 1"),
        (([0, 1], [1.0, 2.0], [1.0]), "weights: shape"),
        (([0, 2], [1.0, 2.0], [1.0, 1.0]), "labels: 2"),
    ],
)
def test_wrong_input_is_refused_by_name(given: tuple[list[float], ...], words: str) -> None:
    tree = WeightedTree()
    with pytest.raises(InputError, match=words):
        tree.apply(*given, [1, 1])
    with pytest.raises(InputError, match=words):
        tree.rebuild(*given)
    with pytest.raises(InputError, match="signs"):
        tree.apply([0], [1.0], [1.0], [0])
    assert len(tree) == 0


def test_sorted_entries_make_the_same_tree() -> None:
    labels, scores, weights = stream_of("ties to one decimal", "exponential", 400)
    tree = WeightedTree(labels, scores, weights)
    again = WeightedTree.from_sorted(tree.to_sorted())
    check_invariants(again)
    assert again.auc() == tree.auc()
    assert again.interval() == pytest.approx(tree.interval(), rel=1e-13)
    assert again.ks() == tree.ks()
    assert len(again) == len(tree)
    with pytest.raises(InputError, match="ascending"):
        WeightedTree.from_sorted(tree.to_sorted()._replace(scores=-tree.to_sorted().scores))


@pytest.mark.slow
def test_a_window_of_many_leaves_agrees_with_scikit_learn() -> None:
    events, window = (12_000, 3_000) if COMPILED else (400, 150)
    for stream in ("random", "ties to one decimal", "sawtooth", "rising", "shrinking gap"):
        labels, scores, weights = stream_of(stream, "exponential", events)
        tree = WeightedTree()
        for begin in range(0, events, 500):
            new = np.arange(begin, min(events, begin + 500))
            old = new[new >= window] - window
            order = np.concatenate([new, old])
            signs = np.concatenate([np.ones(len(new)), -np.ones(len(old))])
            tree.apply(labels[order], scores[order], weights[order], signs)
            now = slice(max(0, new[-1] + 1 - window), new[-1] + 1)
            expected = roc_auc_score(labels[now], scores[now], sample_weight=weights[now])
            assert tree.auc() == pytest.approx(expected, rel=1e-12)
        check_invariants(tree)


def test_fading_by_inflated_weights_is_what_explicit_weights_are() -> None:
    """2^(i/T) reaches 2^10000: weights are scaled by powers of two, the tree is shifted or rebuilt."""
    long = 100_000 if THOROUGH else 50_000
    events, half_life, window, step = (long, 10, 530, 250) if COMPILED else (6_000, 10, 100, 500)
    rng = np.random.default_rng(4)
    labels = (rng.random(events) < 0.3).astype(np.int8)
    scores = np.round(rng.normal(size=events) + labels, 2)
    tree, shift, scaled = WeightedTree(), 0, 0

    def inflated(i: np.ndarray) -> np.ndarray:
        return np.ldexp(np.exp2(i % half_life / half_life), i // half_life - shift)

    for begin in range(0, events, step):
        new = np.arange(begin, begin + step)
        old = new[new >= window] - window
        held = np.arange(max(0, begin - window), begin)
        if new[-1] // half_life - shift > 300:
            shift, scaled = shift + 256, scaled + 1
            if scaled % 2:
                tree.shift(-256)
            else:
                tree.rebuild(labels[held], scores[held], inflated(held))
        order = np.concatenate([new, old])
        signs = np.repeat([1, -1], [len(new), len(old)])
        tree.apply(labels[order], scores[order], inflated(order), signs)
        assert not tree.needs_rebuild
        now = np.arange(max(0, begin + step - window), begin + step)
        explicit = np.exp2((now - now[-1]) / half_life)
        expected = roc_auc_score(labels[now], scores[now], sample_weight=explicit)
        assert tree.auc() == pytest.approx(expected, rel=1e-11)
        mass = tree.positives / inflated(now[-1:])[0]
        assert mass == pytest.approx(explicit[labels[now] == 1].sum(), rel=1e-12)
    check_invariants(tree)
    assert scaled > (events // 3_300 if COMPILED else 0)


def test_masses_that_come_and_go_at_one_score_leave_nothing_behind() -> None:
    events = 100_000 if COMPILED else 500
    rng = np.random.default_rng(5)
    labels = np.tile([0, 1], events // 2).astype(np.int8)
    weights = rng.exponential(size=events) + 1e-3
    tree = WeightedTree()
    window = 50
    tree.apply(labels[:window], np.zeros(window), weights[:window], np.ones(window))
    order = np.column_stack([np.arange(window, events), np.arange(events - window)]).ravel()
    signs = np.tile([1, -1], events - window)
    tree.apply(labels[order], np.zeros(len(order)), weights[order], signs)
    assert not tree.needs_rebuild
    last = slice(events - window, events)
    for label, mass in ((0, tree.negatives), (1, tree.positives)):
        assert mass == pytest.approx(math.fsum(weights[last][labels[last] == label]), rel=1e-15)
    assert len(tree.to_sorted().scores) == 1
    check_invariants(tree)


def test_a_giant_at_the_score_of_others_asks_for_a_rebuild_once_it_is_gone() -> None:
    held = ([0, 1, 1], [0.0, 0.0, 1.0], [0.1, 0.1, 0.1])
    tree = WeightedTree(*held)
    tree.apply([1], [0.0], [1e40], [1])
    assert not tree.needs_rebuild
    tree.apply([1], [0.0], [1e40], [-1])
    assert tree.needs_rebuild
    tree.rebuild(*held)
    assert not tree.needs_rebuild
    assert tree.auc() == pytest.approx(0.75, rel=1e-15)


def test_light_entries_are_summed_anew_once_a_heavier_event_has_left_them() -> None:
    """Light beside their class, but the lowest ones: thresholds and AUM are theirs."""
    held = ([0, 1, 1, 0], [0.0, 0.0, 1.0, 2.0], [1e-20, 1e-40, 1e50, 1e-30])
    built = WeightedTree(*held)
    tree = WeightedTree(*held)
    tree.apply([1, 1], [0.0, 0.0], [1e10, 1e10], [1, -1])
    assert tree.needs_rebuild
    # and still so in a scale that a larger one has forced upon it
    tree.apply([1], [2.0], [1e120], [1])
    assert tree.needs_rebuild
    tree.rebuild(*held)
    assert not tree.needs_rebuild
    assert tree.cost_threshold(0.2) == built.cost_threshold(0.2) == 1.0
    # weights fading away one by one: no step loses much, all of them do
    tree.apply([1] * 6, [0.0] * 6, [1e10, 1e-5, 1e-20, 1e10, 1e-5, 1e-20], [1, 1, 1, -1, -1, -1])
    assert tree.needs_rebuild


def test_aum_of_subnormal_scores_has_its_digits_where_one_class_is_nothing_beside_the_other() -> None:
    for power in (200, 500, 900):
        light = 2.0**power / 3.0
        tree = WeightedTree([1, 0], [0.0, 5e-324], [2.0**990, light])
        assert tree.aum() == pytest.approx(light * 5e-324, rel=1e-15)


def test_a_giant_whose_square_hides_those_of_others_asks_for_a_rebuild_once_it_is_gone() -> None:
    held = ([0, 0, 1, 1, 1], [0.5, -1.0, 0.0, 0.0, 1.0], [1.0, 0.5, 0.9, 0.7, 0.4])
    tree = WeightedTree(*held)
    for giant, hides in ((1e6, False), (1e18, True)):
        tree.apply([1, 1], [0.0, 0.0], [giant, giant], [1, -1])
        assert tree.needs_rebuild == hides
        if not hides:
            assert tree.interval() == pytest.approx(WeightedTree(*held).interval(), rel=1e-12)
    # and still so in a scale that a larger one has forced upon it
    tree = WeightedTree(*held)
    tree.apply([1, 1], [0.0, 0.0], [1e18, 1e18], [1, -1])
    tree.apply([1], [2.0], [1e120], [1])
    tree.apply([1], [2.0], [1e120], [-1])
    assert tree.needs_rebuild


def test_a_giant_at_a_score_of_its_own_leaves_nothing_behind() -> None:
    tree = WeightedTree([0, 1, 1], [0.0, 0.0, 1.0], [0.1, 0.1, 0.1])
    tree.apply([1, 1], [2.0, 2.0], [1e40, 1e40], [1, -1])
    assert not tree.needs_rebuild
    assert tree.to_sorted().positives.tolist() == [0.1, 0.1]
    tree.apply([1, 1], [2.0, 2.0], [1e300, 1e300], [1, -1])
    assert tree.needs_rebuild  # in the scale of the giant, what remains may have been rounded away


@pytest.mark.slow
@pytest.mark.parametrize("stream", ["random", "sawtooth", "rising", "falling", "alternating extremes"])
def test_memory_stays_in_proportion_to_what_is_held(stream: str) -> None:
    """Leaves that lose all but a few of their entries are merged."""
    events = 20_000 if COMPILED else 600
    labels, scores, weights = stream_of(stream, "ones", events)
    tree = WeightedTree(labels, scores, weights)
    rng = np.random.default_rng(6)
    for gone in (rng.random(events) < 0.95, np.arange(events) % 40 > 0):
        tree.apply(labels[gone], scores[gone], weights[gone], -np.ones(gone.sum()))
        free = int(tree._forest.state[0]["free_leaves"])
        leaves = len(tree._forest.leaves) - free
        assert leaves <= 4 + 6 * len(tree.to_sorted().scores) // SLOTS
        check_invariants(tree)
        tree.apply(labels[gone], scores[gone], weights[gone], np.ones(gone.sum()))
    check_invariants(tree)


def test_a_hull_of_as_many_edges_as_entries_finds_room() -> None:
    n = 2_000 if COMPILED else 200
    scores = np.repeat(np.arange(n, dtype=float), 2)
    labels = np.tile([0, 1], n).astype(np.int8)
    weights = np.where(labels == 1, np.exp2(scores / n * 200), 1.0)
    tree = WeightedTree(labels, scores, weights)
    assert len(tree.hull().scores) == n
    check_invariants(tree)
    tree.apply(labels, scores + 0.5, weights, np.ones(2 * n))
    assert len(tree.hull().scores) > n / 2
    check_invariants(tree)
    assert WeightedTree().hull().scores.tolist() == []
    assert np.isnan(WeightedTree().calibrated([1.0])).all()


def test_positives_are_found_by_their_mass_from_both_ends() -> None:
    labels, scores, weights = stream_of("ties to one decimal", "exponential", 300 if COMPILED else 60)
    tree = WeightedTree(labels, scores, weights)
    oracle = WeightedOracle(events_of(labels, scores, weights))
    total = float(oracle.positives)
    pairs = [(s, p) for s, p in zip(oracle.scores, oracle.p, strict=True) if p]
    for share in (0.0, 0.001, 0.2, 0.5, 0.77, 0.999):
        for from_above in (False, True):
            ordered = pairs[::-1] if from_above else pairs
            sums = accumulate(p for _, p in ordered)
            first = next(i for i, reached in enumerate(sums) if reached >= share * total)
            found = tree.score_at_positive_mass(share * total, from_above=from_above)
            assert found == ordered[first][0]
    assert tree.score_at_positive_mass(total * 1.001) is None
    counts = WeightedTree([1, 1, 0, 1], [1.0, 2.0, 2.5, 3.0], np.ones(4))
    assert counts.score_at_positive_mass(2.0) == 2.0
    assert counts.score_at_positive_mass(2.0, strictly=True) == 3.0
    assert counts.score_at_positive_mass(2.0, from_above=True, strictly=True) == 1.0
    assert counts.score_at_positive_mass(3.0, strictly=True) is None
    assert WeightedTree().score_at_positive_mass(0.0) is None
