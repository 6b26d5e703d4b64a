"""Texts of moments in a format: kernels and strptime agree, and bad formats are refused."""

from __future__ import annotations

from datetime import UTC, datetime
from shlex import quote

import pyarrow as pa
import pytest
import rocsteady as rs
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.events.times import NO_TIME
from rocsteady.transforms.events import doubts
from rocsteady.transforms.events.columns import instants
from rocsteady.transforms.events.dead_letters import NO_LETTERS, Chunk
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.events.lateness import ANY_TIME
from rocsteady.transforms.events.time_formats import checked_format, parse_moment, parse_moments
from rocsteady.transforms.events.validate import validate_as

from tests.support.thorough import examples

FORMATS = (
    "%Y%m%d",
    "%d/%m/%Y %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S.%f%z",
    "%Y.%f",
    "%y%m%d",
    "%b %d %Y %I:%M %p",
    "%Y%%%m",
)


@settings(max_examples=examples(400))
@given(
    st.sampled_from(FORMATS),
    st.lists(st.datetimes(timezones=st.just(UTC)) | st.text("0129 :/+Z", max_size=8)),
)
def test_a_column_is_read_as_strptime_reads_each_text(form, values):
    texts = [value if isinstance(value, str) else value.strftime(form) for value in values]
    texts += [text[:-1] + "9" for text in texts if text]
    expected = [NO_TIME if (time := parse_moment(text, form)) is None else time for text in texts]
    whole = parse_moments(pa.array([None, *texts], pa.string()), form).tolist()
    assert whole == [NO_TIME, *(t if t >= -62_135_596_800_000_000 else NO_TIME for t in expected)]
    assert parse_moments(pa.array(["x", *texts], pa.string()).slice(1), form).tolist() == whole[1:]


def test_numbers_are_read_as_texts_and_typed_moments_need_no_format():
    day = int(datetime(2024, 1, 2, tzinfo=UTC).timestamp()) * 1_000_000
    for column in (pa.array([20240102]), pa.array([20240102.0]), pa.array(["20240102"]).dictionary_encode()):
        assert instants(column, "s", "%Y%m%d").tolist() == [day]
    assert instants(pa.array([day], pa.timestamp("us")), "s", "%Y%m%d").tolist() == [day]
    assert instants(pa.array([True, None]), "s", "%Y%m%d").tolist() == [NO_TIME, NO_TIME]


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("%Q %Y", "'Q' is a bad directive"), ("%Y%Y", "stands twice"), ("%H:%M", "has no year"),
        ("%Y %I:%M", "hour is ambiguous"), ("%Y %Z", "give %z"), ("", "give a format"), (7, "give a format"),
    ],
)  # fmt: skip
def test_a_format_that_cannot_be_is_refused_at_once(form, words):
    with pytest.raises(rs.ConfigError, match=words):
        checked_format(form)
    with pytest.raises(rs.ConfigError, match=words):
        rs.EvaluateModels(time="t", time_format=form)


def check(times, **fields):
    batch = pa.record_batch({"score": [0.5] * len(times), "label": [1] * len(times), "t": times})
    named = EventFields(model_name="m", time="t", **fields)
    return validate_as("event", Chunk(0, batch, None, NO_LETTERS), named, "s", 0, ANY_TIME)


def test_a_text_that_does_not_fit_is_a_dead_letter_that_names_the_format():
    events, letters = check(["02/01/2024", "2024-01-02"], time_format="%d/%m/%Y")
    assert (len(events), len(letters)) == (1, 1)
    assert "'%d/%m/%Y'" in str(letters.batch.to_pylist())


@pytest.mark.parametrize(
    ("times", "unit", "remedy"),
    [
        ([20240102] * 3, "s", "--time-format %Y%m%d"),
        (["20240102"] * 3, "s", "--time-format %Y%m%d"),
        ([1704067200000.0] * 3, "us", "--time-unit ms"),
        ([1704067200, 0, 1704067200], "ms", "--time-unit s"),
    ],
)
def test_numbers_that_look_like_another_unit_are_told_of_once_a_column(times, unit, remedy, caplog):
    doubts.reset()
    for _ in range(3):
        check(times, time_unit=unit)
    (record,) = [each for each in caplog.records if each.name == "rocsteady.times"]
    assert remedy in record.getMessage()
    assert remedy in doubts.told()[0]
    doubts.reset()


def test_counters_and_texts_of_dates_are_not_told_of(caplog):
    doubts.reset()
    for times in ([0, 1, 2], ["1970-01-02"], [1704067200, 0, 1704067200]):
        check(times)
    assert not caplog.records


@pytest.mark.parametrize(
    ("form", "other", "text"),
    [
        ("%d/%m/%Y", "%m/%d/%Y", "12/25/2024"),
        ("%m/%d/%Y", "%d/%m/%Y", "25/12/2024"),
        ("%Y-%d-%m %H:%M", "%Y-%m-%d %H:%M", "2024-12-25 10:30"),
        ("%d.%m.%y", "%y.%m.%d", "99.12.25"),
    ],
)
def test_days_and_months_that_are_swapped_are_told_of_once_with_the_format(form, other, text, caplog):
    """Texts of the 1st to the 12th of a month fit either format: their times were wrong without a word."""
    doubts.reset()
    fits = datetime(2024, 3, 2, 10, 30).strftime(other)
    for _ in range(2):
        events, letters = check([fits, text, None, "soon"], time_format=form)
        assert (len(events), len(letters)) == (1, 3)
        assert [("but fits" in letter.detail) for letter in letters] == [True, False, False]
        assert letters[0].detail.endswith(f"but fits {other!r}")
    (record,) = [each for each in caplog.records if each.name == "rocsteady.times"]
    assert f"give --time-format {quote(other)} (time_format=" in record.getMessage()
    assert "swapped" in doubts.told()[0]
    doubts.reset()


def test_texts_that_fit_no_order_of_the_format_are_not_told_of(caplog):
    doubts.reset()
    check(["2024-01-02", "soon"], time_format="%d/%m/%Y")
    check(["20240102"], time_format="%Y")
    assert not caplog.records


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("%Y-%d-%m", "2024-25-12"),
        ("%Y-%d-%mT%H:%M:%S.%f%z", "2024-25-12T10:30:00.123Z"),
        ("%Y-%d-%m %H:%M", "2024-25-12 10:30"),
    ],
)
def test_swapped_days_and_months_of_dates_without_a_format_are_told_of(form, text, caplog):
    """Such texts of the 1st to the 12th of a month are dates of RFC 3339, with day and month swapped."""
    doubts.reset()
    events, letters = check([text.replace("25", "03"), text, None, "soon"])
    assert (len(events), len(letters)) == (1, 3)
    (record,) = [each for each in caplog.records if each.name == "rocsteady.times"]
    assert f"{text!r} does not fit RFC 3339, but fits {form!r}" in record.getMessage()
    assert f"give --time-format {quote(form)} (time_format=" in record.getMessage()
    doubts.reset()


def test_texts_that_are_no_dates_in_any_order_are_not_told_of(caplog):
    doubts.reset()
    check(["2024-12-25", "2024-02-31", "2024-13-45", "2024-00-10", "25/12/2024", "n/a"])
    assert not caplog.records
