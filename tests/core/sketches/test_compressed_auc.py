"""CompressedAuc: after every event the list is compressed and the estimate within its bound."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import CapacityError, ConfigError, InputError, MissingEventError
from rocsteady.core.kernels.cache_folder import COMPILED
from rocsteady.core.score_tree.tree import ScoreTree
from rocsteady.core.sketches import compressed_list
from rocsteady.core.sketches.compressed_auc import CompressedAuc

from tests.support.invariants.compressed_auc import check_invariants
from tests.support.thorough import examples, others_slow, some

EPSILONS = [0.0, 0.01, 0.1, 0.5, 3.0]
STEPS = 150 if COMPILED else 36

Event = tuple[int, float]
Step = tuple[int, Event]
"""1 and an event that comes, or -1 and one that goes."""


def exact_auc(events: list[Event]) -> float | None:
    """Every pair, one by one."""
    labels, scores = np.array([y for y, _ in events]), np.array([s for _, s in events])
    positives, negatives = scores[labels == 1], scores[labels == 0]
    if not len(positives) or not len(negatives):
        return None
    wins = (positives[:, None] > negatives).sum() + 0.5 * (positives[:, None] == negatives).sum()
    return float(wins / (len(positives) * len(negatives)))


def check(compressed: CompressedAuc, events: list[Event]) -> None:
    """Eq. 3, Eq. 4, Eq. 5 and propositions 1 and 2, from nothing but the events and the nodes' scores."""
    epsilon, own_label = compressed.epsilon, 0 if compressed.reverse else 1
    own = np.array([s for y, s in events if y == own_label])
    other = np.array([s for y, s in events if y != own_label])
    scores = compressed.nodes().scores
    assert list(scores) == sorted(set(scores), reverse=True)
    p = [int((own == s).sum()) for s in scores]
    hp = [int((own > s).sum()) for s in scores]
    assert all(p), "every node has events of its class"
    ends_hp, ends_p = [0, *hp, len(own)], [0, *p, 0]
    for v in range(len(ends_hp) - 1):
        through = ends_hp[v] + ends_p[v]
        assert ends_hp[v + 1] - through <= epsilon * through, "Eq. 3"
        if v + 2 < len(ends_hp):
            assert ends_hp[v + 2] - through > epsilon * through, "Eq. 4"
    assert compressed.size == len(ends_hp)
    if epsilon and len(own):
        assert compressed.size <= 2 * math.log(len(own)) / math.log1p(epsilon) + 4, "proposition 2"

    exact, estimate = exact_auc(events), compressed.auc()
    assert (exact is None) == (estimate is None)
    if exact is None or estimate is None:
        return
    rank_sum = 0.0  # Eq. 5
    for s in other:
        node = int((scores >= s).sum())
        if node and scores[node - 1] == s:
            rank_sum += hp[node - 1] + p[node - 1] / 2
        else:
            rank_sum += (ends_hp[node] + ends_p[node] + ends_hp[node + 1]) / 2
    share = rank_sum / (len(own) * len(other))
    assert estimate == pytest.approx(1 - share if compressed.reverse else share, abs=1e-12)
    bound = epsilon / 2 * (1 - exact if compressed.reverse else exact)
    assert abs(estimate - exact) <= bound + 1e-14, "proposition 1"
    if epsilon == 0:
        assert estimate == exact


def sliding(events: list[Event], window: int) -> Iterator[Step]:
    for t, event in enumerate(events):
        yield 1, event
        if t >= window:
            yield -1, events[t - window]


def random_steps(rng: np.random.Generator, decimals: int) -> Iterator[Step]:
    held: list[Event] = []
    for t in range(2 * STEPS):
        if held and rng.random() < (0.35 if t < STEPS else 0.65):
            yield -1, held.pop(int(rng.integers(len(held))))
        else:
            y = int(rng.random() < 0.5)
            held.append((y, round(float(rng.normal()) + y, decimals)))
            yield 1, held[-1]


