"""Periods of pandas are spans: no time and no number; as a model, a slice or an id they are their text."""

from __future__ import annotations

import subprocess
import sys

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import rocsteady as rs
from rocsteady.pipelines.prequential.columns import instance_columns
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.events.lateness import ANY_TIME
from rocsteady.transforms.events.periods import column_at, holds_periods, period_texts
from rocsteady.transforms.events.validate import validate_as
from rocsteady.transforms.sources.files.listing import list_sources
from rocsteady.transforms.sources.files.read import read_batches

MONTHS = pd.period_range("2024-01", periods=2, freq="M")
YEARS = pd.period_range("2024", periods=2, freq="Y")


def frame(**columns):
    return pd.DataFrame({"score": [0.1, 0.9], "label": [0, 1], **columns})


@pytest.mark.parametrize("periods", [MONTHS, YEARS, YEARS.astype(object), pd.Index([MONTHS[0], YEARS[1]])])
def test_a_period_is_no_time(periods):
    evaluated = rs.evaluate(frame(t=periods), time="t")
    letters = evaluated.dead_letters
    assert letters.reason.tolist() == ["time cannot be read"] * 2
    assert letters.detail[1].endswith("a Period is a span of time and no moment; give its begin with "
                                      ".to_timestamp()")  # fmt: skip
    assert "Period('202" in letters.value[0]
    assert str(periods[0]) in letters.raw[0]


@pytest.mark.parametrize("periods", [MONTHS, YEARS.astype(object)])
def test_as_model_slice_and_id_a_period_is_its_text(periods):
    words = [str(each) for each in periods]
    given = frame(m=periods, s=periods, i=periods)
    evaluated = rs.evaluate(given, model="m", slices="s", id="i", every=1)
    rows = evaluated.rows
    assert sorted({*rows.model}) == words
    assert sorted({*rows.slice}) == ["", *(f"s={word}" for word in words)]


def test_a_period_is_no_score():
    evaluated = rs.evaluate(pd.DataFrame({"score": YEARS, "label": [0, 1]}))
    assert evaluated.dead_letters.reason.tolist() == ["score is not a number"] * 2


def test_a_file_has_periods_too_and_without_pandas_they_are_no_numbers(tmp_path):
    """A process that has not imported pandas reads such a column as int64, with a note in the metadata."""
    path = tmp_path / "e.parquet"
    frame(t=MONTHS).to_parquet(path)
    code = (
        "import sys, pyarrow.parquet as pq\n"
        "from rocsteady.transforms.events.columns import ids, instants, texts\n"
        "from rocsteady.transforms.events.periods import column_at\n"
        f"batch = next(pq.ParquetFile({str(path)!r}).iter_batches(columns=['t']))\n"
        "assert 'pandas' not in sys.modules and str(batch.column(0).type) == 'int64'\n"
        "column = column_at(batch, 0)\n"
        "print(instants(column).tolist())\n"
        "class Hidden:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'pandas': raise ModuleNotFoundError(name)\n"
        "if 'hidden' in sys.argv: sys.meta_path.insert(0, Hidden())\n"
        "print(texts(column).to_list(), ids(column).to_list())\n"
    )
    no_time = "[-9223372036854775808, -9223372036854775808]"
    for arguments, words in ((), MONTHS.astype(str)), (("hidden",), ["period 648 (M)", "period 649 (M)"]):
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
        assert done.stdout.splitlines() == [no_time, f"{[*words]} {[*words]}"], done.stderr


def test_only_periods_are_periods():
    batch = pa.RecordBatch.from_pandas(frame(t=MONTHS, n=[1, None]))
    assert [holds_periods(column_at(batch, place)) for place in range(4)] == [False, False, True, False]
    missing = pa.array(pd.PeriodIndex(["2024-01", None], freq="M").array)
    assert period_texts(missing).to_pylist() == ["2024-01", None]


def test_int96_outside_the_range_of_nanoseconds_does_not_wrap(tmp_path, capsys):
    """Nanoseconds in int64 hold the years 1677 to 2262: 2500-01-01 was read as 1915."""
    path, days = tmp_path / "e.parquet", [f"{year}-01-01" for year in (1000, 2500)]
    times = pa.array([pd.Timestamp(day).to_pydatetime() for day in days], pa.timestamp("us"))
    pq.write_table(
        pa.table({"score": [0.1, 0.9], "label": [0, 1], "t": times, "s": times}),
        path,
        use_deprecated_int96_timestamps=True,
    )
    from rocsteady.pipelines.cli import main

    rows = tmp_path / "rows.jsonl"
    main(["evaluate", str(path), "--time", "t", "--slice", "s", "--every", "1", "--output", str(rows)])
    words = rows.read_text()
    for day in days:
        assert f'"time": "{day}T00:00:00Z"' in words
        assert f'"slice": "s={day} 00:00:00.000000"' in words


def test_a_category_of_periods_is_no_time_either():
    evaluated = rs.evaluate(frame(t=pd.Categorical(YEARS)), time="t")
    assert evaluated.dead_letters.reason.tolist() == ["time cannot be read"] * 2


@pytest.mark.parametrize("unit", ["s", "ms"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_a_timestamp_out_of_range_is_told_as_its_number(unit, zone):
    """Arrow wrote the year 20000 as a text that is cut, or as the year 13750."""
    times = pa.array([2**60 if unit == "ms" else 2**40, 0], pa.timestamp(unit, zone))
    events = pa.table({"score": [0.1, 0.9], "label": [0, 1], "t": times})
    (letter,) = pa.table(rs.evaluate(events, time="t").dead_letters).to_pylist()
    words = f"{times[0].value} {unit} since 1970"
    assert (letter["reason"], letter["value"]) == ("time is out of range", words)
    assert f'"t": "{words}"' in letter["raw"]
    assert {*rs.evaluate(events, slices="t").rows.column("slice").to_pylist()} >= {f"t={words}"}


def test_a_feature_of_periods_is_text_and_never_its_ordinal(tmp_path):
    path = tmp_path / "e.parquet"
    frame(p=YEARS).to_parquet(path)
    (source,) = list_sources([str(path)])
    found = instance_columns(source, EventFields(), (), ()).fields
    assert (found.features, found.slices) == (("score",), (("p",),))
    fields = EventFields(features=("p",), model_name="m")
    (chunk,) = read_batches(source, fields, role="instance")
    _, letters = validate_as("instance", chunk, fields, "s", 0, ANY_TIME)
    assert [letter.reason for letter in letters] == ["feature is not a number"] * 2
