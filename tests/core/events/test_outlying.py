"""Times far from all others are found as their definition says, whatever the order and the batches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rocsteady.core.events.outlying import TimeSpread

HOUR = 3_600_000_000
IN_2106 = 4_294_967_295_000_000


def spread(*batches, source="f"):
    found, position = TimeSpread(), 0
    for times in batches:
        found.add(np.array(times, np.int64), np.arange(position, position + len(times)), source)
        position += len(times)
    return found


def found_slowly(times):
    """Return the outlying times by the definition, from all times."""
    ordered = sorted(times)
    out = max(len(times) // 100, 1)
    low, high = ordered[out], ordered[-1 - out]
    limit = 10 * ((high - low) or 30 * 24 * HOUR)
    if len(times) < 100:
        limit = max(limit, 24 * HOUR)
    distinct = sorted(set(times))
    least = [place for place in range(1, len(distinct)) if distinct[place - 1] < low]
    below = [place for place in least if distinct[place] - distinct[place - 1] > limit]
    above = [
        place
        for place in range(1, len(distinct))
        if distinct[place] > high and distinct[place] - distinct[place - 1] > limit
    ]
    return [*(distinct[: max(below)] if below else ()), *(distinct[min(above) :] if above else ())]


@pytest.mark.parametrize("place", [0, 499, 999])
@pytest.mark.parametrize("time", [IN_2106, -IN_2106])
def test_one_record_far_away_is_found_with_its_record(place, time):
    times = [HOUR * n for n in range(1_000)]
    times[place] = time
    (outlier,) = spread(times[:700], times[700:]).outliers()
    assert (outlier.time, outlier.source, outlier.position) == (time, "f", place)
    near = HOUR * (998 if place == 999 and time > 0 else 999 if time > 0 else 1 if place == 0 else 0)
    assert outlier.gap == abs(time - near)


@given(
    st.lists(st.integers(0, 40) | st.sampled_from([2_000, 2_001, -9_000, 10**6]), min_size=10, max_size=300),
    st.integers(1, 50),
)
def test_the_outlying_times_are_those_of_the_definition(times, size):
    times = [HOUR * time for time in times]
    found = spread(*(times[start : start + size] for start in range(0, len(times), size))).outliers()
    assert [outlier.time for outlier in found] == found_slowly(times)
    assert [outlier.position for outlier in found] == [times.index(outlier.time) for outlier in found]


def test_of_many_times_in_any_order_the_middle_is_known_and_the_memory_is_bounded():
    rng = np.random.default_rng(3)
    times = rng.permutation(np.arange(1_000_000) * HOUR)
    times[5], times[900_000] = 10**9 * HOUR, -(10**9) * HOUR
    found = TimeSpread()
    for start in range(0, len(times), 50_000):
        found.add(times[start : start + 50_000], np.arange(start, start + 50_000), "f")
        assert len(found._times) <= 8_192
    low, high = found.middle()
    assert abs(low / HOUR - 10_000) < 2_000
    assert abs(high / HOUR - 990_000) < 2_000
    assert [outlier.position for outlier in found.outliers()] == [900_000, 5]


def test_the_first_record_of_an_outlying_time_is_named_and_neighbours_are_found_together():
    times = [*range(100), IN_2106 + 7, IN_2106, IN_2106]
    found = spread([0] * 500, times).outliers()
    assert [(outlier.time, outlier.position) for outlier in found] == [(IN_2106, 601), (IN_2106 + 7, 600)]


@pytest.mark.parametrize(
    "times",
    [
        [], [5], [0, 1, 2, 10**9], [0] * 1_000, [0] * 999 + [299 * 24 * HOUR], [*range(1_000)],
        [0] * 1_000 + [31 * 24 * HOUR] * 3,
        [*range(0, 9_000_000, 1_000_000), 540_000_000], [0] * 950 + [10**15] * 50, [2**n for n in range(20)],
    ],
)  # fmt: skip
def test_these_times_are_not_outlying(times):
    assert spread(times).outliers() == []


def test_beside_dates_of_one_day_a_wrong_year_is_outlying():
    (outlier,) = spread([0] * 1_000, [365 * 24 * HOUR]).outliers()
    assert (outlier.position, outlier.gap) == (1_000, 365 * 24 * HOUR)


def test_an_unknown_position_is_none():
    found = TimeSpread()
    found.add(np.array([*range(100), IN_2106]), None, "f")
    assert [outlier.position for outlier in found.outliers()] == [-1]
