"""Folders `key=value` as columns of events and labels, and files of one name, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.processes.command import call

MODELS = ("churn", "fraud")
DATES = ("2026-01-01", "2026-01-02")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def events(model, date):
    place = 10 * MODELS.index(model) + 100 * DATES.index(date)
    rows = [{"id": place + i, "score": (i * 7 + place) % 9 / 10, "label": i % 2} for i in range(8)]
    return pa.Table.from_pylist(rows)


def write(name, table):
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".csv":
        lines = [table.column_names, *([*map(str, row.values())] for row in table.to_pylist())]
        path.write_text("".join(",".join(line) + "\n" for line in lines))
    else:
        path.write_text("".join(f"{json.dumps(row)}\n" for row in table.to_pylist()))


def rows_of(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("source", ["data", "data/**/*", "data/model=*/date=*/part-0*"])
def test_folders_give_the_rows_that_columns_give(capsys, ending, source):
    flat = []
    for model in MODELS:
        for date in DATES:
            table = events(model, date)
            write(f"data/model={model}/date={date}/part-0{ending}", table)
            flat += [{**row, "model": model, "date": date} for row in table.to_pylist()]
    write("flat.csv", pa.Table.from_pylist(flat))
    options = ["--time", "date", "--id", "id", "--slice", "date"]
    for what, path in ((source, "ours.jsonl"), ("flat.csv", "flat.jsonl")):
        ran = call(capsys, "evaluate", what, *options, "--output", path)
        assert (ran.status, ran.counts[:3]) == (0, (32, 32, 0)), ran
    assert rows_of("ours.jsonl") == rows_of("flat.jsonl")
    assert {row["model"] for row in rows_of("ours.jsonl")} == {*MODELS}
    assert (
        call(capsys, "evaluate", source, *options, "--model", "model", "--output", "named.jsonl").status == 0
    )
    assert rows_of("named.jsonl") == rows_of("ours.jsonl")


def test_labels_take_columns_from_their_folders(capsys):
    for model in MODELS:
        write(f"data/model={model}/part-0.parquet", events(model, DATES[0]).drop_columns("label"))
    for date in DATES:
        for label in (0, 1):
            there = [row for model in MODELS for row in events(model, DATES[0]).to_pylist()]
            ids = [
                row["id"] for row in there if row["label"] == label and (row["id"] < 4) == (date == DATES[0])
            ]
            write(f"labels/seen={date}/label={label}/part-0.jsonl", pa.table({"id": ids}))
    options = "--id id --time id --labels labels --label-time seen --ttl 36500d --output rows.jsonl"
    ran = call(capsys, "evaluate", "data", *options.split())
    assert (ran.status, ran.counts[:3]) == (0, (16, 16, 0)), ran
    assert {row["model"]: row["positives"] for row in rows_of("rows.jsonl")} == {"churn": 4, "fraud": 4}


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ([], ("churn/scores.csv", "fraud/scores.csv")),
        ([], ("date=2026-01-01/part-0.parquet", "date=2026-01-02/part-0.parquet")),
        (["--pairs", "p.jsonl", "--champion", "m", "--id", "id"], ("churn/scores.csv", "fraud/scores.jsonl")),
        (["--labels", "fraud", "--id", "id", "--time", "id", "--ttl", "1d"], ("a/x.csv", "b/x.csv")),
    ],
)
def test_files_of_one_name_are_refused_before_the_job(capsys, options, names):
    for name in names:
        write(name, events("churn", DATES[0]))
    if "--labels" in options:
        write("fraud", events("churn", DATES[0]))
        Path("fraud").rename("labels.jsonl")
        options[1] = "labels.jsonl"
    ran = call(capsys, "evaluate", *names, *options, "--output", "rows.jsonl")
    assert ran.status == 2
    assert f"{names[0]} and {names[1]} have no column 'model', and have one name" in ran.lines[-1], ran
    assert "--model COL" in ran.lines[-1]
    assert "--model-name NAME" in ran.lines[-1]
    assert not Path("rows.jsonl").exists()


def test_files_of_one_name_are_one_model_where_a_name_is_given(capsys):
    for name in ("a/part-0.csv", "b/part-0.csv"):
        write(name, events("churn", DATES[0]))
    ran = call(capsys, "evaluate", "a/part-0.csv", "b/part-0.csv", "--model-name", "m", "--output", "o.jsonl")
    assert (ran.status, ran.counts[:3]) == (0, (16, 16, 0))


def test_a_value_that_contradicts_its_folder_fails_the_job(capsys):
    write("model=churn/x.parquet", events("churn", DATES[0]).append_column("model", pa.array(["fraud"] * 8)))
    ran = call(capsys, "evaluate", "model=churn/x.parquet", "--output", "rows.jsonl")
    assert ran.status == 1
    (line,) = ran.lines
    assert line == (
        "rocsteady: model=churn/x.parquet: record 0 has 'fraud' in the column 'model', and the folder "
        "model= of the file says 'churn'; move the file, or rename its column"
    )


def test_learners_take_the_columns_of_folders_as_features(capsys):
    for carrier in ("AA", "UA"):
        for month in (1, 2):
            write(
                f"data/carrier={carrier}/month={month}/x.csv",
                pa.table({"x": [1, 2] * 20, "label": [0, 1] * 20}),
            )
    ran = call(capsys, "prequential", "data", "--learner", "majority", "--output", "learned")
    assert ran.status == 0, ran
    assert "160 instances" in ran.lines[0], ran
