"""`--roll-up` with class scores: the roll-ups of the rows, the same on every engine, in every cut."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import apache_beam as beam
import numpy as np
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import rocsteady as rs
from rocsteady.core.rows.class_rows import ClassRow
from rocsteady.pipelines.frames.given import given_table
from rocsteady.transforms.sinks.kinds import ROLL_UP_SCHEMA
from rocsteady.transforms.tables.read import read_tables

from tests.support.processes.beam_runs import InOrder, Keep, kept, pipeline, shuffled
from tests.support.processes.command import call
from tests.support.processes.killed_job import run_live

N = 2_400
NAMES = ("cat", "country=AR", "owl|x")
FIRST = 1_700_000_000
CLASSES = (
    "--class-scores", "0=s_0,1=s_1,2=s_2", "--label", "y", "--time", "sent", "--slice", "country",
    "--window", "last:300", "--every", "4h",
)  # fmt: skip
GROUPS = ("--roll-up", "models", "--roll-up", "slices")


def columns():
    rng = np.random.default_rng(4)
    label, model = rng.integers(0, 3, N), np.arange(N) % 3
    scores = (rng.random((N, 3)) + (0.2 + 0.2 * model)[:, None] * np.eye(3)[label]).round(3)
    return pa.table(
        {
            "model": [f"m{number}" for number in model],
            "sent": FIRST + np.arange(N) * 60,
            **{f"s_{place}": scores[:, place] for place in range(3)},
            "y": label,
            "country": rng.choice(["AR", "DE"], N),
        }
    )


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pa.csv.write_csv(columns(), "s.csv")


def evaluated(capsys, *words, roll_ups="g.parquet"):
    ran = call(
        capsys,
        "evaluate",
        "s.csv",
        *CLASSES,
        *GROUPS,
        *words,
        "--output",
        "r.parquet",
        "--roll-ups",
        roll_ups,
    )
    assert ran.status == 0, ran
    return pq.read_table(roll_ups) if roll_ups.endswith(".parquet") else None


def test_the_roll_ups_of_a_job_are_those_of_its_rows(capsys):
    table = evaluated(capsys)
    assert table.schema.equals(ROLL_UP_SCHEMA)
    assert {*table["class"].to_pylist()} == {None, "0", "1", "2"}
    assert {*table["group"].to_pylist()} == {
        "models",
        *(f"model=m{number},slice=country" for number in range(3)),
    }
    words = ("roll-up", "r.parquet", "--by", "models", "--by", "slices", "-o", "again.parquet")
    assert call(capsys, *words).status == 0
    assert pq.read_table("again.parquet").equals(table)
    rows = [*rs.read_rows("r.parquet")]
    assert rs.roll_up(rows, by=["models", "slices"]).equals(table)
    assert rs.roll_up("r.parquet", by=["models", "slices"]).equals(table)
    frame = rs.evaluate(
        polars.from_arrow(columns()), class_scores={"0": "s_0", "1": "s_1", "2": "s_2"}, label="y",
        time="sent", slices="country", window="last:300", every="4h",
    )  # fmt: skip
    found = rs.roll_up(frame, by=["models", "slices"])
    assert isinstance(found, polars.DataFrame)
    assert found["auc_mean"].to_list() == table["auc_mean"].to_pylist()


def test_a_rule_on_all_classes_watches_a_job_that_also_makes_roll_ups(capsys):
    watch = ("--alert", "auc_macro < 0.9", "--alert", "auc_m < 0.7", "--alerts")
    evaluated(capsys, *watch, "with.csv")
    alone = ("evaluate", "s.csv", *CLASSES, *watch, "alone.csv", "--output", "alone.parquet")
    assert call(capsys, *alone).status == 0
    assert Path("with.csv").read_bytes() == Path("alone.csv").read_bytes()
    opened = pa.csv.read_csv("with.csv").to_pydict()
    assert {*opened["column"]} == {"auc_macro", "auc_m"}


@pytest.mark.parametrize(
    "engine",
    [
        ("--shards", "3", "--cache-bytes", "0"),
        ("--runner=PortableRunner", "--job_endpoint=embed", "--environment_type=LOOPBACK"),
    ],
)
def test_the_same_bytes_come_from_every_engine(capsys, engine):
    evaluated(capsys)
    evaluated(capsys, *engine, roll_ups="other.parquet")
    assert Path("other.parquet").read_bytes() == Path("g.parquet").read_bytes()


@pytest.mark.skipif(os.name != "posix", reason="checkpoints of live jobs")
def test_a_stream_that_is_killed_at_any_read_writes_each_roll_up_and_alert_once():
    folder = Path("arriving")
    folder.mkdir()
    lines = [json.dumps(event) + "\n" for event in columns().to_pylist()]
    (folder / "a.jsonl").write_text("".join(lines[:900]))
    (folder / "b.jsonl").write_text("".join(lines[900:]))
    (folder / "_END").touch()
    of_class = "worst_p < 0.5 where class like '*' and group = 'models'"
    words = (
        "arriving", "--follow", *CLASSES, *GROUPS, "--alert", "auc_mean < 0.8", "--alert", of_class,
        "--output", "r.jsonl", "--roll-ups", "g.jsonl", "--alerts", "a.jsonl", "--checkpoint", "kept",
    )  # fmt: skip

    def ran(every, kill_at=None):
        return run_live((*words, "--checkpoint-every", every), 500, kill_at)

    status, reads = ran("1h")
    assert (status, reads > 3) == (0, True)
    expected = sorted(Path("g.jsonl").read_text().splitlines())
    again = rs.roll_up("r.jsonl", by=["models", "slices"])
    told = sorted(str(json.loads(line)["auc_median"]) for line in expected)
    assert told == sorted(map(str, again["auc_median"].to_pylist()))
    alerts = sorted(Path("a.jsonl").read_text().splitlines())
    assert {json.loads(line)["class"] for line in alerts} > {"0"}
    for kill_at in range(1, reads):
        shutil.rmtree("kept")
        for name in ("r.jsonl", "g.jsonl", "a.jsonl"):
            Path(name).unlink()
        assert ran("0s", kill_at)[0] is None
        assert ran("1h")[0] == 0
        assert sorted(Path("g.jsonl").read_text().splitlines()) == expected
        assert sorted(Path("a.jsonl").read_text().splitlines()) == alerts


def test_a_page_shows_the_roll_ups_of_all_classes(capsys):
    table = evaluated(capsys)
    wanted = [row["auc_mean"] for row in table.to_pylist() if row["class"] is None]
    for path in ("g.parquet", "g.csv", "g.jsonl"):
        evaluated(capsys, roll_ups=path)
        read, _ = read_tables([path], "roll-ups")
        assert read.schema.names == ROLL_UP_SCHEMA.names
        assert read["auc_mean"].to_pylist() == wanted
    for given in (table, polars.from_arrow(table)):
        assert given_table(given, "roll-ups")["auc_mean"].to_pylist() == wanted


def test_models_with_one_score_have_no_groups_of_a_class(capsys):
    plain = ("--score", "s_0", "--label", "y", "--positive", "0", "--time", "sent", "--every", "4h")
    rule = "auc_mean < 0.8 where class = 'cat'"
    ran = call(
        capsys, "evaluate", "s.csv", *plain, "--roll-up", "models", "--alert", rule, "--output", "r.csv"
    )
    assert ran.status == 2
    assert "only models with a score of each class have groups of a class" in ran.lines[-1]


def test_a_pipeline_gives_the_roll_ups_of_a_list_of_rows(tmp_path):
    table = columns()
    scores = np.stack([table[f"s_{place}"].to_numpy() for place in range(3)], axis=1)
    rows = []
    for model in range(3):
        there = np.arange(N) % 3 == model
        evaluator = rs.MulticlassEvaluator(
            NAMES, window=rs.LastEvents(200), every=rs.EverySeconds("4h"), model=f"m{model}"
        )
        label = np.array(NAMES)[table["y"].to_numpy()[there]]
        rows += evaluator.update(label, scores[there], times=table["sent"].to_numpy()[there])
    expected = rs.roll_up(rows).to_pylist()
    with pipeline() as p:
        rolled = p | InOrder(shuffled(rows), ClassRow) | rs.RollUp(by="models")
        _ = rolled | Keep(tmp_path, "rolled")
        alerts = rolled | rs.Alert("auc_mean < 2 where class = 'country=AR'")
        _ = alerts | beam.Map(lambda alert: alert) | Keep(tmp_path, "alerts")
    found = [rs.RollUpRow(*row.value) for row in kept(tmp_path, "rolled")]
    found.sort(key=lambda row: (row.row, str(row.class_)))
    assert [(row.group, row.class_, row.auc_mean) for row in found] == [
        (row["group"], row["class"], row["auc_mean"])
        for row in sorted(expected, key=lambda row: (row["row"], str(row["class"])))
    ]
    [alert] = [rs.AlertRow(*each.value) for each in kept(tmp_path, "alerts")]
    assert (alert.model, alert.class_) == ("models", "country=AR")
