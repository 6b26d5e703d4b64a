"""Measures with values of their own, from the command to files, alerts, comparisons and the report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
import rocsteady as rs
from rocsteady.pipelines.report.report_rows import report_rows
from rocsteady.pipelines.serve.history import History
from rocsteady.transforms.evaluate.shards import RowsCoder
from rocsteady.transforms.sinks.kafka import kind_of
from rocsteady.transforms.tables.read import read_tables

from tests.support.invariants.refusals import assert_refused
from tests.support.processes.command import call

MEASURES = "auc,tpr_at_fpr,tpr_at_fpr:0.05,partial_auc:0:0.2"
COLUMNS = ["tpr_at_fpr_0_05", "partial_auc_0_0_2"]


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    """A file of 3 models of 400 events each, with slices by fold."""
    rng = np.random.default_rng(7)
    labels = rng.integers(0, 2, 1_200)
    table = {
        "model": rng.permutation(np.repeat(["a", "b", "c"], 400)).tolist(),
        "fold": rng.integers(0, 6, 1_200).tolist(),
        "label": labels.tolist(),
        "score": np.round(rng.normal(size=1_200) + labels, 2).tolist(),
    }
    pc.write_csv(pa.table(table), tmp_path / "scores.csv")
    return tmp_path / "scores.csv"


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_every_form_of_rows_has_the_columns_and_they_are_read_back(scores, tmp_path, capsys, ending) -> None:
    out = tmp_path / f"rows.{ending}"
    ran = call(capsys, "evaluate", scores, "--measures", MEASURES, "--every", "100", "--output", out)
    assert ran.status == 0
    rows = list(rs.read_rows(out))
    alone = rs.evaluate(pc.read_csv(scores), measures="tpr_at_fpr", at_fpr=0.05, every=100).rows
    found = {(row.model, row.row): row.tpr_at_fpr_0_05 for row in rows}
    assert found == {(row["model"], row["row"]): row["tpr_at_fpr"] for row in alone.to_pylist()}
    assert all(row.partial_auc is None and row.partial_auc_0_0_2 is not None for row in rows)
    table, notes = read_tables([str(out)], "rows")
    assert not notes
    assert set(COLUMNS) < set(table.column_names)
    joined = tmp_path / "joined.parquet"
    assert call(capsys, "rows", out, "--output", joined).status == 0
    assert set(COLUMNS) < set(pq.read_schema(joined).names)
    assert set(COLUMNS) < set(report_rows(table).columns)


def test_rows_with_and_without_the_columns_are_read_together(scores, tmp_path, capsys) -> None:
    one, other = tmp_path / "one.parquet", tmp_path / "other.csv"
    call(capsys, "evaluate", scores, "--measures", MEASURES, "--output", one)
    call(capsys, "evaluate", scores, "--measures", "auc", "--model-name", "z", "--output", other)
    table, notes = read_tables([str(one), str(other)], "rows")
    assert not notes
    by_model = dict(zip(table["model"].to_pylist(), table["tpr_at_fpr_0_05"].to_pylist(), strict=True))
    assert by_model["z"] is None
    assert by_model["a"] is not None


def test_a_rule_watches_a_value(scores, tmp_path, capsys) -> None:
    out = ("--output", tmp_path / "rows.csv", "--alerts", tmp_path / "alerts.jsonl")
    rule = ("--alert", "tpr_at_fpr_0_05 < 0.9")
    assert call(capsys, "evaluate", scores, "--measures", MEASURES, *rule, *out).status == 0
    alerts = [json.loads(line) for line in (tmp_path / "alerts.jsonl").read_text().splitlines()]
    assert {(alert["column"], alert["state"]) for alert in alerts} == {("tpr_at_fpr_0_05", "open")}
    ran = call(capsys, "evaluate", scores, "--measures", "auc", *rule, *out)
    assert ran.status == 2
    assert "tpr_at_fpr_0_05 is not computed; ask for it with --measures" in ran.lines[-1]


def test_models_are_compared_by_a_value(scores, tmp_path, capsys) -> None:
    rows, out = tmp_path / "rows.parquet", tmp_path / "tests.jsonl"
    call(capsys, "evaluate", scores, "--slice", "fold", "--measures", MEASURES, "--output", rows)
    ran = call(capsys, "compare", rows, "--over", "fold", "--measure", "tpr_at_fpr_0_05", "--output", out)
    assert ran.status == 0
    assert {json.loads(line)["measure"] for line in out.read_text().splitlines()} == {"tpr_at_fpr_0_05"}
    ran = call(capsys, "compare", rows, "--over", "fold", "--measure", "tpr_at_fpr_0_5", "--output", out)
    assert ran.status == 2
    assert "--measure tpr_at_fpr_0_5" in ran.lines[-1]


def test_the_report_explains_and_draws_a_value(scores, tmp_path, capsys) -> None:
    page = tmp_path / "report.html"
    options = ("--measures", MEASURES, "--every", "50", "--output", tmp_path / "rows.csv", "--report", page)
    assert call(capsys, "evaluate", scores, *options).status == 0
    text = page.read_text()
    assert "TPR at a fixed FPR (tpr_at_fpr_0_05)" in text
    assert "Partial AUC (partial_auc_0_0_2)" in text


def test_events_that_come_by_stdin_give_the_columns(scores, tmp_path, capsys, monkeypatch) -> None:
    events = pc.read_csv(scores).to_pylist()
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    with (tmp_path / "events.jsonl").open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        out = tmp_path / "rows.jsonl"
        ran = call(capsys, "evaluate", "-", "--measures", MEASURES, "--every", "100", "--output", out)
    assert ran.status == 0
    assert all(row.tpr_at_fpr_0_05 is not None for row in rs.read_rows(out))


def test_topics_and_stages_of_a_pipeline_carry_the_columns() -> None:
    ev = rs.ModelEvaluator(every=rs.EveryEvents(2), measures=MEASURES)
    rows = ev.update([0, 1, 0, 1], [0.1, 0.9, 0.4, 0.3])
    coded = RowsCoder().decode(RowsCoder().encode(rows))
    assert coded.columns == tuple(COLUMNS)
    assert list(coded) == list(rows)
    [batch] = rows.to_arrow().to_batches()
    kind = kind_of(batch.schema)
    assert kind is not None
    assert kind.name == "row"


def test_a_history_of_a_served_page_takes_rows_that_have_the_columns() -> None:
    history = History()
    ev = rs.ModelEvaluator(model="m", every=rs.EveryEvents(2), measures=MEASURES)
    history.add(ev.update([0, 1, 0, 1], [0.1, 0.9, 0.4, 0.3]).to_arrow())
    assert len(history) == 2


def test_learners_are_refused_the_columns() -> None:
    def make() -> object:
        return rs.Prequential(["majority"], measures=MEASURES, id="id", features=["x"])

    assert_refused(make, ["'tpr_at_fpr:0.05'", "learners"])


def test_a_frame_has_the_columns() -> None:
    frame = pa.table({"score": [0.1, 0.9, 0.4, 0.3], "label": [0, 1, 0, 1]})
    found = rs.evaluate(frame, measures="auc,tpr_at_fpr:0.05")
    assert "tpr_at_fpr_0_05" in found.rows.column_names
