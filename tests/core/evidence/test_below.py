"""EvidenceBelow: against a slow twin, for any cut, and in simulations that could refute its promises."""

from __future__ import annotations

import itertools
import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady import ConfigError, EvidenceBelow, InputError, WireError
from rocsteady.core.encoding.fields import framed, unframed
from rocsteady.core.evidence.below import MAGIC, MOST_KEPT, SHARES, VERSION
from scipy.stats import norm

from tests.support.oracles import evidence as oracle
from tests.support.thorough import at_length, examples

events_of = st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, -0.0, 0.25, 0.5, 1.0])), max_size=60)
bounds = st.sampled_from([0.5, 0.8, 0.99, 0.01])


def separation(auc):
    """The shift of normal scores of positives with this AUC."""
    return math.sqrt(2) * norm.ppf(auc)


def split(events):
    return [label for label, _ in events], [score for _, score in events]


@given(events_of, bounds, st.integers(1, 4))
@settings(max_examples=examples(80), deadline=None)
def test_the_evidence_is_that_of_the_twin_after_every_event(events, bound, least):
    labels, scores = split(events)
    detector = EvidenceBelow(bound, blocks=least)
    found, begun = [], []
    for label, score in events:
        found += detector.update([label], [score]).tolist()
        begun.append(detector.since)
    expected = oracle.evidence(labels, scores, bound, least)
    for value, since, wanted in zip(found, begun, expected, strict=True):
        if wanted is None:
            assert math.isnan(value)
            assert since is None
        else:
            assert value == pytest.approx(wanted[0], abs=1e-9)
            assert since == pytest.approx(wanted[1], abs=0.5 + 1e-6)


@given(events_of, bounds, st.integers(1, 3), st.lists(st.integers(0, 60), max_size=4))
@settings(max_examples=examples(80), deadline=None)
def test_no_cut_and_no_restart_from_bytes_changes_a_bit(events, bound, least, cuts):
    labels, scores = split(events)
    whole = EvidenceBelow(bound, blocks=least)
    expected = whole.update(labels, scores)
    detector, parts = EvidenceBelow(bound, blocks=least), []
    for start, end in itertools.pairwise([0, *sorted(min(cut, len(events)) for cut in cuts), len(events)]):
        parts.append(detector.update(labels[start:end], scores[start:end]))
        data = detector.to_bytes()
        assert len(data) == detector.snapshot_bytes()
        detector = EvidenceBelow.from_bytes(data)
        assert detector.to_bytes() == data
    np.testing.assert_array_equal(np.concatenate(parts), expected)
    assert detector.to_bytes() == whole.to_bytes()
    assert (detector.evidence, detector.since) == (whole.evidence, whole.since)


@pytest.mark.parametrize("rare", [True, False])
def test_a_block_keeps_the_newest_scores_of_the_common_class(rare):
    rng = np.random.default_rng(1)
    n = 5 * MOST_KEPT
    labels, scores = np.full(n, not rare), rng.integers(0, 50, n) / 50.0
    labels[[10, MOST_KEPT + 500, 3 * MOST_KEPT, 3 * MOST_KEPT + 1]] = rare
    detector = EvidenceBelow(0.7, blocks=2)
    pieces = zip(np.array_split(labels, 7), np.array_split(scores, 7), strict=True)
    values = np.concatenate([detector.update(*piece) for piece in pieces])
    assert detector.full_blocks == 2
    ends = [end for end, _, _ in oracle.blocks_of(labels, scores.tolist(), 2)]
    expected = [oracle.evidence(labels[:end], scores[:end].tolist(), 0.7, 2)[-1][0] for end in ends]
    assert values[[end - 1 for end in ends]] == pytest.approx(expected, abs=1e-9)
    assert len(detector.to_bytes()) <= 250 + 8 * MOST_KEPT


def outcomes(labels, least, of_class):
    """The mean of the AUC of the first block, and of its factors L: over all scores that have a chance."""
    totals = [Fraction(0)] * (1 + len(SHARES))
    for scores in itertools.product(range(3), repeat=len(labels)):
        chance = Fraction(
            math.prod(of_class[label][score] for label, score in zip(labels, scores, strict=True))
        )
        [(_, positives, negatives)] = oracle.blocks_of(labels, scores, least)
        x = oracle.auc(positives, negatives)
        detector = EvidenceBelow(0.75, blocks=least)
        detector.update(labels, [float(score) for score in scores])
        factors = np.exp(detector._grid[0])  # M after one block is L
        for place, value in enumerate([x, *map(Fraction, factors.tolist())]):
            totals[place] += chance * value
    return totals


