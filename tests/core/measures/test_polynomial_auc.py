"""Sums are exact, whatever came and went; estimates are those of all pairs; bounds hold the AUC."""

from __future__ import annotations

import math
import pickle
import random
import struct
import tracemalloc
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import rocsteady as rs
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.chebyshev import chebval
from rocsteady.core.measures import polynomial_estimate
from rocsteady.core.measures.polynomial_auc import PolynomialAuc
from rocsteady.core.measures.polynomial_estimate import PolynomialEstimate, polynomial_auc_of
from rocsteady.core.measures.step_polynomials import step_polynomial
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from tests.support.oracles.score_tree import streams
from tests.support.streams.batches import flips, truncations, with_right_checksum
from tests.support.thorough import at_length, examples

HEAD, CRC = 20, 16
NOTHING = PolynomialEstimate(None, None, None, None)


def finite_streams(events: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    found = {}
    for name, labels, scores in streams(events, 5):
        finite = np.isfinite(scores)
        found[name] = labels[finite], scores[finite]
    return found


STREAMS = tuple(finite_streams(8))


def around(scores: np.ndarray) -> tuple[float, float]:
    """Return the interval of scores, a wider one where they are all the same."""
    low, high = float(scores.min()), float(scores.max())
    return (low, high) if low < high else (low - 1, high + 1)


def of(labels: object, scores: np.ndarray, weights: object = None, **choices: object) -> PolynomialAuc:
    if "interval" not in choices:
        choices["interval"] = around(scores)
    auc = PolynomialAuc(**choices)
    auc.add(labels, scores, weights)
    return auc


def over_pairs(
    labels: np.ndarray, scores: np.ndarray, polynomial: np.ndarray, weights: np.ndarray | None = None
) -> float:
    """Return the mean of a polynomial over all pairs, one by one."""
    scale = 0.5 if np.abs(scores).max() > 1e300 else 1.0
    low, high = (end * scale for end in around(scores))
    u = ((scores * scale - low) - (high - scores * scale)) / (high - low)
    weights = np.ones(len(u)) if weights is None else weights
    differences = (u[labels == 1][:, None] - u[labels == 0][None, :]) / 2
    masses = weights[labels == 1][:, None] * weights[labels == 0][None, :]
    return float(np.average(chebval(differences, polynomial), weights=masses))


def check_against_pairs(
    labels: np.ndarray, scores: np.ndarray, weights: np.ndarray | None, degree: int, fit: str
) -> None:
    found = of(labels, scores, weights, degree=degree, fit=fit).estimate()
    near, low, high = (
        over_pairs(labels, scores, step_polynomial(degree, which), weights)
        for which in (fit, "lower", "upper")
    )
    off = 2e-11 if degree <= 30 else 2e-10
    assert found.low == pytest.approx(max(0, low), abs=off)
    assert found.high == pytest.approx(min(1, high), abs=off)
    assert found.auc == pytest.approx(min(max(near, found.low), found.high), abs=off)
    assert found.bound == max(found.high - found.auc, found.auc - found.low)
    with np.errstate(all="ignore"):  # scikit-learn sums the largest floats
        auc = roc_auc_score(labels, scores, sample_weight=weights)
    assert found.low - 1e-14 * (weights is not None) <= auc <= found.high + 1e-14 * (weights is not None)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("degree", [2, 3, 10, 30, 128])
def test_it_is_the_mean_over_all_pairs_and_its_bounds_hold_the_auc(name: str, degree: int) -> None:
    labels, scores = finite_streams(400)[name]
    if len(set(labels.tolist())) < 2:
        assert of(labels, scores, degree=degree).estimate() == NOTHING
        return
    for fit in ("least_squares", "chebyshev"):
        check_against_pairs(labels, scores, None, degree, fit)


@pytest.mark.parametrize("name", STREAMS)
def test_weights_count_as_so_many_events(name: str) -> None:
    labels, scores = finite_streams(300)[name]
    if len(set(labels.tolist())) < 2:
        return
    rng = np.random.default_rng(3)
    for weights in (rng.exponential(size=len(labels)), 2.0 ** rng.uniform(-20, 20, len(labels))):
        check_against_pairs(labels, scores, weights, 30, "least_squares")
    counts = rng.integers(1, 9, len(labels))
    repeated = of(np.repeat(labels, counts), np.repeat(scores, counts))
    weighted = of(labels, scores, counts)
    assert weighted.estimate() == pytest.approx(repeated.estimate(), abs=1e-11)
    assert weighted.events == len(labels)
    doubled, tiny = of(labels, scores, 2.0 * counts), of(labels, scores, counts * 2.0**-60)
    assert doubled.estimate() == tiny.estimate() == weighted.estimate()
    assert of(labels, scores, np.ones(len(labels))).to_bytes() == of(labels, scores).to_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_sums_at_every_prefix_depend_on_the_events_alone(name: str) -> None:
    labels, scores = finite_streams(60)[name]
    weights = np.random.default_rng(1).exponential(size=len(labels))
    growing, sliding = PolynomialAuc(6, around(scores)), PolynomialAuc(6, around(scores))
    for event in range(len(labels)):
        now = slice(event, event + 1)
        growing.add(labels[now], scores[now])
        before = of(labels[:event], scores[:event], degree=6, interval=around(scores))
        last = of(labels[event], scores[event], degree=6, interval=around(scores))
        whole = of(labels[: event + 1], scores[: event + 1], degree=6, interval=around(scores))
        assert growing.to_bytes() == whole.to_bytes() == before.merge(last).to_bytes()
        sliding.add(labels[now], scores[now], weights[now])
        if event >= 7:
            gone = slice(event - 7, event - 6)
            sliding.remove(labels[gone], scores[gone], weights[gone])
        held = slice(max(0, event - 6), event + 1)
        window = of(labels[held], scores[held], weights[held], degree=6, interval=around(scores))
        assert sliding.to_bytes() == window.to_bytes()
        assert sliding.estimate() == window.estimate()
    for event in random.Random(2).sample(range(len(labels)), len(labels)):
        growing.remove(labels[event], scores[event])
    assert growing.to_bytes() == PolynomialAuc(6, around(scores)).to_bytes()


event_lists = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.one_of(st.floats(-3, 5), st.sampled_from([-3.0, 0.0, 5.0, 5e-324])),
        st.one_of(st.just(1.0), st.floats(2.0**-64, 2.0**64), st.integers(1, 4).map(float)),
    ),
    max_size=30,
)


