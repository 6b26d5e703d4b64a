"""`evaluate --curves`: the curves of every model and slice, when they are due, as the file says them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import rocsteady as rs
from rocsteady.pipelines.report.data import curve_blocks
from rocsteady.pipelines.report.report_rows import report_rows
from rocsteady.transforms.sinks.kinds import CURVE_SCHEMA
from sklearn.metrics import roc_curve

from tests.support.processes.command import call, evaluated, names, run

N = 900


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    label = rng.integers(0, 2, N)
    events = {
        "score": np.round(rng.normal(label), 1), "label": label, "model": rng.choice(["m1", "m2"], N),
        "country": rng.choice(["AR", "DE", ""], N), "time": np.arange(N),
    }  # fmt: skip
    write("s.csv", events)


def write(path, columns):
    pa.csv.write_csv(pa.table(columns), path)


def curves(path="curves.parquet"):
    """(model, slice, seq) -> points, in the order of the file."""
    found = {}
    for row in pq.read_table(path).to_pylist():
        found.setdefault((row["model"], row["slice"], row["seq"]), []).append(row)
    return found


def drawn(capsys, *options, source="s.csv"):
    ran = call(capsys, "evaluate", source, *options, "--output", "rows.parquet", "--curves", "curves.parquet")
    assert ran.status == 0, ran
    rows, found = pq.read_table("rows.parquet").to_pylist(), curves()
    read, applied, dead_letters, told = ran.counts
    assert (read, dead_letters, told) == (applied, 0, len(rows))
    assert f", {len(found)} curve{'s' * (len(found) != 1)} in curves.parquet (" in ran.lines[0]
    return rows, found


def test_curves_of_models_and_slices_are_those_of_their_events(capsys):
    """Against scikit-learn, on the window's own events; no point is dropped of so few."""
    rows, found = drawn(
        capsys, "--window", "last:100", "--every", "1000", "--slice", "country", "--curves-every", "150",
        "--time", "time",
    )  # fmt: skip
    events = pa.csv.read_csv("s.csv").to_pylist()
    groups = {}
    for event in events:
        for label in ("", f"country={event['country']}"):
            groups.setdefault((event["model"], label), []).append(event)
    expected = {
        (*key, seq)
        for key, own in groups.items()
        for seq in (*range(150, len(own) + 1, 150), len(own))
    }  # fmt: skip
    assert set(found) == expected
    assert list(found) == sorted(expected)
    assert {(row["model"], row["slice"]) for row in rows} == groups.keys()
    for (model, label, seq), points in found.items():
        window = groups[model, label][max(0, seq - 100) : seq]
        fpr, tpr, thresholds = roc_curve(
            [event["label"] for event in window], [event["score"] for event in window],
            drop_intermediate=False,
        )  # fmt: skip
        first = points[0]
        assert [point["point"] for point in points] == list(range(len(thresholds)))
        assert [point["threshold"] for point in points] == [None, *thresholds[1:]]
        assert [point["tp"] / first["positives"] for point in points] == pytest.approx(tpr)
        assert [point["fp"] / first["negatives"] for point in points] == pytest.approx(fpr)
        assert first["window_events"] == len(window)
        assert first["time"].timestamp() == window[-1]["time"]
        assert (first["config"], first["pane_start"]) == (rows[0]["config"], None)


@pytest.mark.slow
def test_the_rows_are_the_same_with_curves_and_without(capsys):
    for window in ("last:70", "all"):
        options = ("--window", window, "--every", "13", "--slice", "country")
        plain = evaluated(capsys, "s.csv", *options)
        assert drawn(capsys, *options, "--curves-every", "17")[0] == plain


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine",
    [
        ["--runner", "FnApiRunner", "--shards", "3", "--cache-bytes", "0"],
        ["--runner", "BundleBasedDirectRunner", "--shards", "1"],
    ],
    ids=" ".join,
)
def test_the_same_bytes_come_from_every_engine(engine, capsys):
    options = ("--window", "last:70", "--slice", "country", "--curves-every", "40")
    evaluated(capsys, "s.csv", *options, "--curves", "one.parquet")
    evaluated(capsys, "s.csv", *options, *engine, "--curves", "two.parquet")
    assert Path("one.parquet").read_bytes() == Path("two.parquet").read_bytes()