@pytest.mark.parametrize("labels", [[1, 0], [0, 0, 0, 1], [1, 1, 0, 1, 0], [0, 1, 0, 0, 1], [1, 0, 1, 0]])
def test_given_the_labels_the_auc_of_a_block_is_unbiased(labels):
    """Over all scores that can occur, with ties: exactly the AUC, and a factor of 1 at the bound."""
    half, quarter = Fraction(1, 2), Fraction(1, 4)
    positives, negatives = [quarter, quarter, half], [half, half, Fraction(0)]
    auc = sum(
        p * n * (1 if i > j else half if i == j else 0)
        for i, p in enumerate(positives)
        for j, n in enumerate(negatives)
    )
    assert auc == Fraction(3, 4)
    least = min(sum(labels), len(labels) - sum(labels))
    mean, *factors = outcomes(labels, least, {1: positives, 0: negatives})
    assert mean == auc
    assert [float(each) for each in factors] == pytest.approx([1.0] * len(SHARES), abs=1e-12)


def test_nothing_overflows_and_nothing_is_forgotten():
    detector = EvidenceBelow(0.999, blocks=1)
    values = detector.update([1, 0] * 20_000, [0.0, 1.0] * 20_000)
    assert values[-1] == pytest.approx(20_000 * math.log(1 + 0.95 * 1_000 * 0.999), rel=1e-4)
    assert np.isfinite(detector.update([0, 1] * 20_000, [0.0, 1.0] * 20_000)).all()


def test_restart_forgets_the_block_that_fills_too():
    detector = EvidenceBelow(0.8, blocks=2)
    detector.update([1, 0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.5])
    detector.restart()
    assert detector.to_bytes() == EvidenceBelow(0.8, blocks=2).to_bytes()
    assert (detector.evidence, detector.since, detector.full_blocks, detector.block_events) == (
        None,
        None,
        0,
        None,
    )


def test_the_beginning_is_near_the_change():
    rng = np.random.default_rng(3)
    labels = (rng.random(30_000) < 0.3).astype(int)
    shift = np.where(np.arange(30_000) < 20_000, separation(0.9), separation(0.7))
    detector = EvidenceBelow(0.85)
    values = detector.update(labels[:21_500], rng.normal(shift * labels)[:21_500])
    assert values[19_999] < 7 < 30 < values[-1]
    assert abs(detector.since - 20_000) < 300


@pytest.mark.parametrize("bound", [0, 1, 0.0, 1.0, -0.1, 1.5, math.nan, math.inf, "1", "high", None, True])
def test_a_bound_out_of_range_is_refused(bound):
    with pytest.raises(ConfigError, match="between 0 and 1, both excluded"):
        EvidenceBelow(bound)


@pytest.mark.parametrize("blocks", [0, -1, 101, 2.0, "4", None, True])
def test_a_number_of_positives_and_negatives_out_of_range_is_refused(blocks):
    with pytest.raises(ConfigError, match="from 1 to 100"):
        EvidenceBelow(0.8, blocks=blocks)


def test_events_that_cannot_be_used_change_nothing():
    detector = EvidenceBelow(0.8, blocks=1)
    before = detector.to_bytes()
    for labels, scores in ([[1], [math.nan]], [[2], [0.5]], [[1, 0], [0.5]]):
        with pytest.raises(InputError):
            detector.update(labels, scores)
    assert detector.to_bytes() == before
    assert detector.update([], []).tolist() == []


def test_damaged_bytes_are_refused():
    detector = EvidenceBelow(0.8, blocks=2)
    detector.update([1, 0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.2])
    data = detector.to_bytes()
    for place in range(len(data)):
        with pytest.raises(WireError):
            EvidenceBelow.from_bytes(data[:place])
        with pytest.raises(WireError):
            EvidenceBelow.from_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])


