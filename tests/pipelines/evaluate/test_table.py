"""`rocsteady evaluate` without --output: the models in a table, worst first, and no rows."""

from __future__ import annotations

import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from rocsteady.pipelines.report.glance import LINES, glance
from rocsteady.pipelines.report.report_rows import report_rows
from rocsteady.transforms.tables.read import read_tables

from tests.support.pages.planted import planted
from tests.support.processes.command import COMMAND, call


@pytest.fixture
def scores(tmp_path, monkeypatch):
    """A file of two models; one of them ranks worse in its last quarter."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")
    rng = np.random.default_rng(1)
    n = 8_000
    labels = rng.integers(0, 2, n)
    model = np.arange(n) % 2
    good = np.where((model == 1) & (np.arange(n) > 6_000), 0.2, 1.5)
    table = {"model": [f"m{code}" for code in model], "p": rng.normal(labels * good), "clicked": labels}
    pa.csv.write_csv(pa.table(table), "scores.csv")
    return tmp_path


ASKED = (
    "evaluate",
    "scores.csv",
    "--score",
    "p",
    "--label",
    "clicked",
    "--window",
    "last:500",
    "--every",
    "100",
)


def test_a_first_try_needs_no_output(scores, capsys):
    ran = call(capsys, *ASKED)
    assert ran.status == 0
    assert ran.out.startswith("1 of 2 models ranks worse than it did; 1 shows no change.\n")
    assert len(ran.out.splitlines()) <= LINES
    assert ran.counts == (8_000, 8_000, 0, 80)
    assert ", 80 rows not kept (" in f", {ran.lines[0].partition('; ')[2]}"
    assert [path.name for path in scores.iterdir()] == ["scores.csv"]
    kept = call(capsys, *ASKED, "--output", "rows.parquet")
    assert kept.out == ""
    below = ran.out.splitlines()[-1]
    assert "--output rows.parquet" in below
    assert "--report report.html" in below
    lines = glance(report_rows(read_tables(["rows.parquet"], "rows")[0]), 0.95, below=[below], width=150)
    assert ran.out.splitlines() == lines


def test_a_page_may_be_made_beside_the_table(scores, capsys):
    ran = call(capsys, *ASKED, "--report", "r.html", "--reference", "5 rows")
    assert ran.status == 0
    page = (scores / "r.html").read_text()
    assert "the windows of the 5 rows before" in page
    assert "rank worse" in ran.out or "ranks worse" in ran.out


def test_rows_on_stdout_stay_json_lines(scores, capsys):
    ran = call(capsys, *ASKED, "--output", "-")
    assert ran.out.startswith('{"model": "m0"')


def test_events_from_stdin_end_in_a_table(scores):
    lines = "\n".join(f'{{"score": {i % 7}, "label": {int(i % 5 > 2)}}}' for i in range(3_000))
    ran = subprocess.run(
        [*COMMAND, "evaluate", "-", "--window", "last:500"],
        input=lines, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "shows no change." in ran.stdout.splitlines()[0]
    assert "model" in ran.stdout


def test_nothing_applied_says_so(scores, capsys):
    ran = call(capsys, *ASKED[:2], "--score", "clicked", "--label", "p")
    assert ran.status == 3
    assert ran.out == "There is no model to judge: there are no rows.\n" + ran.out.partition("\n")[2]


def test_other_runners_and_wrong_references_are_refused(scores, capsys):
    ran = call(capsys, *ASKED, "--runner", "flink", "--flink_master", "localhost:1")
    assert (ran.status, len(ran.lines)) == (2, 1)
    assert "--output" in ran.lines[0]
    wrong = call(capsys, *ASKED, "--reference", "soon")
    assert (wrong.status, len(wrong.lines)) == (2, 1)


def test_planted_rows_are_the_same_each_time():
    one, again = planted(2, n=3_000), planted(2, n=3_000)
    assert one.rows.equals(again.rows)
    assert one.faults == again.faults