@settings(max_examples=examples(150))
@given(kept=event_lists, gone=event_lists, seed=st.integers(0, 2**32), degree=st.integers(2, 9))
def test_whatever_comes_and_goes_the_bytes_are_those_of_what_stays(
    kept: list[tuple[int, float, float]], gone: list[tuple[int, float, float]], seed: int, degree: int
) -> None:
    rng = random.Random(seed)

    def empty() -> PolynomialAuc:
        return PolynomialAuc(degree, (-3, 5))

    def take(auc: PolynomialAuc, doing: str, events: Sequence[tuple[int, float, float]]) -> None:
        events, at = list(events), 0
        rng.shuffle(events)
        while at < len(events):
            some = events[at : at + rng.randint(1, 12)]
            at += len(some)
            labels, scores, weights = map(list, zip(*some, strict=True))
            getattr(auc, doing)(labels, scores, None if set(weights) == {1.0} else weights)

    parts = [empty() for _ in range(rng.randint(1, 4))]
    for event in [*kept, *gone]:
        take(rng.choice(parts), "add", [event])
    while len(parts) > 1:
        rng.shuffle(parts)
        other = parts.pop()
        if rng.random() < 0.5:
            other = pickle.loads(pickle.dumps(other))
        before = other.to_bytes()
        assert parts[0].merge(other) is parts[0]
        assert other.to_bytes() == before
    take(parts[0], "remove", gone)
    whole = empty()
    take(whole, "add", kept)
    assert parts[0].to_bytes() == whole.to_bytes()
    assert parts[0].estimate() == whole.estimate()
    assert (whole.events, whole.positives) == (len(kept), sum(label for label, _, _ in kept))


