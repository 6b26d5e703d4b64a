"""Tests of significance: the paper's numbers, scipy's, enumeration, and error rates of the machinery."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.compare.mcnemar import McnemarEvidence, mcnemar
from rocsteady.core.compare.significance import (
    delong_test,
    friedman_nemenyi,
    holm,
    nemenyi_difference,
    sign_test,
    wilcoxon,
)
from rocsteady.core.errors import ConfigError, InputError
from scipy import stats

from tests.support.thorough import examples

# Bifet et al. 2015, Table 1. It prints rank sums of 53 and 3; ten ranks sum to 55.
CLASSIFIER_A = [77.98, 72.26, 76.95, 77.94, 72.23, 76.90, 77.93, 72.37, 76.93, 77.97]
CLASSIFIER_B = [77.91, 72.27, 76.97, 76.57, 71.63, 75.48, 75.75, 71.33, 74.54, 77.94]


def test_table_1_of_bifet():
    ranks = wilcoxon(CLASSIFIER_A, CLASSIFIER_B)
    assert (ranks.rank_sum_a, ranks.rank_sum_b, ranks.exact) == (52, 3, True)
    assert ranks.p_value == pytest.approx(0.009765625)
    signs = sign_test(CLASSIFIER_A, CLASSIFIER_B)
    assert (signs.wins_a, signs.wins_b, signs.ties) == (8, 2, 0)
    assert signs.p_value == pytest.approx(0.109375)  # not rejected at .05, though the paper says so


def test_mcnemar_is_chi_squared_without_correction():
    test = mcnemar(25, 10)
    assert test.statistic == pytest.approx(15**2 / 35)
    assert test.p_value == pytest.approx(stats.chi2.sf(15**2 / 35, 1))
    assert mcnemar(10, 25).statistic == -test.statistic
    assert mcnemar(0, 0).p_value == mcnemar(7, 7).p_value == 1


@pytest.mark.parametrize("test", [sign_test, wilcoxon])
def test_ties_in_every_fold_give_one(test):
    found = test([0.5] * 10, [0.5] * 10)
    assert (found.p_value, found.ties) == (1, 10)


@settings(max_examples=examples(100))
@given(st.lists(st.integers(-6, 6), min_size=1, max_size=11))
def test_exact_p_values_agree_with_enumeration(differences):
    zeros = [0] * len(differences)
    found = wilcoxon(differences, zeros)
    kept = np.array([each for each in differences if each])
    if len(kept):
        ranks = stats.rankdata(np.abs(kept))
        sums = [
            sum(rank for rank, is_plus in zip(ranks, signs, strict=True) if is_plus)
            for signs in itertools.product((False, True), repeat=len(kept))
        ]
        smaller = min(ranks[kept > 0].sum(), ranks[kept < 0].sum())
        assert found.p_value == pytest.approx(min(1, 2 * np.mean([each <= smaller for each in sums])))
        wins = int((kept > 0).sum())
        assert sign_test(differences, zeros).p_value == pytest.approx(stats.binomtest(wins, len(kept)).pvalue)
    else:
        assert found.p_value == 1


@pytest.mark.parametrize("n", [5, 20, 99, 100, 101, 400])
def test_wilcoxon_agrees_with_scipy(n):
    random = np.random.default_rng(n)
    a, b = random.normal(0.1, 1, n), random.normal(0, 1, n)
    found = wilcoxon(a, b)
    expected = stats.wilcoxon(a, b, method="exact" if found.exact else "approx", correction=False)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue)


def test_normal_tail_agrees_with_scipy_under_ties():
    random = np.random.default_rng(1)
    a, b = random.integers(0, 5, 300), random.integers(0, 5, 300)
    expected = stats.wilcoxon(a, b, method="approx", correction=False, zero_method="wilcox")
    assert wilcoxon(a, b).p_value == pytest.approx(expected.pvalue)


@pytest.mark.parametrize("k", [3, 4, 10])
def test_friedman_agrees_with_scipy(k):
    random = np.random.default_rng(k)
    table = random.integers(0, 6, (12, k)).astype(float)
    found = friedman_nemenyi(table)
    expected = stats.friedmanchisquare(*table.T)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert sum(found.ranks) == pytest.approx(k * (k + 1) / 2)


def test_critical_differences_of_demsar():
    # Demsar 2006, table 5(a): q at .05 and .10 for k classifiers.
    for k, q_05, q_10 in ((2, 1.960, 1.645), (5, 2.728, 2.459), (10, 3.164, 2.920)):
        unit = math.sqrt(k * (k + 1) / 60)
        assert nemenyi_difference(k, 10, 0.05) / unit == pytest.approx(q_05, abs=6e-4)
        assert nemenyi_difference(k, 10, 0.10) / unit == pytest.approx(q_10, abs=6e-4)


def test_groups_span_the_critical_difference_at_most():
    table = np.array([[4.0, 3, 2, 1], [4, 3, 2, 1], [4, 2, 3, 1], [3, 4, 2, 1]] * 3)
    found = friedman_nemenyi(table)
    for group in found.groups:
        ranks = [found.ranks[place] for place in group]
        assert max(ranks) - min(ranks) <= found.critical_difference
    assert found.groups == ((0, 1), (1, 2), (2, 3))


def test_learners_that_are_all_alike_have_p_one():
    found = friedman_nemenyi([[0.5, 0.5, 0.5]] * 10)
    assert (found.statistic, found.p_value, found.ranks, found.groups) == (0, 1, (2, 2, 2), ((0, 1, 2),))


def auc_of_pairs(labels, scores):
    """Every pair, one by one."""
    scores, is_positive = np.asarray(scores), np.asarray(labels) == 1
    one, other = scores[is_positive][:, None], scores[~is_positive]
    return ((one > other) + 0.5 * (one == other)).astype(float)


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.integers(0, 5)), min_size=6, max_size=40))
def test_delong_agrees_with_its_definition(rows):
    labels, a, b = (np.array(column) for column in zip(*rows, strict=True))
    labels = labels.astype(int)
    if min(labels.sum(), len(labels) - labels.sum()) < 2:
        return
    pairs = [auc_of_pairs(labels, each) for each in (a, b)]
    difference = pairs[0].mean() - pairs[1].mean()
    of_positive = (pairs[0] - pairs[1]).mean(axis=1)
    of_negative = (pairs[0] - pairs[1]).mean(axis=0)
    variance = of_positive.var(ddof=1) / len(of_positive) + of_negative.var(ddof=1) / len(of_negative)
    found = delong_test(labels, a.astype(float), b.astype(float))
    assert found.auc_a == pytest.approx(pairs[0].mean())
    assert found.auc_b == pytest.approx(pairs[1].mean())
    assert found.standard_error == pytest.approx(math.sqrt(variance), abs=1e-7)
    if variance > 1e-9:
        p = 2 * stats.norm.sf(abs(difference) / math.sqrt(variance))
        assert found.p_value == pytest.approx(p, rel=1e-6, abs=1e-12)


def test_delong_of_the_same_scores_is_one():
    labels, scores = [0, 1] * 20, np.random.default_rng(0).random(40)
    assert delong_test(labels, scores, scores).p_value == 1
    best = np.array(labels, float)
    assert delong_test(labels, best, 1 - best).p_value == 0


def test_holm_agrees_with_its_steps():
    random = np.random.default_rng(5)
    for n in (1, 2, 7):
        p = random.random(n)
        adjusted = holm(p)
        for alpha in (0.01, 0.05, 0.3):
            rejected = set()
            for step, place in enumerate(np.argsort(p)):
                if p[place] > alpha / (n - step):
                    break
                rejected.add(int(place))
            assert {place for place in range(n) if adjusted[place] <= alpha} == rejected
    assert holm([]).tolist() == []


# ---- error rates under the null, with fixed seeds or by enumeration


def test_folds_reject_a_true_null_no_more_often_than_they_may():
    rejected = {sign_test: 0, wilcoxon: 0}
    sizes = np.arange(1, 11)
    for signs in itertools.product((-1, 1), repeat=10):
        for test in rejected:
            rejected[test] += test(sizes * signs, np.zeros(10)).p_value <= 0.05
    assert rejected[sign_test] / 1024 == pytest.approx(0.0215, abs=1e-4)
    assert rejected[wilcoxon] / 1024 == pytest.approx(0.0488, abs=1e-4)


def test_fewer_than_six_folds_reach_nothing():
    for n in range(1, 6):
        assert wilcoxon(np.arange(1, n + 1), np.zeros(n)).p_value > 0.05
        assert sign_test(np.arange(1, n + 1), np.zeros(n)).p_value > 0.05
    assert wilcoxon(np.arange(1, 7), np.zeros(6)).p_value < 0.05


STREAMS, CHECKPOINTS, DISCORDANT = 4_000, 45, 200


def test_looking_often_rejects_a_true_null_but_by_evidence():
    random = np.random.default_rng(45)
    of_a = random.binomial(DISCORDANT, 0.5, (STREAMS, CHECKPOINTS)).cumsum(axis=1)
    n = np.arange(1, CHECKPOINTS + 1) * DISCORDANT
    once = stats.chi2.sf((2 * of_a - n) ** 2 / n, 1)
    assert np.mean(once[:, -1] <= 0.05) == pytest.approx(0.05, abs=0.01)
    assert np.mean(once.min(axis=1) <= 0.05) == pytest.approx(0.31, abs=0.03)
    rejected = 0
    for counts in of_a[:1_000]:
        evidence = McnemarEvidence()
        steps = np.diff(counts, prepend=0).tolist()
        rejected += min(evidence.update(each, DISCORDANT - each) for each in steps) <= 0.05
    assert rejected / 1_000 <= 0.05


def test_evidence_grows_where_one_is_worse():
    evidence = McnemarEvidence()
    values = [evidence.update(3, 1) for _ in range(100)]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 1e-20
    assert (evidence.only_a_wrong, evidence.only_b_wrong) == (300, 100)


# ---- bad input


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mcnemar(-1, 2), "only_a_wrong=-1"),
        (lambda: mcnemar(math.nan, 2), "how many instances"),
        (lambda: McnemarEvidence().update(0.5, 2), "whole numbers"),
        (lambda: sign_test([], []), "one length"),
        (lambda: wilcoxon([1, 2], [1]), "one length"),
        (lambda: wilcoxon([1, math.nan], [1, 2]), "pair 1"),
        (lambda: friedman_nemenyi([[1, 2]]), "at least 2 rows"),
        (lambda: friedman_nemenyi([[1], [2]]), "at least 2 rows"),
        (lambda: friedman_nemenyi([[1, 2], [1, math.inf]]), "row 1, column 1"),
        (lambda: delong_test([0, 1, 1], [1, 2, 3], [1, 2, 3]), "two of each"),
        (lambda: delong_test([0, 1], [1, 2, 3], [1, 2, 3]), "every instance"),
        (
            lambda: delong_test([0, 1, 2, 1], [1, 2, 3, 4], [1, 2, 3, 4]),
            "is 2: .*1 for positive",
        ),
        (lambda: delong_test([0, 1, 0, 1], [2**53 + 1, 2**53, 1, 2], [1, 2, 3, 4]), "no float64 holds it"),
        (lambda: delong_test([0, 1, 0, 1], [1, 2, math.nan, 4], [1, 2, 3, 4]), "finite"),
        (lambda: holm([0.5, 1.5]), "between 0 and 1"),
    ],
)
def test_what_is_wrong_is_said(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_alpha_is_a_level():
    with pytest.raises(ConfigError, match="alpha=5"):
        friedman_nemenyi([[1, 2], [2, 1]], alpha=5)


@pytest.mark.parametrize(
    "labels", [[1, -1, 1, -1, 1], [True, False, True, False, True], ["true", "0", "1", "FALSE", "1"]]
)
def test_delong_reads_labels_by_the_rule_of_all_doors(labels):
    scores = [0.1, 0.5, 0.3, 0.2, 0.9], [0.4, 0.2, 0.8, 0.1, 0.3]
    assert delong_test(labels, *scores) == delong_test([1, 0, 1, 0, 1], *scores)
