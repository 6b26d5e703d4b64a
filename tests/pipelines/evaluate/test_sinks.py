"""`evaluate` into folders and under --prometheus, live and from files; `rows` makes one file of them."""

from __future__ import annotations

import json
import os
import random
import re
import socket
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rocsteady.pipelines.monitoring.series import job_series
from rocsteady.pipelines.serve.gauges import page_series
from rocsteady.pipelines.serve.keeper import Keeper
from rocsteady.pipelines.serve.pages import Look
from rocsteady.runners.servers.processes import free_port
from rocsteady.transforms.beam.metrics import COUNTERS, GAUGES

from tests.support import ROOT
from tests.support.processes.command import call, names, run, start
from tests.support.processes.live_job import PATIENCE, wait_for
from tests.support.servers.scraping import fetched

WINDOW = ("--window", "last:50", "--every", "20")


@pytest.fixture(autouse=True)
def _events(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = random.Random(3)
    lines = [
        json.dumps({"model": rng.choice("ab"), "score": rng.random(), "label": int(rng.random() < 0.4)})
        for _ in range(400)
    ]
    Path("events.jsonl").write_text("\n".join([*lines, "no object"]) + "\n")


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_folder_holds_the_rows_of_a_file(capsys, form):
    ran = call(capsys, "evaluate", "events.jsonl", *WINDOW, "--output", "one.parquet")
    assert ran.counts[:3] == (401, 400, 1)
    count = ran.counts[3]
    options = ("--output", "rows/", "--dead-letters", "dead/", "--parts", form)
    for _ in range(2):
        ran = call(capsys, "evaluate", "events.jsonl", *WINDOW, *options, "--curves", "curves/")
        assert ran.status == 0, ran
        assert ran.counts == (401, 400, 1, count)
    named = re.compile(rf"part-\d{{8}}T\d{{6}}\.\d{{6}}-\w{{12}}\.{form}")
    assert all(map(named.fullmatch, names("rows")))
    assert len(names("dead")) == 2
    assert names("curves")
    ran = call(capsys, "rows", "rows/", "--output", "read.parquet")
    assert ran.status == 0
    assert ran.lines[0].startswith(f"rocsteady: {count} rows in read.parquet, {count} repeats left out (")
    read, one = pq.read_table("read.parquet"), pq.read_table("one.parquet")
    assert read.equals(one)
    assert (read.schema.metadata == one.schema.metadata) == (form == "parquet")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="pipes that can be asked")
def test_a_live_job_fills_a_folder(capsys):
    call(capsys, "evaluate", "events.jsonl", *WINDOW, "--output", "one.parquet")
    with Path("events.jsonl").open() as events:
        words = ("--output", "rows/", "--dead-letters", "dead/", "--report", "r.html")
        ran = run("evaluate", "-", *WINDOW, *words, stdin=events)
    assert ran.status == 0, ran
    assert call(capsys, "rows", "rows/", "-o", "read.parquet").status == 0
    assert pq.read_table("read.parquet").equals(pq.read_table("one.parquet"))
    assert "400" in Path("r.html").read_text()
    assert len(names("dead")) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--output kafka://nowhere/t", "kafka://nowhere/t: 'nowhere' is no broker; give host:port"),
        ("--output none/rows/", "output 'none/rows/': the folder none does not exist"),
        ("--output events.jsonl/", "output 'events.jsonl/' is a file, and the slash says a folder"),
        ("--output rows/ --dead-letters ./rows/", "is the place of the rows; name another"),
        ("--output rows/ --report r.html", "--report r.html: the rows go to rows/, where"),
        ("--output kafka://a:1/t --kafka-option x", "--kafka-option (number 1; not shown, it may"),
        ("--output - --prometheus 9100", "--prometheus '9100': give :port or host:port"),
        ("--output - --prometheus :99999", "--prometheus ':99999': give :port or host:port"),
        ("--output - --prometheus :1 --prometheus-models x", "--prometheus-models 'x': give a whole number"),
        ("--output - --prometheus :1 --runner prism --prism_location x", "runner 'prism' works in others"),
        ("--output - --prometheus nowhere.invalid:1", "nothing can listen there"),
    ],
)
def test_what_cannot_be_written_is_said_before(capsys, options, said):
    ran = call(capsys, "evaluate", "events.jsonl", *options.split())
    assert (ran.status, len(ran.lines)) == (2, 1), ran
    assert said in ran.lines[0]
    assert ran.out == ""