def test_chunks_and_calls_are_the_same_and_inputs_of_any_kind() -> None:
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, 150_000), rng.uniform(-1, 1, 150_000)
    whole = of(labels, scores, interval=(-1, 1)).to_bytes()
    cut = PolynomialAuc()
    for start in range(0, 150_000, 9_973):
        cut.add(labels[start : start + 9_973], scores[start : start + 9_973])
    assert cut.to_bytes() == whole
    labels, scores = labels[:500], np.round(scores[:500], 2).astype(np.float32)
    plain = of(labels, scores, interval=(-1, 1)).to_bytes()
    for kind in (labels == 1, labels * 2 - 1, labels.astype(float), (labels == 1).tolist()):
        assert of(kind, scores.tolist(), interval=(-1, 1)).to_bytes() == plain
    assert of(labels[::-1], scores[::-1], interval=(-1, 1)).to_bytes() == plain


def test_memory_does_not_grow_with_the_events() -> None:
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, 1_000_000).astype(np.int8), rng.uniform(-1, 1, 1_000_000)
    PolynomialAuc().add(labels[:9], scores[:9])
    peaks = []
    for events in (100_000, 1_000_000):
        tracemalloc.start()
        PolynomialAuc().add(labels[:events], scores[:events])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert max(peaks) < 3_000_000


def exact_chebyshev(u: float, degree: int) -> list[Fraction]:
    x = Fraction(u)
    values = [Fraction(1), x]
    while len(values) <= degree:
        values.append(2 * x * values[-1] - values[-2])
    return values


@pytest.mark.at_length
@pytest.mark.parametrize("degree", [10, 30, pytest.param(128, marks=pytest.mark.slow)])
def test_means_are_off_by_no_more_than_is_said(degree: int) -> None:
    rng = np.random.default_rng(degree)
    near_ends = 1 - np.geomspace(1e-16, 1e-2, at_length(6, 3))
    scores = np.concatenate(
        [rng.uniform(-1, 1, at_length(6, 2)), near_ends, -near_ends, [1.0, -1.0, 0.0, 5e-324]]
    )
    for weights in (np.ones(len(scores)), rng.exponential(size=len(scores))):
        auc = PolynomialAuc(degree)
        auc.add(np.ones(len(scores)), scores, weights)
        auc.add(0, 0.0)
        mass = sum(map(Fraction, weights.tolist()))
        terms = [exact_chebyshev(u, degree) for u in scores.tolist()]
        allowed = 2.0**-polynomial_estimate.FRACTION_BITS + 2.0 * degree**2 * 2.0**-53
        for r, found in enumerate(auc._sums.means()[1].tolist()):
            exact = sum(Fraction(w) * values[r] for w, values in zip(weights.tolist(), terms, strict=True))
            assert abs(Fraction(found) - exact / mass) < allowed


def test_raw_powers_of_unscaled_scores_lose_all_digits() -> None:
    """The same polynomial by powers of its argument and of scores: right only where these are scaled."""
    rng = np.random.default_rng(0)
    labels = (rng.random(2_000) < 0.4).astype(int)
    scores = 1_000 + rng.normal(size=2_000) + labels
    wanted = over_pairs(labels, scores, step_polynomial(30))
    assert of(labels, scores).estimate().auc == pytest.approx(wanted, abs=1e-11)

    def by_powers(x: np.ndarray, width: float) -> float:
        powers = np.polynomial.chebyshev.cheb2poly(step_polynomial(30))
        of_class = [np.array([np.sum(x[labels == c] ** r) for r in range(31)]) for c in (0, 1)]
        total = 0.0
        for i in range(31):
            for j in range(i + 1):
                alpha = powers[i] / width**i * math.comb(i, j) * (-1) ** (i - j)
                total += alpha * of_class[1][j] * of_class[0][i - j]
        return total / (of_class[0][0] * of_class[1][0])

    low, high = around(scores)
    assert abs(by_powers(scores, high - low)) > 1e30  # the AUC is .76
    scaled = (scores - (low + high) / 2) / ((high - low) / 2)
    assert by_powers(scaled, 2) == pytest.approx(wanted, abs=1e-8)