@pytest.mark.slow
def test_worker_processes_carry_curves():
    workers = ("--direct_num_workers=2", "--direct_running_mode=multi_processing")
    for output, more in (("one.parquet", ()), ("two.parquet", workers)):
        ran = run("evaluate", "s.csv", "--output", "r.csv", "--curves", output, "--curves-every", "40", *more)
        assert ran.status == 0, ran
    assert Path("one.parquet").read_bytes() == Path("two.parquet").read_bytes()


@pytest.mark.slow
def test_curves_come_as_often_as_a_window_is_renewed_but_not_more_than_once_in_ten_thousand_events(capsys):
    n = 25_000
    rng = np.random.default_rng(2)
    write("long.csv", {"score": rng.random(n).round(3), "label": rng.integers(0, 2, n)})
    for window, seqs in (
        ("last:50", [10_000, 20_000, n]), ("last:12000", [12_000, 24_000, n]), ("all", [n]),
    ):  # fmt: skip
        found = drawn(capsys, "--window", window, "--every", "5000", source="long.csv")[1]
        assert [seq for _, _, seq in found] == seqs
    found = drawn(capsys, "--window", "last:50", "--curves-every", "end", source="long.csv")[1]
    assert [seq for _, _, seq in found] == [n]
    found = drawn(capsys, "--window", "all", "--curves-every", "10000", source="long.csv")[1]
    assert [(seq, points[0]["window_events"]) for (_, _, seq), points in found.items()] == [
        (10_000, 10_000), (20_000, 20_000), (n, n),
    ]  # fmt: skip


def test_a_thinned_curve_of_a_file_is_that_of_a_notebook(capsys):
    events = pa.csv.read_csv("s.csv")
    ev = rs.ModelEvaluator(window=rs.AllEvents())
    rng = np.random.default_rng(3)
    scores = rng.normal(events["label"].to_numpy())  # no ties: most points are dropped
    ev.update(events["label"].to_numpy(), scores)
    write("t.csv", {"score": scores, "label": events["label"].to_numpy()})
    ran = call(capsys, "evaluate", "t.csv", "--window", "all", "--output", "r.csv", "--curves", "curves.csv")
    assert ", 1 curve in curves.csv (" in ran.lines[0]
    (points,) = drawn(capsys, "--window", "all", source="t.csv")[1].values()
    text = pa.csv.read_csv("curves.csv")
    assert [text[name].to_pylist() for name in ("tp", "fp")] == [
        [point[name] for point in points] for name in ("tp", "fp")
    ]
    curve = ev.curve()
    assert len(curve) < N * 0.6
    assert [point["tp"] for point in points] == curve.tp.tolist()
    assert [point["fp"] for point in points] == curve.fp.tolist()
    assert [point["on_hull"] for point in points] == curve.on_hull.tolist()
    assert [point["block_score"] for point in points if point["block_score"] is not None] == (
        curve.block_score[curve.on_hull][1:].tolist()
    )


@pytest.mark.parametrize("more", [(), ("--runner", "FnApiRunner")], ids=["here", "on Beam"])
def test_the_points_of_curves_are_all_where_they_are_asked_for(more, capsys):
    """Then trapezoids add up to the AUC of each row, also with weights."""
    rng = np.random.default_rng(4)
    label = rng.integers(0, 2, 2_000)
    events = {
        "score": rng.normal(label), "label": label, "model": rng.choice(["m1", "m2"], 2_000),
        "kind": rng.choice(["x", "y"], 2_000), "w": rng.uniform(0.5, 2, 2_000),
    }  # fmt: skip
    write("t.csv", events)
    options = ("--window", "last:500", "--every", "500", "--slice", "kind", "--curves-every", "500")
    for weight in ((), ("--weight", "w")):
        of_points = {}
        for points in ("thinned", "all"):
            rows, found = drawn(capsys, *options, *weight, *more, "--curves-points", points, source="t.csv")
            of_points[points] = {key: len(curve) for key, curve in found.items()}
            aucs = {(row["model"], row["slice"], row["seq"]): row["auc"] for row in rows}
            errors = []
            for key in aucs.keys() & found.keys():
                curve = found[key]
                assert [point["point"] for point in curve] == list(range(len(curve)))
                shares = [[point[mass] / curve[-1][mass] for point in curve] for mass in ("tp", "fp")]
                errors.append(abs(np.trapezoid(*shares) - aucs[key]))
            assert len(errors) >= 6
            assert max(errors) < (1e-12 if points == "all" else 1 / 200)
            assert points == "all" or max(errors) > 1e-6
        assert all(of_points["all"][key] > number for key, number in of_points["thinned"].items())
        assert of_points["all"]["m1", "", 500] == 501


