"""Class scores with the other settings of a job: against jobs of one score, and on every cut and runner."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pytest
import rocsteady as rs
from rocsteady.core.rows.measure_table import MEASURES, RANKING_MEASURES

from tests.support.processes.command import call
from tests.support.streams.class_events import NAMES, class_streams, in_order, lines_of, read
from tests.support.thorough import first

CLASSES = ("--class-scores", "p_cat,p_dog,p_owl", "--label", "y")
TIMED = ("--model", "model", "--time", "sent", "--id", "id")
MORE = {
    "every measure, weights and a cross": (
        "--measures", "all", "--probabilities", "--weight", "mass", "--cost", "beta:2,1", "--priors", "0.3",
        "--partial-fpr", "0:0.2", "--at-fpr", "0.05", "--confidence", "0.9", "--slice", "country,half",
        "--window", "last:80", "--every", "50",
    ),
    "a grid, silence and few slices": (
        "--window", "last:1h", "--every", "10m", "--idle-ttl", "20m", "--slice", "half", "--slice-cap", "1",
        "--deduplicate", "1d",
    ),
    "evidence": ("--evidence-below", "0.9", "--evidence-blocks", "3", "--window", "all", "--every", "60"),
    "fading": ("--window", "fading:40", "--every", "60", "--slice", "country"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def events(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng, found = random.Random(8), []
    for number, event in enumerate(class_streams()[2]):
        scores = {f"p_{name}": event[f"p_{name}"] / 2 for name in NAMES}
        found.append({**event, **scores, "mass": rng.uniform(0.1, 4), "half": "uvw"[number * 3 // 300]})
    Path("all.jsonl").write_text(lines_of(found))
    return found


def evaluated(capsys, *words, output="rows.parquet"):
    ran = call(capsys, "evaluate", *words, "--output", output)
    assert ran.status == 0, ran.lines
    return list(rs.read_rows(output))


RANKED = {*MEASURES[:RANKING_MEASURES]} - {"tp", "fp"}


@pytest.mark.parametrize("kind", first(2, [*MORE]))
def test_the_row_of_a_class_ranks_as_a_job_of_the_class_against_all_others(capsys, kind, events):
    rows = evaluated(capsys, "all.jsonl", *CLASSES, *TIMED, *MORE[kind])
    for name in NAMES:
        one = ("--score", f"p_{name}", "--label", "y", "--positive", name)
        twins = {(row.model, row.slice, row.row): row for row in evaluated(
            capsys, "all.jsonl", *one, *TIMED, *MORE[kind], output="one.parquet")}  # fmt: skip
        of_class = {(row.model, row.slice, row.row): row for row in rows if row.class_ == name}
        assert of_class.keys() == twins.keys()
        for key, row in of_class.items():
            for column in ("seq", "due", "window_events", "weight", "positives", *RANKED):
                assert getattr(row, column) == getattr(twins[key], column), (key, column)


@pytest.mark.parametrize("kind", first(2, [*MORE]))
def test_cuts_shards_and_runners_change_no_row(capsys, kind, events):
    wanted = in_order(evaluated(capsys, "all.jsonl", *CLASSES, *TIMED, *MORE[kind]))
    rng = random.Random(kind)
    parts = [[] for _ in range(4)]
    for event in events:
        rng.choice(parts).append(event)
    for number, part in enumerate(parts):
        Path(f"part-{number}.jsonl").write_text(lines_of(part))
    engine = ("--runner=PortableRunner", "--job_endpoint=embed", "--environment_type=LOOPBACK")
    for how in (("--shards", "3", "--own-shard", "m1"), ("--shards", "1", "--cache-bytes", "0"), engine):
        found = evaluated(capsys, "part-*.jsonl", *CLASSES, *TIMED, *MORE[kind], *how, output="cut.jsonl")
        assert in_order(found) == wanted, how


AWKWARD = ("a,b", "c|d", 'e"f', "g\nh", "country=AR", "other", "1.0", "é\u202e", " x ")


def test_names_of_classes_may_be_any_text(capsys):
    rng = random.Random(3)
    with Path("names.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"p_{name}" for name in AWKWARD), "y", "country"])
        for number in range(90):
            writer.writerow([*(rng.random() for _ in AWKWARD), AWKWARD[number % 9], AWKWARD[number % 3]])
    how = ("names.csv", "--class-scores", "p_*", "--label", "y", "--slice", "country")
    rows = evaluated(capsys, *how)
    names = {"a,b", "c|d", 'e"f', "g\nh", "country=AR", "other", "1", "é\u202e", "x"}
    assert {row.class_ for row in rows} == {*names, None}
    assert {row.class_: row.positives for row in rows if not row.slice and row.class_} == dict.fromkeys(
        names, 10
    )
    for output in ("rows.csv", "rows.jsonl", "rows/"):
        assert in_order(evaluated(capsys, *how, output=output)) == in_order(rows)
    assert call(capsys, "show", "rows.csv").status == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "p_a,p_b,p_c,y\n.5,.2,.3,a\n.1,.8,.1,b\n",
            {"c": "one class in window", None: "over the classes with"},
        ),
        ("p_a,p_b,y\n.5,.2,a\n.1,.8,a\n", {"a": "one class in window", None: "worst_pair_auc: one class in"}),
        ("p_a,y\n.5,a\n.4,a\n", {"a": "one class in window", None: "auc_macro, auc_macro_low"}),
        (
            "p_a,p_b,y\n.5,.5,a\n.5,.5,b\n.5,.5,a\n",
            {"a": "fewer than two", None: "fewer than two events of a"},
        ),
    ],
)
def test_absent_and_single_classes_and_ties_give_rows_with_reasons(capsys, text, said):
    Path("few.csv").write_text(text)
    rows = {row.class_: row for row in evaluated(capsys, "few.csv", "--class-scores", "p_*", "--label", "y")}
    for name, words in said.items():
        assert words in rows[name].reason
    assert rows[None].auc_macro in (None, 0.5, 1.0)


def test_events_without_any_label_leave_every_class_absent_and_say_so(capsys):
    Path("none.csv").write_text("p_a,p_b,y_a,y_b\n.5,.2,0,0\n.1,.8,0,0\n")
    rows = evaluated(capsys, "none.csv", "--class-scores", "p_*", "--multi-label", "y_*")
    row = next(row for row in rows if row.class_ is None)
    assert (row.window_events, row.classes_absent) == (2, ("a", "b"))
    assert "no class has both members and others in window" in row.reason


def test_a_class_that_appears_late_gets_figures_when_it_is_there(capsys):
    events = [{"p_a": n % 7, "p_b": n % 5, "p_c": n % 3, "y": "abc"[n % (2 + n // 20)]} for n in range(40)]
    Path("late.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    how = ("late.jsonl", "--class-scores", "p_*", "--label", "y", "--every", "20", "--window", "last:20")
    rows = {(row.class_, row.row): row for row in evaluated(capsys, *how)}
    assert rows["c", 0].auc is None
    assert rows[None, 0].classes_absent == ("c",)
    assert rows["c", 1].auc is not None
    assert rows[None, 1].classes_absent == ()


def test_a_thousand_classes_have_a_row_each(capsys):
    rng = random.Random(1)
    names = [str(number) for number in range(1_000)]
    lines = [",".join([*(f"p_{name}" for name in names), "y"])]
    lines += [",".join([*(f"{rng.random():.3f}" for _ in names), str(number * 7)]) for number in range(9)]
    Path("wide.csv").write_text("\n".join(lines) + "\n")
    rows = evaluated(capsys, "wide.csv", "--class-scores", "p_*", "--label", "y")
    assert [row.class_ for row in rows if row.auc is not None] == sorted(
        str(number * 7) for number in range(9)
    )
    assert len(rows) == 1_001
    of_model = next(row for row in rows if row.class_ is None)
    assert len(of_model.classes_absent) == 991
    assert read() == in_order(rows)