def test_it_is_far_off_where_scores_crowd_and_its_bounds_say_so() -> None:
    """Rare positives by probability: all in a corner of [0, 1]. Their logits fill the interval."""
    rng = np.random.default_rng(0)
    labels = (rng.random(50_000) < 0.01).astype(int)
    logits = rng.normal(size=50_000) + 2 * labels - 5
    auc = roc_auc_score(labels, logits)
    crowded = of(labels, 1 / (1 + np.exp(-logits)), interval=(0, 1)).estimate()
    spread = of(labels, logits).estimate()
    assert crowded.auc < auc - 0.1
    assert abs(spread.auc - auc) < 1e-4
    for found in (crowded, spread):
        assert found.auc - found.bound <= found.low <= auc <= found.high <= found.auc + found.bound
    assert crowded.bound > 3 * spread.bound


def off_by(degree: int, fit: str) -> float:
    """Return the largest error of the AUC of N(0, 1) against N(m, 1), m from 0 to 3, 60,000 events each."""
    worst = 0.0
    quantiles = norm.ppf((np.arange(30_000) + 0.5) / 30_000)
    labels = np.repeat([0, 1], 30_000)
    for m in (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0):
        scores = np.concatenate([quantiles, quantiles + m])
        found = of(labels, scores, degree=degree, fit=fit).estimate()
        auc = roc_auc_score(labels, scores)
        assert found.low <= auc <= found.high
        worst = max(worst, abs(found.auc - auc))
    return worst


@pytest.mark.slow
@pytest.mark.parametrize(
    ("degree", "fit", "most"),
    [
        (10, "least_squares", 0.025), (10, "chebyshev", 0.03),
        (20, "least_squares", 0.0006), (20, "chebyshev", 0.0008),
        (30, "least_squares", 0.000015), (30, "chebyshev", 0.00002),
    ],
)  # fmt: skip
def test_how_far_it_is_off_on_normal_scores(degree: int, fit: str, most: float) -> None:
    assert most / 2 < off_by(degree, fit) < most


def test_bounds_narrow_with_the_degree() -> None:
    labels, scores = finite_streams(2_000)["random"]
    widths = [
        (found := of(labels, scores, degree=degree).estimate()).high - found.low
        for degree in (4, 8, 16, 32, 64, 128)
    ]
    assert all(1.1 < wide / narrow < 3 for wide, narrow in pairwise(widths))
    assert widths[-1] < 0.12


def test_separated_classes_are_told_from_random_ones() -> None:
    labels = np.arange(2_000) % 2
    scores = np.random.default_rng(0).random(2_000)
    perfect, inverted = of(labels, scores + 5 * labels), of(labels, scores - 5 * labels)
    assert perfect.estimate().low > 0.99
    assert inverted.estimate().high < 0.01
    assert 0 <= inverted.estimate().low <= inverted.estimate().auc
    assert perfect.estimate().auc <= perfect.estimate().high <= 1
    tied = of(labels, np.full(2_000, 7.0)).estimate()
    assert (tied.auc, tied.low, tied.high) == (pytest.approx(0.5, abs=1e-11), 0, 1)


def test_two_data_sets_with_nearly_the_same_sums_are_both_within_the_bounds() -> None:
    rng = np.random.default_rng(0)
    labels, base = np.arange(4_000) % 2, rng.normal(size=4_000).round(2)
    base[:2] = -9, 9
    right, wrong = base + 1e-9 * labels, base - 1e-9 * labels
    interval = (-10, 10)
    best, worst = (of(labels, scores, interval=interval).estimate() for scores in (right, wrong))
    assert best == pytest.approx(worst, abs=1e-7)
    assert max(best.low, worst.low) <= roc_auc_score(labels, wrong) < roc_auc_score(labels, right)
    assert roc_auc_score(labels, right) <= min(best.high, worst.high)