def test_rows_of_what_is_none(capsys):
    for words, said in [
        (("rows/", "-o", "x.parquet"), "cannot be listed: No such file"),
        (("events.jsonl", "-o", "x.parquet"), "holds no rows of rocsteady"),
        (("events.jsonl", "-o", "x.txt"), "has an ending that is not known"),
        (("events.jsonl", "-o", "-"), "--output -: name a file"),
    ]:
        ran = call(capsys, "rows", *words)
        assert (ran.status, len(ran.lines)) == (2, 1)
        assert said in ran.lines[0]


def test_a_port_that_is_taken_is_said(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ran = call(capsys, "evaluate", "events.jsonl", "--output", "-", "--prometheus", address)
    assert ran.status == 2
    (said,) = ran.lines
    assert said.startswith(f"rocsteady: --prometheus {address}: nothing can listen there (Address already in")


@pytest.mark.skipif(os.name != "posix", reason="pipes that can be asked")
def test_counters_can_be_fetched_while_a_job_runs_and_not_after(capsys):
    port = free_port()
    words = ("--output", "r.jsonl", "--prometheus", f"127.0.0.1:{port}", "--prometheus-models", "1")
    process = start("evaluate", "-", *WINDOW, *words, stdin=subprocess.PIPE)
    process.stdin.write(Path("events.jsonl").read_text())
    process.stdin.flush()
    wait_for(lambda: (fetched(port) or {}).get("rocsteady_events_read_total") == "401.0")
    # What was read is applied and written a moment later.
    rows_written = "rocsteady_rows_written_total"
    wait_for(lambda: fetched(port)[rows_written] == f"{len(Path('r.jsonl').read_text().splitlines())}.0")
    wait_for(lambda: fetched(port)["rocsteady_events_applied_total"] == "400.0")
    found = fetched(port)
    assert found["rocsteady_events_applied_total"] == "400.0"
    assert found["rocsteady_dead_letters_total"] == "1.0"
    assert found["rocsteady_evaluators"] == "2.0"
    assert float(found["rocsteady_state_bytes"]) > 1_000
    rows = [json.loads(line) for line in Path("r.jsonl").read_text().splitlines()]
    assert found["rocsteady_rows_written_total"] == f"{len(rows)}.0"
    shown = rows[0]["model"]
    newest = [row for row in rows if row["model"] == shown][-1]
    assert float(found[f'rocsteady_model_auc{{model="{shown}"}}']) == newest["auc"]
    assert float(found[f'rocsteady_model_h{{model="{shown}"}}']) == newest["h"]
    assert sum(name.startswith("rocsteady_model_auc{") for name in found) == 1
    assert (
        found["rocsteady_rows_of_models_not_shown_total"] == f"{sum(row['model'] != shown for row in rows)}.0"
    )
    process.stdin.close()
    assert process.wait(PATIENCE) == 0
    process.stdout.close()
    process.stderr.close()
    assert fetched(port) is None


def test_the_list_of_metrics_is_whole():
    page = (ROOT / "docs/reference/metrics.md").read_text()
    listed = re.findall(r"^\| `([a-z_]+)` ", page, re.MULTILINE)
    assert listed[: len(COUNTERS)] == list(COUNTERS)
    assert listed[len(COUNTERS) : len(COUNTERS) + len(GAUGES)] == list(GAUGES)
    for one in (*job_series(), *page_series(Keeper(Look(followed=("alerts",))))):
        ending = "_total" if one.kind == "counter" and one.name not in COUNTERS else ""
        assert f"`{one.name}{ending}`" in page, one.name
