"""Numbers as times: one unit everywhere, and a warning where they look as if they counted another one."""

from __future__ import annotations

import datetime
import warnings

import numpy as np
import pyarrow as pa
import pytest
import rocsteady as rs
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.events.inputs import as_times
from rocsteady.core.events.times import NO_TIME, PER_SECOND, date_text, doubt_in, from_float_ticks, from_ticks

from tests.support.thorough import examples

pd = pytest.importorskip("pandas", reason="pip install '.[test]'")

DAYS = 1_704_067_200 + np.arange(90) * 86_400
"""Ninety days from 2024-01-01 on, seconds."""

UNITS = tuple(PER_SECOND)


def weeks(times, **unit):
    """Events in the window at each 30th of 90 events, one a day."""
    ev = rs.ModelEvaluator(window=rs.LastDuration("7d"), every=rs.EveryEvents(30))
    return [row.window_events for row in ev.update(np.arange(90) % 2, np.arange(90) % 7, times=times, **unit)]


@pytest.mark.parametrize(
    ("times", "unit"),
    [
        (DAYS, {}),
        (DAYS.astype(float), {}),
        (DAYS * 1_000, {"time_unit": "ms"}),
        (DAYS * 1e3, {"time_unit": "ms"}),
        (DAYS * 10**6, {"time_unit": "us"}),
        (DAYS.astype(np.uint64) * 10**9, {"time_unit": "ns"}),
        (DAYS.astype("M8[s]"), {"time_unit": "ns"}),
        (pd.Series(pd.to_datetime(DAYS, unit="s", utc=True)), {}),
        (pa.array(DAYS, pa.timestamp("s", "UTC")), {"time_unit": "ms"}),
        (pa.chunked_array([pa.array(DAYS * 1_000, pa.timestamp("ms"))]), {}),
        ([datetime.datetime.fromtimestamp(day, datetime.UTC) for day in DAYS.tolist()], {}),
        ([datetime.date.fromordinal(738_886 + day) for day in range(90)], {}),
    ],
)
def test_an_evaluator_reads_seconds_unless_it_is_told_another_unit_and_typed_times_have_their_own(
    times, unit
):
    assert weeks(times, **unit) == [7, 7, 7]


@pytest.mark.parametrize(
    ("times", "unit", "words"),
    [
        (DAYS, "us", 'such as 1704067200 are read in us, as 1970-01-01T00:28:24Z; give time_unit="s"'),
        (DAYS * 1_000, "us", 'as 1970-01-20T17:21:07Z; give time_unit="ms"'),
        (DAYS * 10**6, "ns", 'give time_unit="us"'),
        (DAYS, "ns", 'give time_unit="s"'),
        (np.full(90, 20_240_102), "s", r"1970-08-23T06:15:02Z; give dates, .*format=\"%Y%m%d\""),
        (np.full(90, 202_401_021_530), "ms", r'such as 202401021530 are read in ms, as 1976-.*%Y%m%d%H%M"'),
        (np.full(90, 5_000_000_000), "s", "as 2128-06-11T08:53:20Z; give another time_unit="),
        (np.full(90, -700_000_000), "s", "as 1947-10-27T03:33:20Z; give another time_unit="),
    ],
)
def test_numbers_that_look_like_another_unit_warn_once_and_name_the_remedy(times, unit, words):
    ev = rs.ModelEvaluator()
    with pytest.warns(rs.TimeUnitWarning, match=words) as told:
        ev.update(np.arange(90) % 2, np.arange(90) % 7, times=times, time_unit=unit)
    assert told[0].filename == __file__
    ev.update([1], [0.5], times=times[-1:], time_unit=unit)  # warnings are errors here
    assert ev.seq == 91


@pytest.mark.parametrize("unit", UNITS)
def test_counters_and_a_stray_marker_among_dates_do_not_warn(unit):
    per_second = PER_SECOND[unit]
    ev = rs.ModelEvaluator()
    for times in (range(1_000), [0, 9_999_999], [0, 0, *(DAYS[:5] * per_second)], [DAYS[0] * per_second]):
        ev.update([0] * len(times), [0.5] * len(times), times=list(times), time_unit=unit)


def test_advance_takes_times_as_update_does():
    for clock in ([11], [11_000, "ms"], [np.datetime64(11, "s")], [datetime.datetime(1970, 1, 1, 0, 0, 11)]):
        ev = rs.ModelEvaluator(every=rs.EverySeconds(10))
        ev.update([0, 1], [0.1, 0.9], times=[1, 2])
        unit = {"time_unit": clock[1]} if clock[1:] else {}
        assert [row.due for row in ev.advance(clock[0], **unit)] == [10_000_000]


@settings(max_examples=examples(200))
@given(st.integers(631_152_000, 4_133_980_799), st.sampled_from(UNITS), st.sampled_from(UNITS))
def test_a_time_of_1990_to_2100_never_passes_for_one_in_a_wrong_unit(second, counted, read):
    number = second * PER_SECOND[counted]
    times = from_ticks(np.array([number]), read)
    if counted == read:
        assert times[0] == second * 1_000_000
        assert doubt_in(times, read) is None
    elif times[0] != NO_TIME:  # else it is refused
        doubt = doubt_in(times, read)
        assert doubt is not None
        assert doubt.other == counted


@settings(max_examples=examples(200))
@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5), st.sampled_from(UNITS))
def test_numbers_are_whole_microseconds_or_no_time(numbers, unit):
    times = from_ticks(np.array(numbers, np.int64), unit).tolist()
    for number, time in zip(numbers, times, strict=True):
        exact = number * 1_000_000 // PER_SECOND[unit]
        inside = -62_135_596_800_000_000 <= exact < 253_402_300_800_000_000
        assert time == (exact if inside else NO_TIME)
        if inside:
            moment = str(np.datetime64(exact // 10**6, "s"))
            midnight = exact % 86_400_000_000 == 0
            assert date_text(exact) == (moment[:10] if midnight else f"{moment}Z")
    floats = from_float_ticks(np.array([0.25, np.nan, np.inf, -1e300]), "s").tolist()
    assert floats == [250_000, NO_TIME, NO_TIME, NO_TIME]


def test_nothing_is_applied_where_a_time_is_refused():
    ev = rs.ModelEvaluator()
    with pytest.raises(rs.InputError, match=r"times\[1\]"):
        ev.update([0, 1], [0.1, 0.9], times=[1, 1e300])
    assert ev.seq == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert as_times([], "s")[0].tolist() == []


def test_a_unit_that_is_none_is_refused():
    for call in (
        lambda ev: ev.update([0], [0.1], times=[1], time_unit="h"),
        lambda ev: ev.advance(1, time_unit="h"),
    ):
        with pytest.raises(rs.ConfigError, match="time_unit='h': give one of s, ms, us, ns"):
            call(rs.ModelEvaluator())
