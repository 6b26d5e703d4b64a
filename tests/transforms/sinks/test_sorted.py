"""Writing: what is in a file is what was in the rows, whole or not at all, the same bytes each time."""

from __future__ import annotations

import csv
import gzip
import json
import math
import os
import stat
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.util import assert_that, equal_to
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import InputError
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.rows.arrow import ROW_SCHEMA, rows_to_arrow
from rocsteady.core.rows.columns import COLUMNS
from rocsteady.transforms.events.dead_letters import DEAD_LETTER_SCHEMA, DeadLetter, DeadLetters
from rocsteady.transforms.events.text import json_objects, rfc3339
from rocsteady.transforms.sinks.kinds import DEAD_LETTERS, ROWS
from rocsteady.transforms.sinks.open import SinkOptions, write_batches
from rocsteady.transforms.sinks.table import check_output, text_lines, write_table

from tests.support.stored.awkward_rows import some_rows
from tests.support.streams.url_files import url
from tests.support.thorough import examples


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


# Formats


def written(tmp_path, table, name):
    write_table(table, tmp_path / name)
    assert names(tmp_path) == [name]
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).unlink()
    return gzip.decompress(data) if name.endswith(".gz") else data


def table_of(rows):
    return pa.Table.from_batches([rows_to_arrow(rows)])


@pytest.mark.parametrize("name", ["r.csv", "r.csv.gz"])
def test_csv_is_read_back_cell_by_cell(tmp_path, name):
    rows = some_rows()
    text = written(tmp_path, table_of(rows), name).decode()
    assert text.startswith("model,slice,row,seq,time,")
    cells = list(csv.DictReader(text.splitlines(keepends=True)))
    assert [cell["slice"] for cell in cells] == [row.slice for row in rows]
    assert [cell["auc"] for cell in cells][1] == ""
    np.testing.assert_array_equal([float(cell["auc"] or "nan") for cell in cells], rows.number("auc"))
    assert cells[0]["ks_threshold"] == "inf"
    assert [cell["drift"] for cell in cells[:3]] == ["true", "false", ""]
    assert [cell["time"] for cell in cells[:3]] == ["2013-01-01T00:26:40Z", "", "2013-01-01T00:26:40.000002Z"]
    assert "nan" not in text


@pytest.mark.parametrize("name", ["r.jsonl", "r.jsonl.gz"])
def test_json_lines_are_read_back(tmp_path, name):
    rows = some_rows()
    text = written(tmp_path, table_of(rows), name).decode()
    records = [json.loads(line) for line in text.splitlines()]
    assert [tuple(record) for record in records] == [COLUMNS] * len(rows)
    assert [record["slice"] for record in records] == [row.slice for row in rows]
    assert [record["auc"] for record in records] == [row.auc for row in rows]
    assert records[0]["ks_threshold"] == math.inf
    assert "1e999" in text
    assert records[0]["time"] == "2013-01-01T00:26:40Z"
    assert records[1]["time"] is None
    assert records[0]["drift"] is True


def test_parquet_keeps_types_and_nulls(tmp_path):
    table = table_of(some_rows())
    write_table(table, tmp_path / "r.parquet")
    assert pq.read_table(tmp_path / "r.parquet").equals(table)


def test_nan_is_never_written(tmp_path):
    table = pa.table({"x": [math.nan, 1.0], "model": ["a", None]})
    assert written(tmp_path, table, "t.csv").decode().splitlines()[1].startswith(",")
    assert json.loads(written(tmp_path, table, "t.jsonl").splitlines()[0])["x"] is None
    write_table(table, tmp_path / "t.parquet")
    assert pq.read_table(tmp_path / "t.parquet")["x"].to_pylist() == [None, 1.0]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.jsonl.gz", "t.parquet"])
def test_the_same_table_gives_the_same_bytes(tmp_path, name):
    write_table(table_of(some_rows()), tmp_path / name)
    first = (tmp_path / name).read_bytes()
    write_table(table_of(some_rows()), tmp_path / name)
    assert (tmp_path / name).read_bytes() == first


def test_no_rows_leave_the_header(tmp_path):
    empty = ROW_SCHEMA.empty_table()
    assert written(tmp_path, empty, "e.csv").decode() == ",".join(COLUMNS) + "\n"
    assert written(tmp_path, empty, "e.jsonl") == b""
    write_table(empty, tmp_path / "e.parquet")
    assert pq.read_schema(tmp_path / "e.parquet").equals(ROW_SCHEMA)


def cell(value):
    """Write one value as JSON, by itself."""
    if isinstance(value, float):
        text = pa.scalar(value).cast(pa.string()).as_py()  # Arrow's shortest form
        return {"nan": "null", "inf": "1e999", "-inf": "-1e999"}.get(text, text)
    if isinstance(value, datetime):
        value = f"{value.replace(tzinfo=None).isoformat()}Z"
    return json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("n", [0, 1, 2, 50])
