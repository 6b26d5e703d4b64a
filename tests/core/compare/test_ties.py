"""Tests of significance on shares: they say the same as on the counts that the shares were made from."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.compare.comparisons import Checkpoint, compare_learners
from rocsteady.core.compare.significance import friedman_nemenyi, sign_test, wilcoxon
from rocsteady.core.compare.ties import as_values
from rocsteady.core.errors import InputError

from tests.support.thorough import examples

COUNTS_A = [80, 80, 81, 83, 78, 84, 79, 79, 81, 81]
COUNTS_B = [82, 82, 79, 78, 80, 82, 79, 81, 78, 82]
WHOLES = (50, 100, 200)

counts = st.integers(0, 100)
tables = st.lists(st.tuples(counts, counts), min_size=1, max_size=14)
scales = st.sampled_from([1.0, -1.0, 2.0, 3.0, 0.1, 1 / 3, 1 / 7, 1e-9, 1e9, 1e-150, 1e150])


def result(test, a, b):
    found = test(a, b)
    return found.p_value, found.ties


@pytest.mark.parametrize("whole", WHOLES)
def test_ten_shares_of_any_whole_have_one_p(whole):
    found = wilcoxon([each / whole for each in COUNTS_A], [each / whole for each in COUNTS_B])
    assert (found.p_value, found.rank_sum_a, found.ties) == (0.796875, 26, 1)


@settings(max_examples=examples(300))
@given(tables, st.sampled_from([*WHOLES, 7, 150, 1_000, 33_333]), scales)
def test_shares_have_the_p_of_their_counts_on_every_scale(table, whole, scale):
    a, b = np.array(table, float).T
    for test in (wilcoxon, sign_test):
        assert result(test, a / whole * scale, b / whole * scale) == result(test, a, b)


@settings(max_examples=examples(100))
@given(tables, st.sampled_from(WHOLES), st.randoms(use_true_random=False))
def test_the_order_of_pairs_and_of_the_two_does_not_matter(table, whole, random):
    shuffled = random.sample(table, len(table))
    a, b = np.array(table).T / whole
    other_a, other_b = np.array(shuffled).T / whole
    for test in (wilcoxon, sign_test):
        assert result(test, a, b) == result(test, other_a, other_b) == result(test, b, a)


def test_many_pairs_in_another_order_have_the_same_p_to_the_last_bit():
    random = np.random.default_rng(4)
    for n in (90, 300):  # enumerated, and by a normal
        a, b = random.integers(0, 100, (2, n)) / 100
        for _ in range(5):
            order = random.permutation(n)
            assert wilcoxon(a[order], b[order]).p_value == wilcoxon(a, b).p_value


@settings(max_examples=examples(200))
@given(
    st.lists(st.lists(counts, min_size=3, max_size=3), min_size=2, max_size=9),
    st.sampled_from([*WHOLES, 7, 150]), st.integers(1, 40), scales.filter(lambda scale: scale > 0),
)  # fmt: skip
def test_learners_rank_by_their_differences_as_by_their_counts(table, whole, offset, scale):
    """A share less an offset, such as a gain over a baseline, has another last bit than the share itself."""
    of_counts = friedman_nemenyi(np.array(table, float))
    shares = (np.array(table) + offset) / whole - offset / whole
    found = friedman_nemenyi(shares * scale)
    assert (found.ranks, found.statistic, found.p_value, found.groups) == (
        of_counts.ranks, of_counts.statistic, of_counts.p_value, of_counts.groups,
    )  # fmt: skip
    backwards = friedman_nemenyi(np.array(table, float)[::-1, ::-1])
    assert (backwards.statistic, backwards.ranks) == (of_counts.statistic, of_counts.ranks[::-1])


def test_the_twelfth_digit_decides_and_the_thirteenth_does_not():
    for value, twelfth in ((0.5, 1e-12), (0.099, 1e-13), (1.0, 1e-11), (34.0, 1e-10), (6e-300, 1e-311)):
        assert sign_test([value + twelfth], [value]).wins_a == 1
        assert sign_test([value + twelfth * 0.4], [value]).ties == 1
        ranks = friedman_nemenyi([[value + twelfth, value], [value + twelfth * 0.4, value]]).ranks
        assert ranks == (1.25, 1.75)
    assert sign_test([0.1 + 0.2, 0.0, 1e-300], [0.3, 0.0, 0.0]).ties == 2


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, object])
def test_values_of_other_types_are_those_of_their_decimals(dtype):
    whole = 1 if dtype is np.int64 else 200
    a, b = (np.array([each / whole for each in counts]).astype(dtype) for counts in (COUNTS_A, COUNTS_B))
    assert wilcoxon(a, b).p_value == 0.796875
    assert friedman_nemenyi(np.array([a, b]).T).statistic == pytest.approx(1 / 9)
    assert np.isnan(as_values("values", [None, 1.0])[0])


def test_values_of_other_sizes_do_not_make_pairs_equal():
    """Each difference has its own 12th digit: pairs of great values leave those of small values apart."""
    small = wilcoxon([3e-6, 2e-6, 1e-6, 5e6], [2e-6, 4e-6, 4e-6, 1e6])
    assert (small.rank_sum_a, small.rank_sum_b, small.ties) == (1 + 4, 2 + 3, 0)


def test_a_coarse_difference_joins_all_that_are_near_it_in_any_order_of_the_pairs():
    """8 between values of 1e12 has a half unit of 5: the differences 8, 11 and 12 are one group."""
    pairs = [(1e12 + 8, 1e12), (0.0, 8.0), (0.0, 11.0), (0.0, 12.0), (0.0, 14.0)]
    for order in itertools.permutations(pairs):
        found = wilcoxon(*zip(*order, strict=True))
        assert (found.rank_sum_a, found.rank_sum_b) == (2.5, 12.5)


@pytest.mark.parametrize("values", [["x", 1.0], [[1.0], [2.0, 3.0]], [10**400, 1], [1j, 2.0], [{}, 1.0]])
def test_values_that_are_no_numbers_are_refused_by_name(values):
    for test in (wilcoxon, sign_test):
        with pytest.raises(InputError, match=r"^values of a are "):
            test(values, [1.0, 2.0])
        with pytest.raises(InputError, match=r"^values of b are "):
            test([1.0, 2.0], values)
    with pytest.raises(InputError, match=r"^values of the table are "):
        friedman_nemenyi([values, values])


def test_a_comparison_of_learners_ranks_shares_as_their_counts():
    for whole in WHOLES:
        values = np.array([COUNTS_A, COUNTS_B]) / whole
        rows = compare_learners(["a", "b"], values, "accuracy", Checkpoint(0, None, 1))
        p_values = {row.test: row.p_value for row in rows if row.p_value is not None}
        assert (p_values["wilcoxon"], p_values["sign"]) == (0.796875, 1.0)
        assert p_values["friedman"] == pytest.approx(math.erfc(math.sqrt(1 / 18)))
