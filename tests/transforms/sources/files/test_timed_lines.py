"""Files as JSON lines in order of time: every row once, values as they were, files merged."""

from __future__ import annotations

import datetime
import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import InputError, RocsteadyError
from rocsteady.core.events.times import NO_TIME
from rocsteady.transforms.sources.files import timed_lines as module
from rocsteady.transforms.sources.files.listing import list_sources
from rocsteady.transforms.sources.files.timed_lines import survey, timed_lines

from tests.support.thorough import examples


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(module, "_BLOCK_ROWS", 7)


def played(paths, time="t", unit="s", **options):
    """All records of files, and their times."""
    files = [survey(source, time, unit) for source in list_sources(paths)]
    pieces = list(timed_lines(files, time, unit, **options))
    times = np.concatenate([np.zeros(0, np.int64), *(piece.times for piece in pieces)])
    assert (np.diff(times) >= 0).all()
    return times.tolist(), [json.loads(line) for piece in pieces for line in piece.lines]


def test_csv_keeps_numbers_as_numbers_and_codes_as_text(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text(
        "t,score,label,zip,id,mixed,long,none,name\n"
        "5,0.10,1,01234,12,7,123456789012345678901,,a\"\"b\n"
        "7,-3e-2,0,99999,13,x,5,,\n"
    )  # fmt: skip
    times, records = played([path], text=["id"])
    assert times == [5_000_000, 7_000_000]
    assert records == [
        {
            "t": "1970-01-01T00:00:05Z", "score": 0.1, "label": 1, "zip": "01234", "id": "12", "mixed": "7",
            "long": "123456789012345678901", "none": None, "name": 'a""b',
        },
        {
            "t": "1970-01-01T00:00:07Z", "score": -0.03, "label": 0, "zip": "99999", "id": "13", "mixed": "x",
            "long": "5", "none": None, "name": None,
        },
    ]  # fmt: skip


def test_parquet_keeps_its_types(tmp_path):
    path = tmp_path / "s.parquet"
    zone = datetime.timezone(datetime.timedelta(hours=2))
    table = pa.table({
        "t": pa.array([datetime.datetime(2024, 1, 1, 2, tzinfo=zone)] * 2, pa.timestamp("ns", "+02:00")),
        "score": pa.array([0.1, None], pa.float64()),
        "half": pa.array([0.5, float("nan")], pa.float32()),
        "label": [True, False],
        "id": [12, 13],
        "text": ["01", None],
    })  # fmt: skip
    pq.write_table(table, path)
    _, records = played([path], text=["id"])
    assert records == [
        {"t": "2024-01-01T00:00:00Z", "score": 0.1, "half": 0.5, "label": True, "id": "12", "text": "01"},
        {"t": "2024-01-01T00:00:00Z", "score": None, "half": "nan", "label": False, "id": "13", "text": None},
    ]


def test_json_lines_are_played_as_they_are(tmp_path):
    path = tmp_path / "s.jsonl"
    lines = ['{"t":  2, "x": {"y": [1, null]}, "id": "007"}', '{"t": 1.5, "p": 0.10}']
    path.write_text("\n".join(lines))
    files = [survey(source, "t", "s") for source in list_sources(path)]
    (piece,) = timed_lines(files, "t", "s")
    assert piece.lines == lines[::-1]
    assert piece.times.tolist() == [1_500_000, 2_000_000]


@settings(max_examples=examples(60))
@given(
    streams=st.lists(st.lists(st.one_of(st.none(), st.integers(0, 30)), max_size=40), min_size=1, max_size=4),
    ordered=st.booleans(),
    start=st.integers(-1, 31),
)
def test_files_are_merged_by_time_each_in_its_order(tmp_path_factory, streams, ordered, start):
    """Whatever the times, which are missing, and whether they rise."""
    folder = tmp_path_factory.mktemp("files")
    expected, paths = [], []
    for number, times in enumerate(streams):
        if ordered:
            known = iter(sorted(time for time in times if time is not None))
            times = [None if time is None else next(known) for time in times]
        path = folder / f"{number}.csv"
        path.write_text(
            "t,n\n" + "".join(f"{'' if t is None else t},{number}-{i}\n" for i, t in enumerate(times))
        )
        paths.append(path)
        if times and not any(time is not None for time in times):
            with pytest.raises(InputError, match="has no time that can be read"):
                played([path])
            return
        (file,) = (survey(source, "t", "s") for source in list_sources(path))
        assert file.records == len(times)
        assert file.untimed == times.count(None)
        assert file.rises or not ordered
        last = min((time for time in times if time is not None), default=None)
        for i, time in enumerate(times):
            last = last if time is None else time
            expected.append((last, f"{number}-{i}"))
    times, records = played(paths, start=NO_TIME if start < 0 else start * 1_000_000)
    expected = [each for each in expected if each[0] >= start]
    assert sorted(zip(times, (r["n"] for r in records), strict=True)) == sorted(
        (time * 1_000_000, name) for time, name in expected
    )
    for number in range(len(streams)):  # a file's own records: a stable sort of them
        own = [each for each in expected if each[1].startswith(f"{number}-")]
        assert [r["n"] for r in records if r["n"].startswith(f"{number}-")] == [
            name for _, name in sorted(own, key=lambda each: each[0])
        ]


def test_a_record_without_a_time_keeps_what_stands_there(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("t,n\n2024-01-01,a\nsoon,b\n,c\n2024-01-02,d\n")
    _, records = played([path])
    assert [(r["n"], r["t"]) for r in records] == [
        ("a", "2024-01-01T00:00:00Z"), ("b", "soon"), ("c", None), ("d", "2024-01-02T00:00:00Z"),
    ]  # fmt: skip


def test_what_is_no_row_is_counted(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("t,n\n1,a\n2\n3,c\n")
    (file,) = (survey(source, "t", "s") for source in list_sources(path))
    assert (file.records, file.no_rows) == (2, 1)


def test_a_file_without_the_column_is_an_error(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("times,n\n1,a\n")
    with pytest.raises(InputError, match=r"has no column 'time' \(did you mean 'times'\?\)"):
        played([path], time="time")


def test_a_damaged_file_is_an_error(tmp_path):
    path = tmp_path / "s.csv.gz"
    data = gzip.compress("".join(["t,n\n", *(f"{i},{i * 7919 % 10007}\n" for i in range(300_000))]).encode())
    path.write_bytes(data[:-9])
    with pytest.raises(RocsteadyError, match="is damaged"):
        played([path])
