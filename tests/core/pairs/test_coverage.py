"""The interval of two models' difference that holds at any time, attacked by simulation.

Every stream is looked at after every instance, from 30 of each class on: a miss is one look at which the true
difference lies outside. Whole: 1,000 streams of 10,000 instances for each law, 1 - alpha less two Monte Carlo
errors at the least. That the evaluator's interval is the one simulated here, `test_pairs` says.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.pairs.anytime import LEAST
from rocsteady.core.pairs.pair_settings import PairSettings
from scipy.stats import norm

from tests.support.thorough import at_length

ALPHA = 0.05
RHO_SQUARED = PairSettings().rho_squared


@numba.njit(cache=False)
def enters(a, b, sign, scores_a, scores_b, placed):
    """Add an instance to the placements of the other class; return twice its own, and what the squares gain.

    Ranks, and differences counted double, are numbers of 32 bits, of which a processor takes eight at once.
    """
    mine = gained = np.int32(0)
    for j in range(len(placed)):
        d_a = np.int32(a > scores_a[j]) - np.int32(a < scores_a[j])
        d_b = np.int32(b > scores_b[j]) - np.int32(b < scores_b[j])
        d = np.int32(sign * (d_a - d_b))
        mine += d
        gained += np.int32(d * np.int32(2 * placed[j] + d))
        placed[j] += d
    return mine, gained


@numba.njit(cache=False)
def first_miss(labels, a, b, truth, rho_squared, alpha, added):
    """The first number of instances at which the interval does not hold the truth; 0: it always does.

    a and b are ranks of at most 10,000 scores. Differences of placements are kept for every instance; a new
    one changes those of the other class. O(n^2).
    """
    n = len(labels)
    scores_a, scores_b, placed = (
        np.empty((2, n), np.int32),
        np.empty((2, n), np.int32),
        np.zeros((2, n), np.int32),
    )
    count, squares, total = np.zeros(2, np.int64), np.zeros(2, np.int64), 0
    for t in range(n):
        own = labels[t]
        other = 1 - own
        held = count[other]
        mine, gained = enters(
            a[t],
            b[t],
            np.int32(2 * own - 1),
            scores_a[other, :held],
            scores_b[other, :held],
            placed[other, :held],
        )
        squares[other] += gained
        scores_a[own, count[own]], scores_b[own, count[own]], placed[own, count[own]] = a[t], b[t], mine
        squares[own] += np.int64(mine) * np.int64(mine)
        total += mine
        count[own] += 1
        p, m = float(count[1]), float(count[0])
        if min(p, m) < LEAST:
            continue
        difference = 0.5 * total / (p * m)
        variance = added / p**2 + added / m**2
        variance += (0.25 * squares[1] / m**2 - p * difference**2) / (p - 1) / p
        variance += (0.25 * squares[0] / p**2 - m * difference**2) / (m - 1) / m
        x = (t + 1) * rho_squared
        width = math.sqrt(2 * (x + 1) / x * math.log(math.sqrt(x + 1) / alpha))
        if abs(difference - truth) > math.sqrt(max(variance, 0.0)) * width:
            return t + 1
    return 0


def normal(auc, correlation=0.5, *, positives=1.0, heavy=False, rounded=False, alike=0.0):
    """Two models of one AUC; `positives` is the spread of theirs, `alike` the share of equal scores."""

    def draw(rng, labels):
        n = len(labels)
        shared, own = rng.standard_normal((2, n))
        scores = np.stack([shared, correlation * shared + math.sqrt(1 - correlation**2) * own])
        scores *= np.where(labels == 1, positives, 1.0)
        if heavy:  # Student's t with two degrees of freedom
            scores /= np.sqrt(rng.chisquare(2, n) / 2)
        scores += labels * norm.ppf(auc) * math.sqrt(1 + positives**2)
        if rounded:
            scores = np.round(scores)
        scores[1] = np.where(rng.random(n) < alike, scores[0], scores[1])
        return scores

    return draw, 0.0


def against_nothing(auc):
    """A model of an AUC against one that gives every instance the same score."""

    def draw(rng, labels):
        return np.stack(
            [labels * norm.ppf(auc) * math.sqrt(2) + rng.normal(size=len(labels)), np.zeros(len(labels))]
        )

    return draw, auc - 0.5


def seldom_wrong(auc, label):
    """A model that ranks all right but a share of one class, which it ranks at the other end."""

    def draw(rng, labels):
        wrong = (labels == label) & (rng.random(len(labels)) < 1 - auc)
        return np.stack([np.where(wrong, 3.0 * (1 - 2 * label), labels), np.zeros(len(labels))])

    return draw, auc - 0.5


LAWS = {
    "alike at .7": (0.5, *normal(0.7)),
    "close to each other": (0.3, *normal(0.8, 0.97)),
    "good": (0.3, *normal(0.97)),
    "nearly perfect": (0.3, *normal(0.995)),
    "unlike spread": (0.3, *normal(0.8, positives=3.0)),
    "heavy tails": (0.3, *normal(0.8, heavy=True)),
    "ties": (0.3, *normal(0.8, rounded=True)),
    "equal but for 2%": (0.3, *normal(0.8, 0.0, alike=0.98)),
    "2% positives": (0.02, *normal(0.85)),
    "99% positives": (0.99, *normal(0.8)),
    "constant champion": (0.3, *against_nothing(0.9)),
    "constant champion, .99": (0.3, *against_nothing(0.99)),
    "constant champion, .999": (0.3, *against_nothing(0.999)),
    "constant champion, 2% positives": (0.02, *against_nothing(0.99)),
    "1% of positives wrong": (0.3, *seldom_wrong(0.99, 1)),
    "0.2% of positives wrong": (0.3, *seldom_wrong(0.998, 1)),
    "1% of negatives wrong": (0.3, *seldom_wrong(0.99, 0)),
}


def misses(law, runs, instances, added=2.0, seed=0):
    prevalence, draw, truth = LAWS[law]
    found = []
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        labels = (rng.random(instances) < prevalence).astype(np.int64)
        ranks = [np.unique(scores, return_inverse=True)[1].astype(np.int32) for scores in draw(rng, labels)]
        found.append(first_miss(labels, *ranks, truth, RHO_SQUARED, ALPHA, added))
    return np.array(found)


def most(runs):
    """The most misses: alpha and two Monte Carlo errors."""
    return runs * ALPHA + 2 * math.sqrt(runs * ALPHA * (1 - ALPHA))


@pytest.mark.at_length
@pytest.mark.parametrize("law", sorted(LAWS))
def test_the_interval_holds_at_all_times_at_once(law):
    runs, instances = at_length((1_000, 10_000), (40, 2_000))
    missed = np.count_nonzero(misses(law, runs, instances))
    assert missed <= most(runs), f"{missed} of {runs}"


def missed_by_seldom_wrong(share, confidence, anytime_at, runs):
    """The share of streams of few positives whose interval misses the truth at some positive.

    The champion is constant, and the challenger is right but for a share of positives, below all of many
    negatives. So the difference and its variance follow from the number of such positives.
    """
    settings = PairSettings(confidence=confidence, anytime_at=anytime_at)
    rng, wrong, missed = np.random.default_rng(8), np.zeros(runs), np.zeros(runs, np.bool_)
    for positives in range(1, round(14 / share) + 60):
        wrong += rng.random(runs) < share
        if positives < LEAST:
            continue
        found = wrong / positives
        variance = found * (1 - found) / (positives - 1) + settings.bad_instances / positives**2
        x = 20 * positives * settings.rho_squared  # 5% are positive
        width = math.sqrt(2 * (x + 1) / x * math.log(math.sqrt(x + 1) / settings.alpha))
        missed |= np.abs(found - share) > np.sqrt(variance) * width
    return np.count_nonzero(missed) / runs


@pytest.mark.at_length
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99, 0.999])
@pytest.mark.parametrize("anytime_at", [1_000, 10_000])
def test_the_interval_holds_for_rare_mistakes_at_every_confidence(confidence, anytime_at):
    runs, shares = at_length((100_000, (0.006, 0.01, 0.015, 0.03, 0.06, 0.1)), (40_000, (0.015, 0.06)))
    for share in shares:
        assert missed_by_seldom_wrong(share, confidence, anytime_at, runs) < 1 - confidence


@pytest.mark.at_length
def test_delongs_variance_alone_would_not_do():
    runs, instances = at_length((300, 10_000), (40, 2_000))
    missed = np.count_nonzero(misses("constant champion, .999", runs, instances, added=0.0))
    assert missed > 3 * most(runs)


@pytest.mark.at_length
@pytest.mark.parametrize("correlation", [0.5, 0.9])
def test_the_interval_over_blocks_holds_as_well_and_is_hardly_wider(correlation):
    runs, instances = at_length((400, 20_000), (25, 6_000))
    missed, widths = 0, []
    for run in range(runs):
        rng = np.random.default_rng([1, run])
        labels = (rng.random(instances) < 0.2).astype(np.int64)
        scores = normal(0.85, correlation)[0](rng, labels)
        ends = {}
        for exact in (1_000, instances):
            pair = rs.PairEvaluator(every=rs.EveryEvents(250), window=rs.LastEvents(100), exact=exact)
            ends[exact] = pair.update(labels, *scores)[-1]
        few = ends[1_000]
        assert few.anytime_blocks == instances // 1_000
        missed += few.verdict != "undecided"
        widths.append(
            (few.anytime_high - few.anytime_low)
            / (ends[instances].anytime_high - ends[instances].anytime_low)
        )
    assert missed <= most(runs), f"{missed} of {runs}"
    assert 0.98 < np.median(widths) < 1.02


@pytest.mark.at_length
@pytest.mark.parametrize("law", ["alike at .7", "close to each other", "heavy tails", "ties", "2% positives"])
def test_beyond_the_first_block_the_interval_of_the_default_holds_too(law):
    """50,000 instances are five blocks; a row every 250 is a look, from the first 250 on."""
    runs, instances = at_length((300, 50_000), (4, 11_000))
    prevalence, draw, truth = LAWS[law]
    missed = 0
    for run in range(runs):
        rng = np.random.default_rng([3, run])
        labels = (rng.random(instances) < prevalence).astype(np.int64)
        pair = rs.PairEvaluator(every=rs.EveryEvents(250), window=rs.LastEvents(100))
        last = pair.update(labels, *draw(rng, labels))[-1]
        assert last.anytime_blocks >= instances // 10_000
        missed += last.verdict == "contradicted" or not last.anytime_low <= truth <= last.anytime_high
    assert missed <= most(runs), f"{missed} of {runs}"


def correlated(rng, labels, *aucs):
    """Normal scores of two models of these AUCs, correlated by 0.49 within a class."""
    shared, *own = rng.standard_normal((3, len(labels)))
    return [
        0.7 * shared + math.sqrt(0.51) * noise + labels * norm.ppf(auc) * math.sqrt(2)
        for noise, auc in zip(own, aucs, strict=True)
    ]


@pytest.mark.at_length
def test_blocks_cost_hardly_any_power():
    """AUC .84 against .83, correlated: how many of the streams are decided, and by when."""
    runs = at_length(100, 2)
    found = {10_000: [], 50_000: []}
    for run in range(runs):
        rng = np.random.default_rng([4, run])
        labels = (rng.random(50_000) < 0.3).astype(np.int64)
        champion, challenger = correlated(rng, labels, 0.83, 0.84)
        for exact, ends in found.items():
            pair = rs.PairEvaluator(every=rs.EveryEvents(1_000), window=rs.LastEvents(100), exact=exact)
            rows = pair.update(labels, challenger, champion)
            assert {row.verdict for row in rows} <= {"undecided", "better"}
            ends.append(next((row.seq for row in rows if row.verdict == "better"), 99_999))
    in_blocks, whole = (np.array(ends) for ends in found.values())
    assert np.count_nonzero(in_blocks < 99_999) >= 0.9 * runs
    assert abs(np.median(in_blocks) - np.median(whole)) <= 0.05 * np.median(whole)


@pytest.mark.at_length
def test_a_challenger_that_is_better_is_found_in_time():
    """AUC .85 against .83, correlated: a fixed-n test of 80% power needs some 3,100 instances."""
    runs = at_length(100, 10)
    found = []
    for run in range(runs):
        rng = np.random.default_rng([2, run])
        labels = (rng.random(20_000) < 0.3).astype(np.int64)
        champion, challenger = correlated(rng, labels, 0.83, 0.85)
        rows = rs.PairEvaluator(every=rs.EveryEvents(500)).update(labels, challenger, champion)
        assert {row.verdict for row in rows} <= {"undecided", "better"}
        found.append(next((row.seq for row in rows if row.verdict == "better"), 99_999))
    assert np.median(found) <= 10_000
