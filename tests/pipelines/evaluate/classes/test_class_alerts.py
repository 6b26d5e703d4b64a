"""`--alert` with class scores: the alerts of the rows, the same on every engine, in every format and cut."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import rocsteady as rs
from rocsteady.core.alerts.table import AlertTable
from rocsteady.core.rows.arrow import rows_to_arrow
from rocsteady.core.rows.class_rows import ClassRow
from rocsteady.transforms.events.dead_letters import in_columns
from rocsteady.transforms.sinks.kinds import ALERTS, sorted_table
from rocsteady.transforms.yaml_transforms import AlertYaml

from tests.support.processes.beam_runs import InOrder, Keep, kept, pipeline, shuffled
from tests.support.processes.command import call, run
from tests.support.processes.killed_job import run_live
from tests.support.requirements import servers

N = 2_400
NAMES = ("cat", "country=AR", 'owl, "o"|x')
"""The second is spelled like a slice."""
FIRST = 1_700_000_000
RULES = (
    "auc_macro drops by 0.05 against 3 rows",
    "auc_m_high < 0.75 for 2 rows until auc_m > 0.8",
    "auc_high < 0.7",
    "kappa < 0.2",
    "accuracy < 0.6 where class = 'country=AR' and slice = ''",
    "positives < 60 at most 4 a day",
)
HOW = (
    "--class-scores", "p_*", "--label", "y", "--time", "sent", "--slice", "country", "--window", "last:200",
    "--every", "80",
)  # fmt: skip


def columns():
    """Events of two models, which rank worse in the last third."""
    rng = np.random.default_rng(4)
    label = rng.integers(0, 3, N)
    better = np.where(np.arange(N) < 1_600, 0.6, 0.1)[:, None]
    scores = (rng.random((N, 3)) + better * np.eye(3)[label]).round(3)
    return pa.table(
        {
            "model": [f"m{number % 2}" for number in range(N)],
            "sent": FIRST + np.arange(N) * 60,
            **{f"p_{name}": scores[:, place] for place, name in enumerate(NAMES)},
            "y": np.array(NAMES)[label],
            "country": np.array(["AR", "DE"])[np.arange(N) // 2 % 2],
        }
    )


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pa.csv.write_csv(columns(), "s.csv")


def flags(rules=RULES):
    return [word for rule in rules for word in ("--alert", rule)]


def of_rows(rows, rules=RULES):
    """The alerts of rows, in the order of a file."""
    alerts = AlertTable([rs.parse_alert(rule) for rule in rules]).watch(rows)
    table = pa.Table.from_batches([in_columns(alerts, ALERTS.schema)])
    return sorted_table(table.to_batches(), ALERTS.schema, ALERTS.order)


def evaluated(capsys, *words, source="s.csv", alerts="a.parquet"):
    outputs = ("--output", "r.parquet", "--alerts", alerts)
    ran = call(capsys, "evaluate", source, *HOW, *flags(), *words, *outputs)
    assert ran.status == 0, ran
    return ran


def test_the_file_holds_the_alerts_of_the_rows(capsys):
    ran = evaluated(capsys)
    table = pq.read_table("a.parquet")
    assert table.schema.equals(ALERTS.schema)
    assert table.column_names[2:5] == ["model", "slice", "class"]
    assert table.equals(of_rows(list(rs.read_rows("r.parquet"))))
    found = table.to_pylist()
    assert {alert["rule"] for alert in found} == {str(rs.parse_alert(rule)) for rule in RULES}
    assert {alert["class"] for alert in found} == {None, *NAMES}
    opened = sum(alert["state"] == "open" for alert in found)
    assert any(line.startswith(f"rocsteady: {opened} alerts opened, ") for line in ran.lines)


def test_every_format_says_the_same_and_so_does_every_cut_of_the_input(capsys):
    evaluated(capsys)
    wanted = pq.read_table("a.parquet")
    table = columns()
    for number, (begin, end) in enumerate(((0, 1), (1, 900), (900, N))):
        pa.csv.write_csv(table.slice(begin, end - begin), f"part-{number}.csv")
    evaluated(capsys, "--shards", "2", source="part-*.csv", alerts="a.jsonl")
    lines = [json.loads(line) for line in Path("a.jsonl").read_text().splitlines()]
    assert [line["message"] for line in lines] == wanted["message"].to_pylist()
    assert [line["class"] for line in lines] == wanted["class"].to_pylist()
    evaluated(capsys, alerts="a.csv")
    again = pa.csv.read_csv("a.csv")
    assert again.column_names == wanted.column_names
    assert [name or None for name in again["class"].to_pylist()] == wanted["class"].to_pylist()


ENGINES = {
    "no cache": ["--shards", "3", "--cache-bytes", "0"],
    "embedded": ["--runner=PortableRunner", "--job_endpoint=embed", "--environment_type=LOOPBACK"],
    "bundles": ["--runner", "BundleBasedDirectRunner", "--shards", "1"],
}


@pytest.mark.parametrize("engine", ["no cache", "embedded", pytest.param("bundles", marks=pytest.mark.slow)])
def test_the_same_bytes_come_from_every_engine(capsys, engine):
    evaluated(capsys)
    bytes_ = Path("a.parquet").read_bytes()
    evaluated(capsys, *ENGINES[engine], alerts="other.parquet")
    assert Path("other.parquet").read_bytes() == bytes_


@pytest.mark.slow
def test_prism_gives_the_same_alerts(capsys):
    servers("prism")
    evaluated(capsys)
    wanted = Path("a.parquet").read_bytes()
    words = ("evaluate", "s.csv", *HOW, *flags(), "--output", "p.parquet", "--alerts", "p-alerts.parquet")
    ran = run(*words, "--runner=prism", patience=240)
    assert ran.status == 0, ran
    assert Path("p-alerts.parquet").read_bytes() == wanted


@pytest.mark.skipif(os.name != "posix", reason="checkpoints of live jobs")
def test_a_stream_that_is_killed_at_any_read_tells_each_alert_and_no_other():
    table = columns().rename_columns({f"p_{name}": f"s_{place}" for place, name in enumerate(NAMES)})
    numbers = [NAMES.index(name) for name in table["y"].to_pylist()]
    table = table.drop_columns("y").append_column("y", pa.array(numbers))
    folder = Path("arriving")
    folder.mkdir()
    lines = [json.dumps(event) + "\n" for event in table.to_pylist()]
    (folder / "a.jsonl").write_text("".join(lines[:900]))
    (folder / "b.jsonl").write_text("".join(lines[900:]))
    (folder / "_END").touch()
    rules = [rule for rule in RULES if "country=AR" not in rule]
    words = (
        "arriving", "--follow", "--class-scores", "0=s_0,1=s_1,2=s_2", *HOW[2:], *flags(rules),
        "--output", "r.jsonl", "--alerts", "a.jsonl", "--checkpoint", "kept",
    )  # fmt: skip

    def ran(every, kill_at=None):
        return run_live((*words, "--checkpoint-every", every), 400, kill_at)

    status, reads = ran("1h")
    assert (status, reads > 3) == (0, True)
    wanted = Path("a.jsonl").read_text().splitlines()
    rows = list(rs.read_rows("r.jsonl"))
    assert sorted(json.loads(line)["message"] for line in wanted) == sorted(
        of_rows(rows, rules)["message"].to_pylist()
    )
    for kill_at in range(1, reads):
        shutil.rmtree("kept")
        Path("r.jsonl").unlink()
        Path("a.jsonl").unlink()
        assert ran("0s", kill_at)[0] is None
        assert ran("1h")[0] == 0
        assert sorted(Path("a.jsonl").read_text().splitlines()) == sorted(wanted)


def test_commands_are_called_with_the_class_of_each_alert(capsys):
    Path("take.sh").write_text("cat >> got.jsonl\n")
    evaluated(capsys, "--alert-exec", "/bin/sh take.sh")
    got = [json.loads(line) for line in Path("got.jsonl").read_text().splitlines()]
    wanted = pq.read_table("a.parquet")
    told = sorted((each["class"] or "", each["message"]) for each in got)
    names = [name or "" for name in wanted["class"].to_pylist()]
    assert told == sorted(zip(names, wanted["message"].to_pylist(), strict=True))


REFUSED = {
    "auc < 0.5 where class = 'cow'": "the classes are 'cat', 'country=AR', 'owl, \"o\"|x', and",
    "kappa < 0 where class like 'c*' and class not like 'c*'": "and 'where' covers none of them",
    "brier < 0.5": "brier is not computed; it needs scores that are probabilities",
    "drift > 0": "only an adaptive window has a drift",
}


@pytest.mark.parametrize("rule", REFUSED)
def test_a_rule_that_no_row_could_satisfy_is_refused(capsys, rule):
    ran = call(capsys, "evaluate", "s.csv", *HOW, "--alert", rule, "--output", "r.csv")
    assert ran.status == 2
    assert REFUSED[rule] in ran.lines[-1]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("auc_macro < 0.5", "only models with a score of each class have 'auc_macro'; name the scores with"),
        ("kappa < 0 where class = 'cat'", "only models with a score of each class have 'where class'"),
    ],
)
def test_models_with_one_score_have_no_rules_on_classes(capsys, rule, said):
    pa.csv.write_csv(pa.table({"score": [0.1, 0.9], "label": [0, 1]}), "plain.csv")
    ran = call(capsys, "evaluate", "plain.csv", "--alert", rule, "--output", "r.csv")
    assert ran.status == 2
    assert said in ran.lines[-1]


def test_with_several_labels_decisions_are_of_each_class(capsys):
    table = columns()
    for place, name in enumerate(NAMES):
        table = table.append_column(f"y_{name}", pa.array(np.arange(N) % (place + 2) == 0))
    pq.write_table(table, "m.parquet")
    several = ("--class-scores", "p_*", "--multi-label", "y_*", "--window", "last:200", "--every", "80")
    for rule, said in (
        ("kappa < 0.5", "kappa is of each class; write where class like '*' for all of them"),
        ("auc_m < 0.5", "there are no pairs of classes; take auc_macro"),
    ):
        ran = call(capsys, "evaluate", "m.parquet", *several, "--alert", rule, "--output", "r.csv")
        assert ran.status == 2
        assert said in ran.lines[-1]
    rules = flags(["kappa < 0.5 where class like '*'", "auc_macro < 0.6"])
    words = ("evaluate", "m.parquet", *several, *rules, "--output", "r.parquet", "--alerts", "a.parquet")
    assert call(capsys, *words).status == 0
    assert {*pq.read_table("a.parquet")["class"].to_pylist()} == {None, *NAMES}


def evaluated_rows():
    table = columns()
    scores = np.stack([table[f"p_{name}"].to_numpy() for name in NAMES], axis=1)
    evaluator = rs.MulticlassEvaluator(NAMES, window=rs.LastEvents(200), every=rs.EveryEvents(80), model="m")
    return evaluator.update(np.array(table["y"].to_pylist()), scores)


@pytest.mark.parametrize("rules", [[*RULES[:5]], "auc_high < 0.7"])
def test_a_pipeline_gives_the_alerts_of_one_table_whatever_rows_are_given_as(tmp_path, rules):
    rows = evaluated_rows()
    texts = [rules] if isinstance(rules, str) else rules
    expected = AlertTable([rs.parse_alert(rule) for rule in texts]).watch(rows)
    assert {alert.class_ for alert in expected} >= {*NAMES}
    folders = [tmp_path / name for name in ("rows", "columns", "batches", "yaml")]
    for folder in folders:
        folder.mkdir()
    batch = rows_to_arrow(rows.rows)
    parts = [batch.slice(at, 7) for at in range(0, batch.num_rows, 7)]
    with pipeline() as p:
        single = p | "r" >> InOrder(shuffled(rows), ClassRow)
        made = (
            single | "1" >> rs.Alert(*texts, shards=2),
            p | "c" >> InOrder([rows.rows[30:], rows.rows[:30]], rs.Rows) | "2" >> rs.Alert(*texts),
            p | "b" >> InOrder(parts, pa.RecordBatch) | "3" >> rs.Alert(*texts),
            single | "4" >> AlertYaml(rules),
        )
        for folder, alerts in zip(folders, made, strict=True):
            _ = alerts | f"in {folder.name}" >> Keep(folder, "alerts")
    for folder in folders:
        assert sorted((alert.value for alert in kept(folder, "alerts")), key=repr) == sorted(
            map(tuple, expected), key=repr
        )


def test_alerts_follow_an_evaluation_with_class_scores(tmp_path):
    events = columns().to_pylist()
    with pipeline() as p:
        result = p | beam.Create(events) | rs.EvaluateModels(
            class_scores={name: f"p_{name}" for name in NAMES}, label="y", window=rs.LastEvents(200),
            every=rs.EveryEvents(80), order="arrival",
        )  # fmt: skip
        result.rows | "of rows" >> rs.Alert(*RULES[:5]) | Keep(tmp_path, "alerts")
        (tmp_path / "b").mkdir()
        result.batches | "of batches" >> rs.Alert(*RULES[:5]) | "kept" >> Keep(tmp_path / "b", "alerts")
    found = sorted((alert.value for alert in kept(tmp_path, "alerts")), key=repr)
    assert {rs.AlertRow(*alert).class_ for alert in found} == {None, *NAMES}
    assert found == sorted((alert.value for alert in kept(tmp_path / "b", "alerts")), key=repr)
