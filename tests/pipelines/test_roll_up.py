"""`rocsteady roll-up` and `rs.roll_up`: roll-up rows of rows that are there, as files, frames and objects."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import rocsteady as rs
from rocsteady.core.errors import ConfigError, InputError
from rocsteady.core.fleet.roll_up_settings import RollUpSettings
from rocsteady.core.rows.roll_ups import RollUpRow

from tests.support.oracles.roll_ups import roll_ups
from tests.support.processes.command import call
from tests.support.streams.roll_up_events import some_events

EVERY = {"time": "time", "window": "last:400", "every": "1h", "slices": ["c"]}


@pytest.fixture(scope="module")
def result():
    return rs.evaluate(some_events(), **EVERY)


@pytest.fixture
def rows(result, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(result.rows, "rows.parquet")
    return result.rows


def test_every_form_of_rows_gives_the_same_roll_ups(result, rows):
    found = rs.roll_up(result, by=["models", "slices", "t/*"])
    expected = roll_ups(rs.read_rows("rows.parquet"), RollUpSettings(("models", "slices", "t/*")))
    assert [(row["group"], row["row"], row["members"]) for row in found.to_pylist()] == [
        (row["group"], row["row"], row["members"]) for row in expected
    ]
    assert {row["group"]: row["members"] for row in expected} == {
        "models": 3, "t/*": 2, "model=t/a,slice=c": 2, "model=t/b,slice=c": 2, "model=u,slice=c": 2
    }  # fmt: skip
    by = {"by": ["models", "slices", "t/*"]}
    records = [*rs.read_rows("rows.parquet")]
    for given in (rows, "rows.parquet", ["rows.parquet"], records, rows.to_batches()[0]):
        assert rs.roll_up(given, **by).equals(found)
    frame = pl.DataFrame(rows)
    for given in (frame, frame.lazy()):
        assert rs.roll_up(given, **by).to_arrow().cast(found.schema).equals(found)
    of_pandas = rs.roll_up(rows.to_pandas(), **by)
    assert isinstance(of_pandas, pd.DataFrame)
    assert of_pandas.auc_mean.equals(found.column("auc_mean").to_pandas())
    of_result = rs.roll_up(rs.evaluate(pl.DataFrame(some_events()), **EVERY))
    assert isinstance(of_result, pl.DataFrame)


def test_rows_in_columns_of_an_evaluator_are_rolled_up():
    parts = []
    for model in "ab":
        evaluator = rs.ModelEvaluator(model=model, every=rs.EverySeconds("1m"))
        labels = np.arange(300) % 2
        times = np.arange(300).astype("datetime64[s]")
        parts.append(evaluator.update(labels, np.sin(np.arange(300)) + labels, times=times))
    found = rs.roll_up(rs.Rows.concat(parts))
    assert found.column("members").to_pylist() == [0, 2, 2, 2, 2]
    assert found.column("members_without").to_pylist() == [2, 0, 0, 0, 0]
    assert sorted(found.schema.names) == sorted(name.rstrip("_") for name in RollUpRow._fields)


def test_the_command_writes_what_python_returns(result, rows, capsys):
    ran = call(capsys, "roll-up", "rows.parquet", "--by", "models", "--by", "t/*", "-o", "found.parquet")
    assert ran.status == 0
    assert ran.lines[0].startswith(
        f"rocsteady: 17 roll-up rows of 2 groups in found.parquet, from {rows.num_rows} "
    )
    assert pq.read_table("found.parquet").equals(rs.roll_up(result, by=("models", "t/*")))
    for name in ("found.csv", "found.jsonl"):
        assert call(capsys, "roll-up", "rows.parquet", "--dependent", "--stale", "0", "-o", name).status == 0
    [line, *_] = Path("found.jsonl").read_text().splitlines()
    assert '"intervals": "dependent"' in line


def test_groups_of_no_row_are_told_of(rows, capsys):
    ran = call(capsys, "roll-up", "rows.parquet", "--by", "none/*", "-o", "found.parquet")
    assert ran.status == 0
    assert pq.read_table("found.parquet").num_rows == 0
    assert ran.lines[1] == (
        "rocsteady: there are no roll-up rows: no row on the grid of times belongs to none/*"
    )


def test_the_level_of_intervals_comes_from_the_file(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(some_events(), "events.parquet")
    options = ["--time", "time", "--every", "1h", "--confidence", "0.8"]
    assert call(capsys, "evaluate", "events.parquet", *options, "--output", "rows.parquet").status == 0
    assert call(capsys, "roll-up", "rows.parquet", "-o", "found.parquet").status == 0
    found = pq.read_table("found.parquet")
    assert found.equals(rs.roll_up("rows.parquet"))
    assert found.equals(rs.roll_up(rs.evaluate(some_events(), time="time", every="1h", confidence=0.8)))
    assert not found.equals(rs.roll_up(pq.read_table("rows.parquet")))
    ran = call(capsys, "roll-up", "rows.parquet", "--confidence", "0.9", "-o", "found.parquet")
    assert ran.status == 2
    assert "different levels, 0.8 and 0.9" in ran.lines[0]


REFUSED = [
    (["--by", "model"], "did you mean 'models'?"),
    (["--by", "churn"], "is no pattern"),
    (["--stale", "soon"], "--stale soon: 'soon' is no duration"),
    (["--confidence", "2"], "give a level between 0 and 1"),
    (["--output", "-"], "name a file"),
    (["--output", "rows.parquet"], "is also an input"),
    (["--csv-safe"], "no output is CSV"),
]


@pytest.mark.parametrize(("options", "said"), REFUSED)
def test_other_arguments_are_refused_before_any_work(rows, capsys, options, said):
    output = [] if "--output" in options else ["-o", "found.parquet"]
    ran = call(capsys, "roll-up", "rows.parquet", *options, *output)
    assert ran.status == 2
    assert len(ran.lines) == 1
    assert said in ran.lines[0]


def test_rows_that_cannot_be_rolled_up_are_refused_in_a_sentence(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counted = rs.evaluate(some_events(), every=100)
    with pytest.raises(InputError, match=r"none of 62 rows has a grid point in 'due'.*--every 1h"):
        rs.roll_up(counted)
    pq.write_table(counted.rows, "counted.parquet")
    ran = call(capsys, "roll-up", "counted.parquet", "-o", "found.parquet")
    assert (ran.status, len(ran.lines)) == (2, 1)
    other = rs.evaluate(
        some_events().set_column(0, "model", pa.array(["v"] * 6_000)), **(EVERY | {"every": "2h"})
    )
    both = pa.concat_tables([rs.evaluate(some_events(), **EVERY).rows, other.rows])
    with pytest.raises(InputError, match="'models' has rows of different windows, grids or other settings"):
        rs.roll_up(both)
    for given, said in (
        (7, "'int', which is no rows"),
        (pa.table({"model": ["a"]}), "no column 'auc'"),
        (
            both.set_column(both.schema.get_field_index("auc"), "auc", pa.array([7.0] * len(both))),
            "beyond 0 and 1",
        ),
        (
            both.set_column(both.schema.get_field_index("auc"), "auc", pa.array(["x"] * len(both))),
            "holds string",
        ),
    ):
        with pytest.raises(InputError, match=said):
            rs.roll_up(given)
    with pytest.raises(ConfigError, match="is no duration"):
        rs.roll_up(both, stale="x")


def test_no_rows_give_no_roll_ups():
    assert rs.roll_up([]).num_rows == 0
    assert rs.roll_up(rs.Rows.empty()).num_rows == 0