@pytest.mark.parametrize("name", STREAMS)
def test_of_entries_it_is_that_of_their_events(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    labels, scores = finite_streams(500)[name]
    keys, place = np.unique(scores, return_inverse=True)
    negatives = np.bincount(place[labels == 0], minlength=len(keys)).astype(float)
    positives = np.bincount(place[labels == 1], minlength=len(keys)).astype(float)
    if not positives.any() or len(keys) == 1:
        return
    found = polynomial_auc_of(keys, negatives, positives)
    assert found == pytest.approx(of(labels, scores).estimate(), abs=1e-10)
    assert found == polynomial_auc_of(keys, negatives * 2.0**200, positives * 2.0**-300)
    with np.errstate(all="ignore"):
        assert found.low <= roc_auc_score(labels, scores) <= found.high
    monkeypatch.setattr(polynomial_estimate, "MOST_TERMS", 7)
    assert polynomial_auc_of(keys, negatives, positives) == found


def test_bounds_of_entries_hold_where_one_outweighs_all() -> None:
    keys = np.linspace(0, 1, 20_000)
    negatives, positives = np.ones(20_000), np.ones(20_000)
    negatives[5_000], positives[15_000] = 1e12, 1e12
    found = polynomial_auc_of(keys, negatives, positives)
    below = np.cumsum(negatives) - negatives / 2
    exact = float(np.sum(positives * below) / (positives.sum() * negatives.sum()))
    assert found.low <= exact <= found.high
    assert found.low > 0.9


@pytest.mark.parametrize("scores", [[], [3.0]])
def test_a_single_score_is_no_interval(scores: list[float]) -> None:
    assert polynomial_auc_of(np.array(scores), np.ones(len(scores)), np.ones(len(scores))) == NOTHING


def test_the_widest_interval_and_the_narrowest() -> None:
    largest, tiny = 1.7976931348623157e308, 1e-323
    for low, high in ((-largest, largest), (-tiny, tiny), (0, 5e-324), (1e15, 1e15 + 0.125)):
        auc = PolynomialAuc(interval=(low, high))
        auc.add([0, 1], [low, high])
        assert auc.estimate().auc == pytest.approx(1, abs=0.01)
        auc.remove([0, 1], [low, high])
        auc.add([0, 1], [high, low])
        assert auc.estimate().auc == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize(
    ("labels", "scores", "weights", "words"),
    [
        ([0, 1], [0.5, float("nan")], None, r"scores\[1\] is nan: a score is a finite number; leave the ev"),
        (1, float("inf"), None, r"scores\[0\] is inf"),
        ([0, 1, 1], [0, 1, 1.5], None,
         r"scores\[2\] is 1.5, outside the interval \(-1.0, 1.0\): make it for the least"),
        (1, -1.0000000000000002, None, r"scores\[0\] is -1.0000000000000002, outside the interval"),
        (2, 0.5, None, r"labels\[0\] is .*2.*: a label is 1, 0, -1, True or False; map other labels to 1 an"),
        (["up"], [0.5], None, r"labels\[0\] is .*up"),
        (None, 0.5, None, r"labels\[0\] is None"),
        ([0, 1], [0.5], None, r"labels of shape \(2,\) and scores of shape \(1,\): give one of each per eve"),
        ([[0, 1]], [[0.5, 1]], None, r"shape \(1, 2\)"),
        (0, "high", None, "scores are not numbers"),
        (0, 1j, None, "scores are complex"),
        ([0, 1], [0, 1], [1], r"weights of shape \(1,\) for scores of shape \(2,\): give one per event"),
        ([0, 1], [0, 1], [1, 0], r"weights\[1\] is 0.0: a weight is a finite number above 0"),
        ([0, 1], [0, 1], [1, 1e20], r"weights\[1\] is 1e\+20: give weights from 2\^-64 to 2\^64"),
        (1, 0, 1e-20, r"weights\[0\] is 1e-20: give weights from"),
        (1, 0, "x", "weights are not numbers"),
        ([[0], [0, 1]], [0, 1], None, "labels are lists of unlike lengths: give all as many"),
        ([0, 1], [[0], [0, 1]], None, "scores are lists of unlike lengths"),
        ([0, 1], [0, 1], [[1], [1, 1]], "weights are lists of unlike lengths"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("doing", ["add", "remove"])
def test_what_is_no_event_is_refused_and_changes_nothing(
    doing: str, labels: object, scores: object, weights: object, words: str
) -> None:
    auc = of([0, 1], np.array([0.1, 0.2]), interval=(-1, 1))
    before = auc.to_bytes()
    with pytest.raises(rs.InputError, match=words):
        getattr(auc, doing)(labels, scores, weights)
    assert auc.to_bytes() == before


def test_the_place_of_a_bad_event_is_that_among_all() -> None:
    labels, scores = np.arange(200_000) % 2, np.zeros(200_000)
    scores[150_001] = 2
    auc = PolynomialAuc()
    with pytest.raises(rs.InputError, match=r"scores\[150001\] is 2.0"):
        auc.add(labels, scores)
    assert auc.events == 0


def test_events_that_were_not_there_are_told_where_sums_can_tell() -> None:
    auc = of([0, 1, 1], np.array([0.1, 0.2, 0.9]), interval=(-1, 1))
    before = auc.to_bytes()
    for labels, scores, weights, words in (
        ([0, 0], [0.1, 0.1], None, "remove: there would be -1 negatives"),
        (0, 0.2, None, "0 negatives would have sums that no events have"),
        ([1, 1], [0.2, -0.9], None, "0 positives would have sums that no events have"),
        (
            1,
            0.2,
            3.0,
            "1 positives would weigh less than nothing; remove events as they were added, each once",
        ),
        ([1, 1], [0.2, 0.9], [1.0, 0.5], "0 positives would weigh more than nothing"),
    ):
        with pytest.raises(rs.InputError, match=words):
            auc.remove(labels, scores, weights)
        assert auc.to_bytes() == before


def test_nothing_and_one_class_have_no_estimate() -> None:
    auc = PolynomialAuc()
    auc.add([], [])
    assert (auc.events, auc.estimate()) == (0, NOTHING)
    assert PolynomialAuc.from_bytes(auc.to_bytes()).events == 0
    auc.add([1, 1], [0.5, 0.25])
    assert auc.estimate() == NOTHING
    assert repr(auc) == (
        "PolynomialAuc(0 negatives, 2 positives, degree=30, interval=(-1.0, 1.0), fit='least_squares')"
    )


def test_settings_that_cannot_be_are_refused() -> None:
    for degree in (1, 129, 2.5, True, "30", None):
        with pytest.raises(rs.ConfigError, match=f"degree={degree!r}: give a whole number from 2 to 128"):
            PolynomialAuc(degree)
    for interval in (
        (1, 1), (1, 0), (0, math.inf), (math.nan, 1), (0, 1, 2), 1.0, "ab", (0, "1"), (False, True), None,
        (0, 10**400),
    ):  # fmt: skip
        with pytest.raises(
            rs.ConfigError, match=r"interval=.*: give the least and the greatest score there c"
        ):
            PolynomialAuc(interval=interval)
    for fit in ("lower", "best", None):
        with pytest.raises(rs.ConfigError, match=f"fit={fit!r}: give least_squares or chebyshev"):
            PolynomialAuc(fit=fit)
    auc = PolynomialAuc()
    for other in (PolynomialAuc(29), PolynomialAuc(interval=(0, 1)), PolynomialAuc(fit="chebyshev")):
        with pytest.raises(
            rs.InputError, match=r"merge: degree=.* into degree=30.*: make both of one degree"
        ):
            auc.merge(other)
    with pytest.raises(rs.InputError, match="a bytes is no PolynomialAuc; read bytes with from_bytes"):
        auc.merge(auc.to_bytes())


def test_merging_with_itself_doubles_every_sum() -> None:
    labels, scores = finite_streams(300)["random"]
    auc = of(labels, scores)
    before = auc.estimate()
    for times in range(1, 200):
        auc.merge(auc)
        assert auc.events == len(labels) << times
    assert auc.estimate() == before
    assert PolynomialAuc.from_bytes(auc.to_bytes()).to_bytes() == auc.to_bytes()


def stored() -> PolynomialAuc:
    auc = PolynomialAuc(5, (-2, 0.5), "chebyshev")
    auc.add([0, 1, 1, 0, 1], [0.5, 0.25, -0.25, -2, 0], [1, 0.1, 3, 7, 2**40])
    return auc


def test_every_truncation_and_every_changed_byte_is_told() -> None:
    data = stored().to_bytes()
    for cut in truncations(data):
        with pytest.raises(rs.TruncatedBytesError if cut else rs.ForeignBytesError):
            PolynomialAuc.from_bytes(cut)
    for damaged in flips(data):
        with pytest.raises(rs.WireError):
            PolynomialAuc.from_bytes(damaged)


def test_contents_with_a_right_checksum_crash_nothing() -> None:
    rng = random.Random(1)
    data = stored().to_bytes()
    read = 0
    for _ in range(3000):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(HEAD, len(data))] = rng.choice((0, 1, 2, 127, 128, 255, rng.randrange(256)))
        try:
            auc = PolynomialAuc.from_bytes(with_right_checksum(bytes(damaged), HEAD, CRC))
        except rs.CorruptBytesError:
            continue
        read += 1
        auc.estimate()
        assert PolynomialAuc.from_bytes(auc.to_bytes()).to_bytes() == auc.to_bytes()
    assert read > 100


def test_each_kind_of_foreign_bytes_has_its_own_error() -> None:
    data = stored().to_bytes()
    with pytest.raises(rs.ForeignBytesError, match=r"start with b'RSST' are not a PolynomialAuc"):
        PolynomialAuc.from_bytes(rs.ModelEvaluator().to_bytes())
    with pytest.raises(rs.WireError, match="str is not a PolynomialAuc; give the bytes that rocsteady wrote"):
        PolynomialAuc.from_bytes("text")  # type: ignore[arg-type]
    with pytest.raises(rs.FutureVersionError, match="version 2: this rocsteady reads up to 1; upgrade it"):
        PolynomialAuc.from_bytes(data[:4] + b"\2\0" + data[6:])
    with pytest.raises(rs.CorruptBytesError, match="checksum"):
        PolynomialAuc.from_bytes(data + b"abc")


def packed(*numbers: int, degree: int = 2, fit: int = 0, shift: int = 0, tail: bytes = b"") -> bytes:
    body = b""
    for number in numbers:
        size = (number.bit_length() + 8) // 8 if number else 0
        body += bytes([size]) + number.to_bytes(size, "little", signed=True)
    payload = struct.pack("<HBddH", degree, fit, -1.0, 1.0, shift) + body + tail
    data = struct.pack("<4sHHQI", b"RSPA", 1, 0, len(payload), 0) + payload
    return with_right_checksum(data, HEAD, CRC)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (packed(1, 1, 1, 1, 1, 1, 1, 1, degree=1), "degree=1"),
        (packed(1, 1, 1, 1, 1, 1, 1, 1, fit=2), "its fit has the number 2"),
        (packed(1, 1, 1, 1, 1, 1, 1), "5 sums of degree 2"),
        (packed(), "not enough values"),
        (packed(1, 1, 1, 1, 1, 1, 1, 1, tail=b"\3\0"), "a number ends too early"),
        (packed(-1, 1, -1, 1, 1, 1, 1, 1), "there would be -1 negatives"),
        (packed(0, 1, 1, 1, 1, 1, 1, 1), "0 negatives would weigh more than nothing"),
        (packed(1, 1, 1, 1, 1, 1, 2, 1), "1 positives would have sums that no events have"),
        (packed(1, 1, 2, 0, 0, 2, 0, 0), "not as they are written"),
        (packed(0, 0, 0, 0, 0, 0, 0, 0, shift=1), "not as they are written"),
    ],
)
def test_numbers_that_no_events_have_are_told(data: bytes, words: str) -> None:
    with pytest.raises(rs.CorruptBytesError, match=words):
        PolynomialAuc.from_bytes(data)


def test_every_kernel_is_compiled_once() -> None:
    if not hasattr(polynomial_estimate.add_chebyshev, "signatures"):
        pytest.skip("numba is switched off by NUMBA_DISABLE_JIT")
    labels, scores = finite_streams(300)["random"]
    frozen = scores.copy()
    frozen.flags.writeable = False
    weights = np.arange(1, len(labels) + 1)
    for classes in (labels, labels == 1, labels.tolist(), labels[::-1]):
        for values in (scores, frozen, scores[::-1], scores.astype(np.float32), scores.tolist()):
            for given_weights in (None, weights, weights[::-1].astype(float)):
                of(classes, np.asarray(values), given_weights).estimate()
    one = np.ones(3)
    polynomial_auc_of(np.arange(3.0), one, one)
    for kernel in (polynomial_estimate.add_chebyshev, polynomial_estimate.mean_over_pairs):
        assert len(kernel.signatures) == 1, (kernel.__name__, kernel.signatures)  # type: ignore[attr-defined]