@pytest.mark.parametrize(
    ("place", "value"),
    [(0, struct.pack("<d", 1.0)), (8, struct.pack("<I", 0)), (12, struct.pack("<q", -1)),
     (12, struct.pack("<q", 9)), (20, struct.pack("<q", -1)), (36, struct.pack("<q", 9)),
     (44, struct.pack("<q", 3)), (60, struct.pack("<q", 3)), (68, struct.pack("<d", math.inf)),
     (180, struct.pack("<d", math.nan)), (196, struct.pack("<d", math.nan))],
)  # fmt: skip
def test_a_state_that_contradicts_itself_is_refused(place, value):
    detector = EvidenceBelow(0.8, blocks=2)
    detector.update([1, 0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.2])
    payload = bytes(unframed(detector.to_bytes(), MAGIC, VERSION, "a test"))
    with pytest.raises(WireError):
        EvidenceBelow.from_bytes(
            framed(MAGIC, VERSION, payload[:place] + value + payload[place + len(value) :])
        )


# ---- simulations


def streams(scores, auc):
    """A function that makes scores of n events, for their labels, with this AUC exactly."""
    if scores == "normal":
        shift = separation(auc)
        return lambda rng, n, labels: rng.normal(size=n) + shift * labels
    if scores == "tied":  # positives in cell 1 with chance auc, else in cell 0 or 1, so ties are common
        return lambda rng, n, labels: (rng.random(n) < np.where(labels, auc, 1 - auc)).astype(float)
    if scores == "heavy":  # Cauchy: the difference of two is Cauchy of scale 2
        heavy = 2 * math.tan(math.pi * (auc - 0.5))
        return lambda rng, n, labels: rng.standard_cauchy(n) + heavy * labels
    assert scores == "uniform"
    odds = auc / (1 - auc)  # the maximum of `odds` uniform numbers beats one with chance odds / (odds + 1)
    return lambda rng, n, labels: rng.random(n) ** np.where(labels, 1 / odds, 1.0)


def blocks_to_alarm(make, bound, prevalence, level, seed, most):
    """The blocks until a detector's sum reaches a level, at most `most` of them."""
    rng, detector = np.random.default_rng(seed), EvidenceBelow(bound)
    chunk = round(4 / min(prevalence, 1 - prevalence)) * 256
    while detector.full_blocks < most:
        before = detector.full_blocks
        labels = (rng.random(chunk) < prevalence).astype(np.int8)
        followed = detector.follow(labels, make(rng, chunk, labels))
        above = np.flatnonzero(followed.evidence >= math.log(level))
        if len(above):
            return min(before + int(above[0]) + 1, most)
    return most


@pytest.mark.at_length
@pytest.mark.parametrize("prevalence", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("scores", ["normal", "uniform", "tied", "heavy"])
def test_the_mean_time_to_a_false_alarm_is_as_promised(scores, prevalence):
    """At the edge, AUC = bound. Runs end after 20/alpha blocks: the mean of the whole time is larger."""
    level = at_length(1_000, 100)
    runs = 400 if prevalence == 0.01 else at_length(1_000, 400)  # blocks of rare positives are long
    make = streams(scores, 0.8)
    times = [blocks_to_alarm(make, 0.8, prevalence, level, seed, 20 * level) for seed in range(runs)]
    lowest = np.mean(times) - 1.645 * np.std(times, ddof=1) / math.sqrt(runs)
    assert lowest >= level


@pytest.mark.parametrize("scores", ["normal", "uniform", "tied", "heavy"])
def test_the_streams_of_the_simulations_have_their_auc(scores):
    rng = np.random.default_rng(5)
    labels = (np.arange(200_000) % 2).astype(np.int8)
    values = streams(scores, 0.8)(rng, len(labels), labels)
    positives, negatives = values[labels == 1], np.sort(values[labels == 0])
    below = np.searchsorted(negatives, positives, "left") + np.searchsorted(negatives, positives, "right")
    assert below.mean() / 2 / len(negatives) == pytest.approx(0.8, abs=0.005)


def test_repeated_events_break_the_promise():
    """Each event comes ten times: blocks are alike, as events of one storm are. So there is no promise."""
    make = streams("normal", 0.8)
    times = []
    for seed in range(20):
        rng, detector = np.random.default_rng(seed), EvidenceBelow(0.8)
        while detector.full_blocks < 1_000 and (detector.evidence or 0) < math.log(1_000):
            labels = (np.arange(8) % 2).astype(np.int8)
            detector.follow(np.tile(labels, 10), np.tile(make(rng, 8, labels), 10))
        times.append(detector.full_blocks)
    assert np.mean(times) < 500
