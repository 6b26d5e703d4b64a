"""`evaluate --roll-up`: roll-up rows beside the rows, and alerts on groups, of files and of live input."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import rocsteady as rs

from tests.support.processes.command import call, run
from tests.support.streams.roll_up_events import some_events

BY = ("models", "slices", "t/*")
WINDOW = ("--time", "time", "--window", "last:400", "--every", "1h", "--slice", "c")
GROUPS = [word for by in BY for word in ("--roll-up", by)]
RULES = ("--alert", "auc_mean > 0.5 where group = 'models'", "--alert", "auc < 0.85")


@pytest.fixture
def events(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(some_events(), "events.parquet")
    return some_events()


@pytest.mark.parametrize("order", ["time", "time:10m", "position"])
def test_they_are_what_the_rows_give_on_their_own(events, capsys, order):
    outputs = ("--output", "rows.parquet", "--roll-ups", "found.parquet", "--alerts", "alerts.jsonl")
    ran = call(capsys, "evaluate", "events.parquet", *WINDOW, "--order", order, *GROUPS, *RULES, *outputs)
    assert ran.status == 0, ran
    found = pq.read_table("found.parquet")
    assert found.equals(rs.roll_up("rows.parquet", by=BY))
    assert found.num_rows > 20
    with open("alerts.jsonl") as lines:  # noqa: PTH123
        alerts = [json.loads(line) for line in lines]
    assert {"models", "t/a"} <= {alert["model"] for alert in alerts}


def section_of(path):
    """The section on groups of a page, without what depends on how the page was made."""
    found = re.search(r'<section id="roll_ups".*?</section>', Path(path).read_text(), re.DOTALL)
    return found and found.group(0)


def test_a_report_has_the_groups_of_the_job_live_or_not(events, capsys, tmp_path):
    outputs = ("--output", "rows.parquet", "--roll-ups", "found.parquet", "--report", "own.html")
    ran = call(capsys, "evaluate", "events.parquet", *WINDOW, *GROUPS, *outputs)
    assert ran.status == 0, ran
    ran = call(capsys, "report", "rows.parquet", "--roll-ups", "found.parquet", "-o", "again.html")
    assert ran.status == 0, ran
    section = section_of("own.html")
    assert "t/*" in section
    assert section_of("again.html") == section
    lines = tmp_path / "events.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in events.to_pylist()))
    live = ("--output", "live/", "--roll-ups", "live_fleet/", "--report", "live.html")
    with lines.open() as stdin:
        ran = run("evaluate", "-", *WINDOW, *GROUPS, *live, stdin=stdin, cwd=tmp_path)
    assert ran.status == 0, ran
    assert section_of("live.html") == section
    ran = call(
        capsys, "evaluate", "events.parquet", *WINDOW, *GROUPS, *RULES, "--output", "rows.parquet",
        "--report", "rules.html",
    )  # fmt: skip
    assert ran.status == 0, ran
    assert section_of("rules.html") is None


def test_live_input_gives_the_same_while_it_comes(events, tmp_path):
    lines = tmp_path / "events.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in events.to_pylist()))
    outputs = ("--output", "rows.jsonl", "--roll-ups", "live.jsonl")
    with lines.open() as stdin:
        ran = run("evaluate", "-", *WINDOW, *GROUPS, *RULES, *outputs, stdin=stdin, cwd=tmp_path)
    assert ran.status == 0, ran
    with open("live.jsonl") as written:  # noqa: PTH123
        live = [json.loads(line) for line in written]
    expected = rs.roll_up("rows.jsonl", by=BY).to_pylist()
    key = lambda row: (row["group"], row["row"])  # noqa: E731
    names = ("group", "row", "members", "members_silent", "auc_mean", "worst", "worst_p", "reason")
    assert sorted([[row[name] for name in names] for row in live], key=repr) == sorted(
        [[row[name] for name in names] for row in expected], key=repr
    )
    assert [key(row) for row in live if row["group"] == "models"] == [("models", n) for n in range(9)]
    assert any("alert opened" in line and "models" in line for line in ran.lines)


def test_a_short_input_without_a_grid_point_gives_none(events, capsys):
    pq.write_table(events.slice(1, 20), "few.parquet")
    ran = call(
        capsys, "evaluate", "few.parquet", *WINDOW, "--roll-up", "models",
        "--output", "rows.parquet", "--roll-ups", "found.parquet",
    )  # fmt: skip
    assert ran.status == 0, ran
    assert pq.read_table("found.parquet").num_rows == 0
    assert "no roll-up rows: no row on the grid of times belongs to " in " ".join(ran.lines)


def test_a_pattern_of_no_model_is_told_of(events, capsys):
    words = ("--roll-up", "x*", "--output", "rows.parquet", "--roll-ups", "found.parquet")
    ran = call(capsys, "evaluate", "events.parquet", *WINDOW, *words)
    assert ran.status == 0
    assert any(line.endswith("belongs to x*") for line in ran.lines)
    ran = call(capsys, "evaluate", "events.parquet", *WINDOW, *words, "--roll-up", "models")
    assert "no roll-up rows" not in " ".join(ran.lines)


def test_slices_without_a_column_of_slices_are_refused(events, capsys):
    words = ("--time", "time", "--every", "1h", "--roll-up", "slices", "--roll-ups", "found.parquet")
    ran = call(capsys, "evaluate", "events.parquet", *words, "--output", "rows.parquet")
    assert (ran.status, len(ran.lines)) == (2, 1), ran
    assert "--roll-up slices: there are no slices; name their columns with --slice COL" in ran.lines[0]


def test_a_rule_that_no_group_passes_is_told_which_groups_there_are(events, capsys):
    rule = ("--alert", "auc_mean < 0.8 where group = 'model'")
    ran = call(capsys, "evaluate", "events.parquet", *WINDOW, *GROUPS, *rule, "--output", "rows.parquet")
    assert (
        "  no group passes 'where' of a rule; check the names in the rules (groups are 'models' and "
        "model=MODEL,slice=COLUMN and 't/*')"
    ) in ran.lines


REFUSED = [
    (("--roll-ups", "x.csv"), "there are no groups; name them with --roll-up"),
    (("--stale", "1h"), "there are no groups"),
    (("--dependent",), "there are no groups"),
    (("--alert", "auc_mean < 0.8"), "watches groups; name them"),
    (("--roll-up", "models"), "name where the roll-up rows go, with --roll-ups PATH"),
    (("--roll-up", "modles", "--roll-ups", "x.csv"), "--roll-up 'modles' is no pattern"),
    (("--roll-up", "models", "--roll-ups", "x.csv", "--measures", "kappa"), "the AUC is not computed"),
    (("--roll-up", "models", "--roll-ups", "x.csv", "--stale", "soon"), "--stale soon"),
    (("--roll-up", "models", "--roll-ups", "x.csv", "--order", "arrival"), "order 'arrival' never says"),
    (("--roll-up", "models", "--roll-ups", "rows.parquet"), "is the file of the rows"),
]


@pytest.mark.parametrize(("options", "said"), REFUSED)
def test_options_that_cannot_be_are_refused_before_the_job(events, capsys, options, said):
    ran = call(capsys, "evaluate", "events.parquet", *WINDOW, *options, "--output", "rows.parquet")
    assert (ran.status, len(ran.lines)) == (2, 1), ran
    assert said in ran.lines[0]


def test_rows_by_number_of_events_are_of_no_common_moment(events, capsys):
    options = ("--every", "100", "--roll-up", "models", "--roll-ups", "x.csv")
    ran = call(capsys, "evaluate", "events.parquet", *options, "--output", "rows.parquet")
    assert ran.status == 2
    assert "with --every 100 rows are of no common moment; give a grid of times" in ran.lines[0]


GAPS = (
    "heterogeneity_p < 0.001 where group like 'model=*'",
    "worst_gap_high < 0 for 2 rows where group like '*'",
)


def test_rules_on_gaps_name_the_model_whose_slice_fell_in_files_live_and_over_rows(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rng, n = np.random.default_rng(2), 12_000
    label, model, c = rng.random(n) < 0.4, rng.choice(["a", "b"], n), rng.choice(["x", "y", "z"], n)
    falls = (model == "a") & (c == "y") & (np.arange(n) > n // 3)
    score = rng.normal(np.where(falls, 0.4, 1.4) * label)
    columns = {
        "model": model,
        "c": c,
        "time": np.arange(n) * 10.0,
        "label": label.astype(int),
        "score": score,
    }
    events = pa.table(columns)
    pq.write_table(events, "events.parquet")
    rules = [word for rule in GAPS for word in ("--alert", rule)]
    words = (
        "--time",
        "time",
        "--window",
        "last:1000",
        "--every",
        "3h",
        "--slice",
        "c",
        "--roll-up",
        "slices",
        *rules,
    )
    outputs = ("--output", "rows.parquet", "--alerts", "alerts.jsonl")
    assert call(capsys, "evaluate", "events.parquet", *words, *outputs).status == 0
    alerts = Path("alerts.jsonl").read_text().splitlines()
    opened = [(told["model"], told["rule"]) for told in map(json.loads, alerts) if told["state"] == "open"]
    assert sorted(opened) == sorted(("model=a,slice=c", rule) for rule in GAPS)

    table = rs.FleetTable(rs.RollUpSettings(("slices",)))
    gaps = table.take([*rs.read_rows("rows.parquet")]) + table.finish()
    watched = rs.AlertTable([rs.parse_alert(rule) for rule in GAPS]).watch(gaps)
    assert sorted(alert.message for alert in watched) == sorted(
        json.loads(line)["message"] for line in alerts
    )
    newest = gaps[max(place for place, row in enumerate(gaps) if row.group == "model=a,slice=c")]
    assert (newest.worst, newest.members, newest.intervals) == ("c=y", 3, "independent")

    lines = "".join(json.dumps(row) + "\n" for row in events.to_pylist())
    Path("events.jsonl").write_text(lines)
    with Path("events.jsonl").open() as stdin:
        live = ("--output", "live.jsonl", "--alerts", "live-alerts.jsonl")
        ran = run("evaluate", "-", *words, *live, stdin=stdin, cwd=tmp_path)
    assert ran.status == 0, ran
    assert sorted(Path("live-alerts.jsonl").read_text().splitlines()) == sorted(alerts)
