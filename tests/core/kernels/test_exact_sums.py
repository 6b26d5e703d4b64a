"""Exact sums against fractions: whatever comes and goes, the nearest double of what is there."""

from __future__ import annotations

import contextlib
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.kernels import exact_sums
from rocsteady.core.kernels.cache_folder import COMPILED
from rocsteady.core.kernels.compile import njit
from rocsteady.core.kernels.exact_sums import SUM_CHUNKS, add, add_times, clear, compare, rounded

from tests.support.oracles.score_tree import nearest
from tests.support.thorough import examples

EXAMPLES = 300 if COMPILED else 30
GREATEST = 1.7976931348623157e308


def batch(sums: Any, numbers: Any, times: Any) -> None:
    for i in range(len(numbers)):
        if abs(times[i]) == 1:
            add(sums, numbers[i], times[i])
        else:
            add_times(sums, numbers[i], times[i])


def start_anew(sums: Any) -> None:
    clear(sums)


def value(sums: Any) -> float:
    return rounded(sums)


def order(sums: Any, others: Any) -> int:
    return compare(sums, others)


if COMPILED:  # helpers are there for kernels alone
    batch, start_anew, value, order = njit(batch), njit(start_anew), njit(value), njit(order)


def sum_of(numbers: list[float], times: list[int] | None = None) -> Any:
    sums = np.zeros(SUM_CHUNKS, np.int64)
    batch(sums, np.array(numbers, float), np.array(times or [1] * len(numbers), np.int64))
    return sums


finite = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [0.0, -0.0, 5e-324, -5e-324, 2.0**-1022, 1e-300, 1e300, GREATEST, -GREATEST, 1.0, 1e9 + 1e-7, 2.0**53]
)
counts = st.integers(-(2**32) + 1, 2**32 - 1) | st.sampled_from([1, -1, 2, 2**32 - 1])


@settings(max_examples=examples(EXAMPLES))
@given(st.lists(st.tuples(finite, counts), max_size=20))
def test_a_sum_is_the_double_nearest_to_the_fraction(terms: list[tuple[float, int]]) -> None:
    numbers, times = [x for x, _ in terms], [m for _, m in terms]
    sums = sum_of(numbers, times)
    exact = sum((Fraction(x) * m for x, m in terms), Fraction(0))
    assert value(sums) == value(sums) == nearest(exact)
    batch(sums, np.array(numbers), -np.array(times, np.int64))
    assert value(sums) == 0.0
    assert not sums.any(), "what came and went leaves nothing, not even zeros to look at"


@settings(max_examples=examples(EXAMPLES))
@given(st.lists(finite, max_size=50), st.randoms())
def test_the_order_and_what_came_between_leave_no_trace(numbers: list[float], random: Any) -> None:
    one, other = sum_of(numbers), np.zeros(SUM_CHUNKS, np.int64)
    steps = [(x, 1) for x in numbers] + [(x, sign) for x in numbers for sign in (1, -1)]
    random.shuffle(steps)
    for x, sign in steps:
        batch(other, np.array([x]), np.array([sign]))
        if random.random() < 0.3:
            value(other)
    assert value(one) == value(other)
    assert one.tobytes() == other.tobytes(), "one sum has one form, once its carries are made"
    with contextlib.suppress(OverflowError):  # on the way to a sum that may be finite
        assert value(one) == math.fsum(numbers)


@pytest.mark.parametrize("exponent", [-1074, -1073, -1023, -1022, -1021, -500, -1, 0, 31, 32, 33, 900, 970])
def test_halves_are_rounded_to_even_and_what_is_below_them_decides(exponent: int) -> None:
    unit = Fraction(2) ** exponent
    for odd in (0, 1):
        base = (2**52 + odd) * unit
        for low in (0, 1, 2, 3):
            for trace in (Fraction(0), Fraction(2) ** -1074, -(Fraction(2) ** -1074)):
                parts = [float(base), *([float(unit / 4)] * low if exponent > -1073 else [])]
                sums = sum_of([*parts, float(trace)])
                exact = sum(map(Fraction, parts)) + trace
                assert value(sums) == nearest(exact), (odd, low, trace)
                assert value(sum_of([-x for x in parts] + [-float(trace)])) == -nearest(exact)


def test_beyond_the_greatest_double_a_sum_is_infinite_and_comes_back() -> None:
    half_step = 2.0**969
    assert value(sum_of([GREATEST, half_step])) == GREATEST
    assert value(sum_of([GREATEST, half_step, half_step])) == math.inf
    sums = sum_of([-GREATEST] * 2)
    assert value(sums) == -math.inf
    batch(sums, np.array([GREATEST, 1.0]), np.array([1, 1]))
    assert value(sums) == -GREATEST
    sums = sum_of([GREATEST] * 1000, [2**32 - 1] * 1000)
    assert value(sums) == math.inf
    batch(sums, np.array([GREATEST] * 1000), np.array([-(2**32 - 1)] * 1000))
    batch(sums, np.array([0.1]), np.array([1]))
    assert value(sums) == 0.1


def test_infinities_are_counted() -> None:
    sums = sum_of([math.inf, 1.5, math.inf, -math.inf], [1, 1, 2, 1])
    assert math.isnan(value(sums))
    batch(sums, np.array([-math.inf]), np.array([-1]))
    assert value(sums) == math.inf
    batch(sums, np.array([math.inf]), np.array([-3]))
    assert value(sums) == 1.5
    start_anew(sums)
    assert value(sums) == 0.0


@pytest.mark.parametrize("sign", [1, -1])
def test_no_chunk_overflows_before_carries_are_made(sign: int) -> None:
    """2^30 additions of the fullest digits, put there at once."""
    fullest = 2.0**-1022 * (2 - 2.0**-52)
    sums = np.zeros(SUM_CHUNKS, np.int64)
    batch(sums, np.array([fullest]), np.array([sign]))
    most = (1 << 30) - 1
    sums[: exact_sums._CHUNKS] *= most
    sums[exact_sums._UNCARRIED] = most
    assert abs(sums).max() < 2**62
    batch(sums, np.array([fullest] * 3), np.array([sign] * 3))
    assert sums[exact_sums._UNCARRIED] < 3
    assert value(sums) == sign * nearest(Fraction(fullest) * (most + 3))


positive = st.lists(finite.map(abs), max_size=8)


@pytest.mark.slow
@settings(max_examples=examples(EXAMPLES))
@given(positive, positive, positive)
def test_sums_compare_as_fractions_do(common: list[float], more: list[float], others: list[float]) -> None:
    one, other = sum_of(common + more), sum_of(others + common)
    exact = sum(map(Fraction, more), Fraction(0)) - sum(map(Fraction, others), Fraction(0))
    expected = (exact > 0) - (exact < 0)
    assert (order(one, other), order(other, one)) == (expected, -expected)
    batch(one, np.array([1e300, 1e300]), np.array([1, -1]))
    assert order(one, one.copy()) == 0
