"""One reader of times: every kind of value is the same moment in every door, and nothing wraps."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import rocsteady as rs
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp
from rocsteady.core.events.columns import TextColumn
from rocsteady.core.events.inputs import as_times
from rocsteady.core.events.moments import datetime64_micros, instant
from rocsteady.core.events.times import NO_TIME
from rocsteady.transforms.events.columns import instants
from rocsteady.transforms.events.records import column_of

NOON = 1_704_110_400_000_000
"""2024-01-01T12:00:00Z."""


@pytest.mark.parametrize(
    ("value", "micros"),
    [
        (datetime(2024, 1, 1, 12), NOON),
        (datetime(2024, 1, 1, 14, tzinfo=timezone(timedelta(hours=2))), NOON),
        (datetime(1850, 1, 1, tzinfo=ZoneInfo("Europe/Amsterdam")), -3_786_826_772_000_000),
        ("1850-01-01T00:00:00+00:19:32", -3_786_826_772_000_000),
        (date(2024, 1, 1), NOON - 43_200_000_000),
        (pd.Timestamp("2024-01-01T12:00:00.000000999Z"), NOON),
        (pd.NaT, None),
        (Timestamp(NOON // 1_000_000), NOON),
        (MIN_TIMESTAMP, None),
        (np.datetime64("2024-01-01T12", "h"), NOON),
        (np.datetime64("2500", "Y"), 16_725_225_600_000_000),
        (np.datetime64("300000", "Y"), None),
        (np.timedelta64(5, "ns"), None),
        (np.int64(NOON // 1_000_000), NOON),
        (Decimal(NOON // 1_000_000), NOON),
        (pd.Period("2024", "Y"), None),
        (pd.Period("2024-01-01", "D"), None),
        (True, None),
    ],
    ids=repr,
)
def test_a_value_is_the_same_moment_in_every_door(value, micros):
    assert instant(value) == micros
    expected = [NO_TIME if micros is None else micros]
    for beside in ([], ["2024-01-01T12:00:00Z"]):  # alone, and in a column that mixes types
        column = column_of([value, *beside], as_numbers=False, as_times=True)
        assert instants(column).tolist() == [*expected, *([NOON] * len(beside))]
    if micros is None:
        with pytest.raises(rs.InputError, match=r"times(\[0\] is| are of type)"):
            as_times([value])
    else:
        assert as_times([value])[0].tolist() == expected


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "25s", "10us"])
def test_times_of_numpy_that_have_no_microseconds_do_not_wrap(unit):
    most = np.array([2**62, -(2**62)], f"M8[{unit}]")
    moments = np.concatenate([np.array(["1970-01-01", "NaT"], f"M8[{unit}]"), most])
    first = moments[0].astype("M8[us]").astype(np.int64)  # a week begins on a Thursday
    assert datetime64_micros(moments).tolist() == [first, *[NO_TIME] * (len(moments) - 1)]


def test_a_number_that_a_float_would_round_is_an_exact_time():
    nanoseconds = 1_704_067_200_123_457_001
    for value in (nanoseconds, str(nanoseconds), Decimal(nanoseconds), np.uint64(nanoseconds)):
        assert instant(value, "ns") == nanoseconds // 1_000
        assert as_times([value], "ns") == ([nanoseconds // 1_000], True)
    assert instants(pa.array([Decimal(nanoseconds)]), "ns").tolist() == [nanoseconds // 1_000]


def test_an_evaluator_takes_the_times_of_beam_of_texts_and_of_dates():
    texts = ["2024-01-01T00:00Z", "2024-01-02T00:00Z"]
    days = [datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2)]
    for times in (texts, days, [Timestamp(day.timestamp()) for day in days], np.array(texts)):
        rows = rs.ModelEvaluator(every=rs.EveryEvents(1)).update([0, 1], [0.1, 0.2], times=times)
        assert [row.time for row in rows] == [1_704_067_200_000_000, 1_704_153_600_000_000]


def test_a_period_is_refused_with_the_remedy():
    with pytest.raises(rs.InputError, match=r"Period\('2024-01', 'M'\): .* no moment; .*to_timestamp"):
        as_times(pd.period_range("2024-01", periods=2, freq="M"))


def test_missing_values_are_missing_times():
    for missing in (
        pd.array([1, None], dtype="Int64"),
        pd.array(["2024-01-01", None], dtype="string"),
        [1, ""],
    ):
        with pytest.raises(rs.InputError, match=r"times\[1\] is .*; leave events without a time out"):
            as_times(missing)


def test_a_packed_batch_takes_whole_microseconds_and_datetime64():
    """Nanoseconds of datetime64 were read as microseconds."""
    moments = np.array(["2024-01-01T12", "NaT"], "M8[ns]")
    for times in (moments, [NOON, NO_TIME]):
        batch = rs.EventBatch(models=TextColumn.repeated("m", 2), scores=[0, 1], labels=[0, 1], times=times)
        assert batch.times.tolist() == [NOON, NO_TIME]
    for times in ([0.5], np.array([2**64 - 1], np.uint64)):
        with pytest.raises(rs.InputError, match=r"times are of type \w+64: give int64 microseconds"):
            rs.EventBatch(models=TextColumn.repeated("m", 1), scores=[0], labels=[1], times=times)
