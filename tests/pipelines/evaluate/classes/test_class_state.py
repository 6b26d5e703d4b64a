"""Class scores: state that goes from one job to the next, and a ROC curve of each class."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import rocsteady as rs

from tests.support.processes.beam_runs import pipeline
from tests.support.processes.command import call, run, start
from tests.support.processes.live_job import wait_for
from tests.support.streams.class_events import NAMES, class_streams, lines_of, read
from tests.support.thorough import others_slow

HOW = ("--class-scores", "p_cat,p_dog,p_owl", "--model", "model", "--time", "sent", "--id", "id")
KINDS = {"one class": ("--label", "y"), "several": ("--multi-label", "y_cat,y_dog,y_owl")}
ROWS = ("--slice", "country", "--window", "last:60", "--every", "40")
kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(autouse=True)
def events(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = class_streams()[2]
    for name, part in (("all", found), ("first", found[:170]), ("then", found[170:])):
        Path(f"{name}.jsonl").write_text(lines_of(part))
    return found


def evaluated(capsys, source, *words, output="rows.parquet"):
    ran = call(capsys, "evaluate", source, *HOW, *words, "--output", output)
    assert ran.status == 0, ran.lines
    return read(output)


def later(rows, before):
    """The rows that are not in `before`, which has the first rows of a job that stopped."""
    known = {(row.model, row.slice, row.row, row.class_) for row in before}
    return [row for row in rows if (row.model, row.slice, row.row, row.class_) not in known]


def assert_same(found, wanted):
    """Compare rows: those of fading windows agree to 1e-12, others to the last bit."""
    assert [row[:3] for row in found] == [row[:3] for row in wanted]
    for one, other in zip(found, wanted, strict=True):
        for name, value, twin in zip(one._fields, one, other, strict=True):
            is_near = isinstance(value, float) and value == pytest.approx(twin, rel=1e-12, abs=1e-13)
            assert value == twin or is_near, (name, value, twin)


# ---- state


@pytest.mark.parametrize(
    ("kind", "window"), others_slow(product(KINDS, ["last:60", "last:2h", "fading:50", "all"]))
)
def test_a_job_goes_on_with_the_state_of_another_one_over_other_shards(capsys, kind, window):
    more = (*KINDS[kind], *ROWS[:2], "--window", window, *ROWS[4:], "--deduplicate", "1d", "--idle-ttl", "9d")
    wanted = evaluated(capsys, "all.jsonl", *more)
    first = evaluated(capsys, "first.jsonl", *more, "--export-state", "state", "--shards", "5")
    spread = ("state", "import", "state", "--shards", "3", "--own-shard", "m1", "--output", "spread")
    assert call(capsys, *spread).status == 0
    for folder, shards in (("state", ("--shards", "5")), ("spread", ("--shards", "3", "--own-shard", "m1"))):
        then = evaluated(capsys, "then.jsonl", *more, *shards, "--import-state", folder)
        assert_same(then, later(wanted, first))
    assert_same(first, [row for row in wanted if row not in later(wanted, first)])


def test_a_job_goes_on_with_the_state_of_adaptive_windows(capsys):
    more = (*KINDS["one class"], "--window", "adaptive", "--every", "40")
    wanted = evaluated(capsys, "all.jsonl", *more)
    first = evaluated(capsys, "first.jsonl", *more, "--export-state", "state")
    then = evaluated(capsys, "then.jsonl", *more, "--import-state", "state")
    assert then
    assert_same(then, later(wanted, first))


def test_a_class_that_is_silent_for_many_half_lives_stays_in_a_state(capsys, events):
    for number, event in enumerate(events):
        event["sent"] = 1_700_000_000 + number * 60
        if number > 60 and event["y"] == "owl":
            event["y"] = "cat"
    for name, part in (("all", events), ("first", events[:170]), ("then", events[170:])):
        Path(f"{name}.jsonl").write_text(lines_of(part))
    more = (*KINDS["one class"], "--window", "fading:1m", "--every", "40")
    wanted = evaluated(capsys, "all.jsonl", *more)
    first = evaluated(capsys, "first.jsonl", *more, "--export-state", "state")
    then = evaluated(capsys, "then.jsonl", *more, "--import-state", "state")
    assert all(row.auc_m is not None for row in then if row.class_ is None)
    assert_same(then, later(wanted, first))


CHANGES = [
    ("--window", "last:25"),
    ("--every", "30"),
    ("--measures", "auc,kappa"),
    ("--measures", "auc,brier", "--probabilities"),
    ("--confidence", "0.5"),
]


@pytest.mark.parametrize(("kind", "change"), others_slow(product(KINDS, CHANGES)))
def test_settings_of_rows_and_a_shorter_window_may_change(capsys, kind, change, events):
    base = [*KINDS[kind], *ROWS]
    changed = [*base, *change]
    if change[0] in base:
        changed = [*base]
        changed[base.index(change[0]) + 1] = change[1]
    scale = dict.fromkeys((f"p_{each}" for each in NAMES), 0.5)
    small = [{key: value * scale.get(key, 1) for key, value in event.items()} for event in events]
    Path("first.jsonl").write_text(lines_of(small[:170]))
    Path("then.jsonl").write_text(lines_of(small[170:]))
    Path("all.jsonl").write_text(lines_of(small))
    evaluated(capsys, "first.jsonl", *base, "--export-state", "state")
    found = evaluated(capsys, "then.jsonl", *changed, "--import-state", "state")
    whole = evaluated(capsys, "all.jsonl", *changed)
    fresh = {(row.model, row.slice, row.seq, row.class_): row for row in whole}
    compared = 0
    for row in found:
        twin = fresh.get((row.model, row.slice, row.seq, row.class_))
        if twin is not None:
            compared += 1
            # kappa_m compares with the majority of the window in which an event was predicted
            assert row == twin._replace(row=row.row, kappa_m=row.kappa_m), row
    assert compared >= len(found) // 2


@pytest.mark.parametrize(
    ("classes", "said"),
    [
        ("p_cat,p_dog", "['cat', 'dog', 'owl'] and is now ['cat', 'dog'] (class 'owl' is gone)"),
        ("p_dog,p_cat,p_owl", "(give the classes in the same order)"),
        ("cat=p_cat,dog=p_dog,elk=p_owl", "(class 'owl' is gone)"),
        (None, "models with a score of each class, and models with one score, have other states"),
        ("several", "multi_label was False and is now True"),
    ],
)
def test_a_state_of_other_classes_is_refused_by_name(capsys, classes, said):
    words = ("--class-scores", classes, "--label", "y")
    if classes is None:
        words = ("--score", "p_cat", "--label", "y", "--positive", "cat")
    elif classes == "several":
        words = (*HOW[:2], *KINDS["several"])
    evaluated(capsys, "first.jsonl", *KINDS["one class"], *ROWS, "--export-state", "state")
    ran = call(
        capsys, "evaluate", "then.jsonl", *words, *HOW[2:], *ROWS, "--import-state", "state",
        "--output", "other.csv",
    )  # fmt: skip
    assert ran.status == 2
    assert said in ran.lines[-1]
    assert not Path("other.csv").exists()


def test_a_state_is_described_with_its_models_and_their_events(capsys):
    evaluated(capsys, "first.jsonl", *KINDS["one class"], *ROWS, "--export-state", "state", "--shards", "2")
    ran = call(capsys, "inspect", "state")
    assert "  models: 2, slices of them: 4, events held:" in ran.out
    states = [path for path in Path("state").rglob("*") if path.is_file()]
    said = "".join(call(capsys, "inspect", path).out for path in states if path.suffix != ".json")
    assert "models with 3 classes:" in said
    assert "m0 [country=AR]: 4" in said


# ---- curves


def expected_curves(events, kind, every):
    """(model, slice, class, seq): the curve of a ModelEvaluator of the class."""
    found = {}
    for model in ("m0", "m1"):
        for country in ("", "AR", "DE"):
            there = [
                event for event in events if event["model"] == model and country in ("", event["country"])
            ]
            for name in NAMES:
                labels = [
                    event["y"] == name if kind == "one class" else event[f"y_{name}"] for event in there
                ]
                scores = [event[f"p_{name}"] for event in there]
                evaluator = rs.ModelEvaluator(window=rs.LastEvents(60), curves=every)
                rows = [evaluator.update([int(label)], [score]) for label, score in zip(
                    labels, scores, strict=True)]  # fmt: skip
                for curve in [each for some in (*rows, evaluator.finish()) for each in some.curves]:
                    found[model, country and f"country={country}", name, curve.seq] = curve.curve
    return found


def curves_in(table):
    found = {}
    for point in table.to_pylist():
        key = tuple(point[name] for name in ("model", "slice", "class", "seq"))
        found.setdefault(key, []).append(tuple(point[name] for name in ("point", "tp", "fp", "on_hull")))
    return {key: sorted(points) for key, points in found.items()}


def points_of(curves):
    return {
        key: [
            (number, *each)
            for number, each in enumerate(
                zip(curve.tp.tolist(), curve.fp.tolist(), curve.on_hull.tolist(), strict=True)
            )
        ]
        for key, curve in curves.items()
    }


@kinds
def test_every_class_has_a_roc_curve_in_every_format(capsys, kind, events):
    wanted = points_of(expected_curves(events, kind, rs.EveryEvents(50)))
    more = (*KINDS[kind], *ROWS, "--curves-every", "50", "--curves")
    rows = evaluated(capsys, "all.jsonl", *more, "curves.parquet")
    assert rows == evaluated(capsys, "all.jsonl", *KINDS[kind], *ROWS)  # curves change no row
    table = pq.read_table("curves.parquet")
    assert table.schema.names[:4] == ["model", "slice", "class", "pane_start"]
    assert curves_in(table) == wanted
    engine = ("--runner=PortableRunner", "--job_endpoint=embed", "--environment_type=LOOPBACK")
    evaluated(capsys, "all.jsonl", *more, "embedded.parquet", *engine)
    assert Path("embedded.parquet").read_bytes() == Path("curves.parquet").read_bytes()
    evaluated(capsys, "all.jsonl", *more, "curves.csv")
    assert curves_in(pa.csv.read_csv("curves.csv", convert_options=pa.csv.ConvertOptions(
        strings_can_be_null=False))) == wanted  # fmt: skip
    Path("arriving").mkdir()
    Path("all.jsonl").rename("arriving/all.jsonl")
    Path("arriving/_END").touch()
    evaluated(
        capsys, "arriving", "--follow", "--order", "time:0s", *more, "live.jsonl", output="live-rows.jsonl"
    )
    live = pa.Table.from_pylist([json.loads(line) for line in Path("live.jsonl").read_text().splitlines()])
    assert curves_in(live) == wanted


def test_a_frame_and_a_collection_give_the_curves_of_the_command(capsys, events):
    wanted = points_of(expected_curves(events, "one class", rs.EveryEvents(50)))
    how = {"class_scores": [f"p_{name}" for name in NAMES], "label": "y", "model": "model"}
    how |= {"window": rs.LastEvents(60), "slices": "country", "curves": rs.EveryEvents(50)}
    assert curves_in(rs.evaluate(pa.Table.from_pylist(events), **how).curves) == wanted
    with pipeline() as built:
        result = built | beam.Create(events, reshuffle=False) | rs.EvaluateModels(**how)
        texts = result.curves | beam.FlatMap(lambda batch: map(json.dumps, (
            {name: str(value) if "time" in name or "pane" in name else value for name, value in each.items()}
            for each in batch.to_pylist())))  # fmt: skip
        _ = texts | beam.io.WriteToText("curves", num_shards=1, shard_name_template="")
    lines = [json.loads(line) for line in Path("curves").read_text().splitlines()]
    assert curves_in(pa.Table.from_pylist(lines)) == wanted


def test_curves_are_of_rows_of_classes():
    with pytest.raises(rs.ConfigError, match="each class has a curve beside its rows"):
        rs.MulticlassEvaluator(["a", "b"], class_rows=False, curves="end")
    evaluator = rs.MulticlassEvaluator(["a", "b"], every=rs.EveryEvents(3), curves=rs.EveryEvents(2))
    labels = ["a", "b", "a", "b", "b"]
    rows = evaluator.update(labels, np.arange(10).reshape(5, 2))
    assert [(curve.class_, curve.seq) for curve in rows.rows.curves] == [
        ("a", 2), ("a", 4), ("b", 2), ("b", 4),
    ]  # fmt: skip
    assert {curve.config for curve in rows.rows.curves} == {evaluator.settings.config}
    assert [curve.class_ for curve in evaluator.finish().rows.curves] == ["a", "b"]


@kinds
def test_a_running_stream_gives_its_state_when_it_is_asked(capsys, kind, events):
    """A job takes up the state, and makes the rows behind it."""
    wanted = evaluated(capsys, "all.jsonl", *KINDS[kind], *ROWS, "--order", "time:0s")
    arriving = Path("arriving")
    arriving.mkdir()
    (arriving / "1.jsonl").write_text(lines_of(events[:170]) + "no event\n")
    words = (
        *HOW, *KINDS[kind], *ROWS, "--control", "ask.json", "--output", "live.jsonl",
        "--dead-letters", "dead.jsonl",
    )  # fmt: skip
    job = start("evaluate", "arriving", "--follow", *words)
    try:
        wait_for(lambda: Path("dead.jsonl").exists() and Path("dead.jsonl").read_text())  # of the last line
        exported = call(capsys, "state", "export", "--control", "ask.json", "--output", "state")
        assert exported.status == 0, exported
        (arriving / "2.jsonl").write_text(lines_of(events[170:]))
        (arriving / "_END").touch()
        _, told = job.communicate(timeout=120)
    finally:
        job.kill()
    assert job.returncode == 0, told
    assert_same(read("live.jsonl"), wanted)
    words = (*KINDS[kind], *ROWS, "--order", "time:0s", "--import-state", "state")
    then = evaluated(capsys, "then.jsonl", *words)
    known = {(row.model, row.slice, row.row, row.class_) for row in then}
    of_all = [row for row in wanted if (row.model, row.slice, row.row, row.class_) in known]
    assert_same(then, of_all)
    assert {row.class_ for row in then} == {None, *NAMES}
    assert any(row.row > 1 for row in then)


@pytest.mark.slow
def test_worker_processes_give_the_bytes_of_this_one(capsys):
    words = ("all.jsonl", *HOW, "--label", "y", *ROWS)
    alerts = ("--alert", "auc_macro < 0.9", "--alert", "auc < 0.8 where class = 'dog'")
    files = ("--output", "one.parquet", "--curves", "one-c.parquet", "--alerts", "one-a.parquet")
    assert call(capsys, "evaluate", *words, *alerts, *files).status == 0
    workers = ("--direct_num_workers=2", "--direct_running_mode=multi_processing")
    ran = run("evaluate", *words, *alerts, *(word.replace("one", "two") for word in files), *workers)
    assert ran.status == 0, ran
    for name in ("one.parquet", "one-c.parquet", "one-a.parquet"):
        assert Path(name.replace("one", "two")).read_bytes() == Path(name).read_bytes()