def sorted_steps(rng: np.random.Generator, direction: int) -> Iterator[Step]:
    return sliding([(int(rng.random() < 0.6), float(direction * t)) for t in range(STEPS)], STEPS // 3)


def alternating_extremes(rng: np.random.Generator) -> Iterator[Step]:
    return sliding([(t // 2 % 2, float((-1) ** t * t)) for t in range(STEPS)], STEPS // 3)


def one_class_then_the_other(rng: np.random.Generator) -> Iterator[Step]:
    events = [(t * 4 // STEPS % 2, float(rng.integers(9))) for t in range(STEPS)]
    return sliding(events, STEPS // 5)


def toggled_at_the_top(rng: np.random.Generator) -> Iterator[Step]:
    """Groups as large as may be, then the events above all of them come and go: hp changes everywhere."""
    top = [(y, 1000.0 + i) for i in range(6) for y in (0, 1)]
    yield from ((1, event) for event in top)
    yield from ((1, (int(t % 5 > 0), float(-t))) for t in range(STEPS // 2))
    for _ in range(3):
        yield from ((-1, event) for event in top)
        yield from ((1, event) for event in reversed(top))


def emptied(rng: np.random.Generator) -> Iterator[Step]:
    for _ in range(3):
        events = [(int(rng.random() < 0.5), float(rng.integers(40))) for _ in range(STEPS // 6)]
        yield from ((1, event) for event in events)
        yield from ((-1, events[i]) for i in rng.permutation(len(events)))


def extreme_scores(rng: np.random.Generator) -> Iterator[Step]:
    scores = [-np.inf, np.inf, 0.0, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308, 1.0, np.nextafter(1.0, 2.0)]
    events = [(int(rng.random() < 0.5), float(rng.choice(scores))) for _ in range(STEPS // 2)]
    return sliding(events, STEPS // 5)


STREAMS: dict[str, Callable[[np.random.Generator], Iterator[Step]]] = {
    "random": lambda rng: random_steps(rng, 15),
    "tied": lambda rng: random_steps(rng, 1),
    "heavily tied": lambda rng: random_steps(rng, 0),
    "sorted up": lambda rng: sorted_steps(rng, 1),
    "sorted down": lambda rng: sorted_steps(rng, -1),
    "alternating extremes": alternating_extremes,
    "one class, then the other": one_class_then_the_other,
    "toggled at the top": toggled_at_the_top,
    "emptied": emptied,
    "extreme scores": extreme_scores,
}


@pytest.mark.parametrize(
    ("stream", "epsilon", "reverse"),
    others_slow(some(product(STREAMS, EPSILONS, [False, True]), each=4), each=2),
)
def test_the_equations_and_the_bound_hold_after_every_event(
    stream: str, epsilon: float, reverse: bool
) -> None:
    compressed = CompressedAuc(epsilon, reverse)
    events: list[Event] = []
    for sign, event in STREAMS[stream](np.random.default_rng(7)):
        added = compressed.nodes_added
        if sign > 0:
            compressed.insert(*event)
            events.append(event)
            assert compressed.nodes_added - added <= 1
        else:
            compressed.remove(*event)
            events.remove(event)
        check(compressed, events)
        assert len(compressed) == len(events)
    check_invariants(compressed)


@settings(max_examples=examples(100 if COMPILED else 10))
@given(
    st.sampled_from(EPSILONS),
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 12), st.booleans()), max_size=80),
)
def test_any_sequence_keeps_the_bound(
    epsilon: float, reverse: bool, steps: list[tuple[int, int, bool]]
) -> None:
    compressed = CompressedAuc(epsilon, reverse)
    events: list[Event] = []
    for label, score, leaves in steps:
        event = (label, float(score))
        if leaves and event in events:
            compressed.remove(*event)
            events.remove(event)
        else:
            compressed.insert(*event)
            events.append(event)
        check(compressed, events)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("window", [1, 2, 40])
def test_a_window_slides_as_if_event_by_event_however_it_is_cut(window: int, reverse: bool) -> None:
    rng = np.random.default_rng(3)
    labels, scores = rng.integers(0, 2, STEPS), rng.normal(size=STEPS).round(1)
    stepped, expected = CompressedAuc(0.1, reverse), []
    for t in range(STEPS):
        stepped.insert(labels[t], scores[t])
        if t >= window:
            stepped.remove(labels[t - window], scores[t - window])
        expected.append(math.nan if (auc := stepped.auc()) is None else auc)
    for cut in (1, 7, STEPS):
        slid = CompressedAuc(0.1, reverse)
        parts = [slid.slide(labels[a : a + cut], scores[a : a + cut], window) for a in range(0, STEPS, cut)]
        np.testing.assert_array_equal(np.concatenate(parts), expected)
        assert (len(slid), slid.auc()) == (min(window, STEPS), stepped.auc())
        check_invariants(slid)


def test_a_window_may_be_another_in_the_next_call() -> None:
    rng = np.random.default_rng(4)
    labels, scores = rng.integers(0, 2, 200), rng.normal(size=200)
    slid, begin = CompressedAuc(0.2), 0
    for start, window in ((0, 30), (50, 100), (140, 12), (160, 13)):
        end = {0: 50, 50: 140, 140: 160, 160: 200}[start]
        estimates = slid.slide(labels[start:end], scores[start:end], window)
        for t in range(start, end):
            begin = max(begin, t + 1 - window)
            held = list(zip(labels[begin : t + 1].tolist(), scores[begin : t + 1].tolist(), strict=True))
            exact = exact_auc(held)
            if exact is None:
                assert math.isnan(estimates[t - start])
            else:
                assert abs(estimates[t - start] - exact) <= 0.1 * exact + 1e-14
        check_invariants(slid)
    assert len(slid.slide([], [], 5)) == 0
    assert len(slid) == 5


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED, reason="a long stream is compiled")
@pytest.mark.parametrize(("epsilon", "reverse"), some(product([0.0, 0.05, 0.1, 1.0], [False, True])))
def test_a_long_stream_stays_within_its_bound_of_the_exact_tree(epsilon: float, reverse: bool) -> None:
    rng = np.random.default_rng(5)
    n, window = 20_000 if epsilon else 6000, 5000
    labels = (rng.random(n) < 0.3).astype(np.int8)
    scores = rng.normal(size=n) + labels * np.sin(np.arange(n) / 3000)
    slid = CompressedAuc(epsilon, reverse)
    for start in range(0, n, 2000):
        slid.slide(labels[start : start + 2000], scores[start : start + 2000], window)
        begin, end = max(0, start + 2000 - window), start + 2000
        tree = ScoreTree(keeps_hull=False)
        tree.insert(labels[begin:end], scores[begin:end])
        exact, estimate = tree.auc(), slid.auc()
        assert exact is not None
        assert estimate is not None
        assert abs(estimate - exact) <= epsilon / 2 * (1 - exact if reverse else exact) + 1e-14
        if epsilon == 0:
            assert estimate == exact
        check_invariants(slid)


@pytest.mark.skipif(not COMPILED, reason="a long stream is compiled")
def test_the_list_grows_as_the_logarithm_of_the_events() -> None:
    rng = np.random.default_rng(6)
    sizes = []
    for k in (1000, 10_000, 100_000):
        compressed = CompressedAuc(0.1)
        compressed.insert(rng.integers(0, 2, k), rng.normal(size=k))
        sizes.append(compressed.size)
        assert compressed.size <= 2 * math.log(k) / math.log(1.1) + 4
    steps = np.diff(sizes)  # for ten times the events
    assert steps.max() < 2 * math.log(10) / math.log(1.1) + 4
    assert sizes[-1] < 150


def test_what_it_cannot_do_is_refused_in_words_and_changes_nothing() -> None:
    for wrong in (-0.1, math.nan, math.inf, "much", None):
        with pytest.raises(ConfigError, match=r"epsilon: .*; give a finite number"):
            CompressedAuc(wrong)  # type: ignore[arg-type]
    compressed = CompressedAuc(0.1)
    compressed.insert([0, 1, 1], [0.0, 1.0, 2.0])
    with pytest.raises(InputError, match="NaN at position 0"):
        compressed.insert(1, math.nan)
    with pytest.raises(InputError, match="labels: 2 is none"):
        compressed.insert(2, 0.5)
    with pytest.raises(InputError, match=r"scores: 1 of them for 2 labels"):
        compressed.insert([0, 1], [0.5])
    with pytest.raises(MissingEventError, match=r"no event of label 0 and score 1\.0 is there"):
        compressed.remove(0, 1.0)
    with pytest.raises(MissingEventError, match=r"position 1 of the batch\); nothing was removed"):
        compressed.remove([1, 1], [2.0, 2.0])
    with pytest.raises(InputError, match="let a CompressedAuc of its own slide"):
        compressed.slide([0], [0.0], 5)
    assert (len(compressed), compressed.auc()) == (3, 1.0)
    check_invariants(compressed)

    window = CompressedAuc(0.1)
    for wrong in (0, -3, 2.5, None, True):
        with pytest.raises(InputError, match=r"window: .*; give a whole number of events, at least 1"):
            window.slide([0], [0.0], wrong)  # type: ignore[arg-type]
    window.slide([0, 1], [0.0, 1.0], 5)
    with pytest.raises(InputError, match="insert: events came by slide"):
        window.insert(1, 0.0)
    with pytest.raises(InputError, match="remove: events came by slide"):
        window.remove(1, 1.0)
    with pytest.raises(CapacityError):
        window.slide(np.zeros(2_500_000, np.int8), np.zeros(2_500_000), 3_000_000)
    assert (len(window), window.auc()) == (2, 1.0)


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_has_no_auc(label: int) -> None:
    for reverse in (False, True):
        compressed = CompressedAuc(0.1, reverse)
        assert compressed.auc() is None
        compressed.insert([label] * 9, np.arange(9.0))
        assert compressed.auc() is None
        assert np.isnan(CompressedAuc(0.1, reverse).slide([label] * 9, np.arange(9.0), 3)).all()
        compressed.remove([label] * 9, np.arange(9.0))
        assert (len(compressed), compressed.size) == (0, 2)


def test_a_copy_is_a_set_of_its_own() -> None:
    original = CompressedAuc(0.1)
    original.insert([0, 1], [0.0, 1.0])
    for twin in (copy.deepcopy(original), pickle.loads(pickle.dumps(original))):
        twin.insert([1] * 100, np.arange(100.0))
        check_invariants(twin)
        assert (len(original), len(twin)) == (2, 102)
    check_invariants(original)


@pytest.mark.skipif(not COMPILED, reason="numba is switched off")
def test_the_kernel_is_compiled_once() -> None:
    labels, scores = np.array([0, 1, 1]), np.array([0.1, 0.2, 0.3])
    scores.flags.writeable = False
    for given_labels in (labels, labels.astype(bool), labels.tolist(), labels[::-1]):
        for given_scores in (scores, scores.astype(np.float32), scores.tolist(), scores[::-1]):
            CompressedAuc().slide(given_labels, given_scores, 2)
            compressed = CompressedAuc()
            compressed.insert(given_labels, given_scores)
            compressed.remove(given_labels, given_scores)
    CompressedAuc().insert(True, 1)
    assert len(compressed_list.run.signatures) == 1  # type: ignore[attr-defined]