def test_columns_written_together_are_what_each_value_is_by_itself(n):
    rng = np.random.default_rng(n)
    rows = some_rows(n + 2, seed=n)
    rows.numbers[:, 5:9] = [math.nan, math.inf, -0.0, 1e-7]
    rows.numbers[:, 9:] = rng.integers(-(2**63), 2**63 - 1, (n + 2, rows.numbers.shape[1] - 9)).view("f8")
    rows.integers[:, 3:] = rng.integers(-(10**16), 10**17, (n + 2, 6))
    rows.integers[::2, 4:6] = NO_TIME
    batch = rows_to_arrow(rows[2:])
    assert json_objects(batch, "number").to_pylist() == [
        f"{{{', '.join(f'{cell(name)}: {cell(value)}' for name, value in row.items())}}}"
        for row in batch.to_pylist()
    ]


@settings(max_examples=examples(100))
@given(
    st.lists(
        st.tuples(st.none() | st.text(max_size=5), st.none() | st.floats(), st.none() | st.booleans()),
        min_size=1,
    )
)
def test_json_says_what_the_columns_say(rows):
    texts, numbers, truths = zip(*rows, strict=True)
    kinds = {'a"': (texts, pa.string()), "b": (numbers, pa.float64()), "c": (truths, pa.bool_())}
    batch = pa.record_batch({name: pa.array(values, kind) for name, (values, kind) in kinds.items()})
    for (a, b, c), line in zip(rows, json_objects(batch, "number").to_pylist(), strict=True):
        assert json.loads(line) == {'a"': a, "b": None if b is None or math.isnan(b) else b, "c": c}
    for (_, b, _), line in zip(rows, json_objects(batch).to_pylist(), strict=True):
        assert json.loads(line)["b"] == (b if b is None or math.isfinite(b) else str(b))
    assert b"".join(text_lines(pa.Table.from_batches([batch]), as_csv=False)).count(b"\n") >= len(rows)


def test_times_are_rfc3339_over_all_years():
    micros = [0, 1, -1, 999_999, -62_135_596_800_000_000, 253_402_300_799_999_999, None]
    assert rfc3339(pa.array(micros, pa.timestamp("us", "UTC"))).to_pylist() == [
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:00:00.000001Z",
        "1969-12-31T23:59:59.999999Z",
        "1970-01-01T00:00:00.999999Z",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999Z",
        None,
    ]


# Whole, or not at all


class BrokenError(Exception):
    pass


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet", "t.csv.gz"])
def test_a_failure_leaves_nothing_behind(tmp_path, name):
    (tmp_path / name).mkdir()  # the rename fails, after everything was written
    with pytest.raises(OSError, match=name):
        write_table(pa.table({"x": [1]}), tmp_path / name)
    assert names(tmp_path) == [name]


def test_a_failure_keeps_what_was_there(tmp_path):
    (tmp_path / "t.csv").write_text("before")
    with pytest.raises(pa.ArrowInvalid):
        write_table(pa.table({"x": [{"y": 1}]}), tmp_path / "t.csv")
    with pytest.raises(InputError, match="is not known"):
        write_table(pa.table({"x": [1]}), tmp_path / "t.txt")
    assert names(tmp_path) == ["t.csv"]
    assert (tmp_path / "t.csv").read_text() == "before"


def test_a_file_keeps_its_permissions_when_it_is_replaced(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("before")
    path.chmod(0o640)
    write_table(pa.table({"x": [1]}), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.read_text() == "x\n1\n"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("rows.txt", "ending that is not known; use .parquet, .csv"),
        ("rows", "ending that is not known"),
        ("rows.parquet.gz", "ending that is not known"),
        ("folder.csv", "is a folder; name a file in it"),
        ("none/rows.csv", "does not exist; create it"),
        ("file.csv/rows.csv", "is not a folder"),
    ],
)
def test_an_output_that_cannot_be_is_named_before_the_job(tmp_path, path, message):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file.csv").write_text("x")
    with pytest.raises(InputError, match=message):
        check_output(tmp_path / path)
    check_output(tmp_path / "file.csv")
    check_output(tmp_path / "new.jsonl.gz")
    assert names(tmp_path) == ["file.csv", "folder.csv"]


def test_a_pipe_or_a_device_is_no_output(tmp_path):
    os.mkfifo(tmp_path / "rows.csv")
    (tmp_path / "null.csv").symlink_to(os.devnull)
    for name in ("rows.csv", "null.csv"):
        with pytest.raises(InputError, match=f"{name}' is a pipe or a device; name a regular file"):
            check_output(tmp_path / name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere: run as another user")
def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="cannot be written to"):
        check_output(tmp_path / "rows.csv")