def test_a_page_shows_the_same_curve_of_all_points(capsys):
    rng = np.random.default_rng(5)
    label = rng.integers(0, 2, 3_000)
    write("t.csv", {"score": rng.normal(label), "label": label})
    blocks = []
    for points in ("thinned", "all"):
        drawn(capsys, "--window", "all", "--curves-points", points, source="t.csv")
        rows = report_rows(pq.read_table("rows.parquet"))
        listed, packed, _ = curve_blocks(pq.read_table("curves.parquet"), rows)
        blocks.append((listed, packed))
    assert blocks[0] == blocks[1]
    assert pq.read_table("curves.parquet").num_rows == 3_001


def test_dead_letters_are_in_no_curve(capsys):
    Path("d.csv").write_text("score,label\n0.1,0\nx,1\n0.9,1\n0.4,maybe\n0.8,1\n")
    options = ("--curves", "curves.parquet", "--dead-letters", "dead.csv")
    evaluated(capsys, "d.csv", *options, dead=True)
    ((key, points),) = curves().items()
    assert key == ("d", "", 3)
    assert [(point["threshold"], point["tp"], point["fp"]) for point in points] == [
        (None, 0, 0), (0.9, 1, 0), (0.8, 2, 0), (0.1, 2, 1),
    ]  # fmt: skip
    assert [point["block_score"] for point in points] == [None, None, pytest.approx(0.85), 0.1]
    assert names() == ["curves.parquet", "d.csv", "dead.csv", "rows.parquet", "s.csv"]


def test_classes_have_curves_where_one_of_them_is_positive(capsys):
    write("c.csv", {"score": [0.1, 0.9, 0.4], "label": ["up", "down", "up"], "said": ["up", "up", "down"]})
    options = ("--predicted", "said", "--positive", "up")
    (points,) = drawn(capsys, *options, source="c.csv")[1].values()
    assert [(point["tp"], point["fp"]) for point in points] == [(0, 0), (0, 1), (1, 1), (2, 1)]


def test_input_without_events_gives_an_empty_table_with_its_columns(capsys):
    Path("e.csv").write_text("score,label\n")
    assert drawn(capsys, source="e.csv") == ([], {})
    said = call(capsys, "evaluate", "e.csv", "--output", "r.csv", "--curves", "curves.csv").lines[0]
    assert ", 0 curves in curves.csv (" in said
    assert pq.read_table("curves.parquet").schema.equals(CURVE_SCHEMA)
    assert Path("curves.csv").read_text() == ",".join(CURVE_SCHEMA.names) + "\n"


def test_curves_go_to_a_file_while_rows_go_to_stdout(capsys):
    ran = call(capsys, "evaluate", "s.csv", "--output", "-", "--curves", "c.jsonl.gz")
    assert ran.status == 0
    assert [json.loads(line)["seq"] for line in ran.out.splitlines()]
    points = gzip.decompress(Path("c.jsonl.gz").read_bytes()).splitlines()
    assert set(json.loads(points[0])) == set(CURVE_SCHEMA.names)
    assert names() == ["c.jsonl.gz", "s.csv"]


@pytest.mark.slow
def test_a_job_that_fails_leaves_no_curves_and_those_of_the_last_one(capsys):
    rng = np.random.default_rng(4)
    write("long.csv", {"score": rng.random(60_000), "label": rng.integers(0, 2, 60_000)})
    Path("cut.csv.gz").write_bytes(gzip.compress(Path("long.csv").read_bytes())[:-100])
    Path("c.csv").write_text("from yesterday")
    assert call(capsys, "evaluate", "cut.csv.gz", "--output", "o.csv", "--curves", "c.csv").status == 1
    assert Path("c.csv").read_text() == "from yesterday"
    assert names() == ["c.csv", "cut.csv.gz", "long.csv", "s.csv"]