def test_a_folder_of_the_kernel_cannot_be_written_to():
    if not Path("/proc/self").is_dir():
        pytest.skip("there is no /proc here: run on Linux")
    with pytest.raises(InputError, match="cannot be written to"):
        check_output("/proc/self/rows.csv")


# The transforms


def pieces(batch, cuts):
    bounds = [0, *sorted(cuts), batch.num_rows]
    return [batch.slice(a, b - a) for a, b in pairwise(bounds)]


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_rows_are_sorted_and_the_same_however_they_were_cut(tmp_path, ending):
    batch = rows_to_arrow(some_rows(50))
    for name, parts in (("a", pieces(batch, [7, 20])), ("b", pieces(batch, [1, 1, 49])[::-1])):
        path = str(tmp_path / f"{name}.{ending}")
        with beam.Pipeline("FnApiRunner") as pipeline:
            paths = pipeline | beam.Create(parts) | write_batches(str(path), ROWS, SinkOptions())
            assert_that(paths, equal_to([path]))
    assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()
    if ending == "parquet":
        table = pq.read_table(tmp_path / "a.parquet")
        order = list(zip(*(table[name].to_pylist() for name in ("model", "slice", "row")), strict=True))
        assert order == sorted(order)
        assert len(order) == 50
    assert len(names(tmp_path)) == 2


def test_a_job_without_rows_writes_an_empty_table(tmp_path):
    with beam.Pipeline("FnApiRunner") as pipeline:
        nothing = pipeline | beam.Create([], reshuffle=False)
        nothing | "rows" >> write_batches(str(tmp_path / "rows.csv"), ROWS, SinkOptions())  # type: ignore[expression-value]
        nothing | "letters" >> write_batches(str(tmp_path / "letters.parquet"), DEAD_LETTERS, SinkOptions())
    assert (tmp_path / "rows.csv").read_text() == ",".join(COLUMNS) + "\n"
    assert pq.read_table(tmp_path / "letters.parquet").schema.equals(DEAD_LETTER_SCHEMA)


def test_dead_letters_are_sorted_by_source_and_position(tmp_path):
    letters = DeadLetters.of(
        [
            DeadLetter("invalid", "r", "b.csv", 2),
            DeadLetter("invalid", "r", "a.csv", None),
            DeadLetter("late", "r", "a.csv", 10, 1_500_000, "m", "i", '{"x": "a,b"}'),
            DeadLetter("invalid", "r", "a.csv", 9),
        ]
    )
    with beam.Pipeline("FnApiRunner") as pipeline:
        (
            pipeline
            | beam.Create(pieces(letters.batch, [1, 2]))
            | write_batches(str(tmp_path / "d.csv"), DEAD_LETTERS, SinkOptions())
        )
    with (tmp_path / "d.csv").open(newline="") as file:
        cells = list(csv.DictReader(file))
    assert [(cell["source"], cell["position"]) for cell in cells] == [
        ("a.csv", "9"),
        ("a.csv", "10"),
        ("a.csv", ""),
        ("b.csv", "2"),
    ]
    assert cells[1]["time"] == "1970-01-01T00:00:01.500000Z"
    assert cells[1]["raw"] == '{"x": "a,b"}'


def test_a_failed_job_leaves_no_output(tmp_path):
    def fail(batch):
        raise BrokenError

    with pytest.raises(Exception, match="BrokenError"), beam.Pipeline("FnApiRunner") as pipeline:
        (
            pipeline
            | beam.Create([rows_to_arrow(some_rows())])
            | beam.Map(fail)
            | write_batches(str(tmp_path / "rows.csv"), ROWS, SinkOptions())
        )
    assert names(tmp_path) == []


def test_urls_are_written_through_the_filesystem_and_renamed(tmp_path):
    table = table_of(some_rows())
    check_output(url(tmp_path / "rows.csv"))
    write_table(table, url(tmp_path / "rows.csv"))
    write_table(table, tmp_path / "same.csv")
    assert (tmp_path / "rows.csv").read_bytes() == (tmp_path / "same.csv").read_bytes()
    with pytest.raises(pa.ArrowInvalid):
        write_table(pa.table({"x": [{"y": 1}]}), url(tmp_path / "bad.csv"))
    assert names(tmp_path) == ["rows.csv", "same.csv"]


def test_a_url_that_no_filesystem_serves_is_named_before_the_job():
    with pytest.raises(InputError, match=r"nowhere://bucket/rows.csv.*cannot be written"):
        check_output("nowhere://bucket/rows.csv")
