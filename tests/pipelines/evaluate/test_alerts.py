"""`evaluate --alert`: what the rules say of the rows in the file, in a file of their own or on stderr."""

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
from rocsteady.core.alerts.alert_rows import WatchedRows
from rocsteady.core.alerts.table import AlertTable
from rocsteady.core.events.records import EndOfInput
from rocsteady.core.rows.columns import COLUMNS, TIME_COLUMNS
from rocsteady.transforms.events.dead_letters import in_columns
from rocsteady.transforms.sinks.kinds import ALERT_ORDER, ALERT_SCHEMA

from tests.support.processes.command import call, evaluated, names

N = 3_000
RULES = ("auc_high < 0.75 for 2 rows", "auc drops by 0.02 against 10m", "kappa_m < 0.05 until kappa_m > 0.1")
OPTIONS = ("--time", "when", "--slice", "country", "--window", "last:300", "--every", "100")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    """Two models; from the middle on one of them ranks worse, and then better again."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    label, model, place = rng.integers(0, 2, N), rng.choice(["m1", "m2"], N), np.arange(N)
    worse = (model == "m1") & (place > 1_200) & (place < 2_000)
    score = 1 / (1 + np.exp(-rng.normal(np.where(worse, 0.2, 1.5) * label, 1.0)))
    events = {
        "score": score.round(4), "label": label, "model": model, "when": 1_600_000_000 + place,
        "country": rng.choice(["AR", "DE"], N),
    }  # fmt: skip
    pa.csv.write_csv(pa.table(events), "s.csv")


def flags(rules=RULES):
    return [word for rule in rules for word in ("--alert", rule)]


def expected(rows, rules=RULES):
    """The alerts of rows as a file holds them, in its order."""
    records = []
    for row in rows:
        times = {name: row[name] and round(row[name].timestamp() * 1e6) for name in TIME_COLUMNS}
        records.append(rs.MeasureRow(**{name: (row | times)[name] for name in COLUMNS}))
    table = AlertTable([rs.parse_alert(rule) for rule in rules])
    alerts = table.apply(WatchedRows.of_records(records, table.columns).pack())
    alerts += table.apply(EndOfInput().pack())
    found = pa.Table.from_batches([in_columns(alerts, ALERT_SCHEMA)])
    return found.sort_by([(name, "ascending") for name in ALERT_ORDER])


PERIOD = "2020-09-13T12:26:40..2020-09-13T12:40"
"""The first 800 events."""


@pytest.mark.parametrize("more", [(), ("--block-gap", "3s")])
def test_a_rule_on_a_drop_gives_rows_their_evidence(capsys, more):
    rule = f"auc surely drops by 0.02 against {PERIOD} at 500"
    options = (*OPTIONS, "--alert", rule, *more)
    rows = evaluated(capsys, "s.csv", *options, "--alerts", "alerts.parquet")
    alerts = pq.read_table("alerts.parquet")
    assert alerts == expected(rows, (rule,))
    opened = [alert for alert in alerts.to_pylist() if alert["state"] == "open"]
    assert {alert["model"] for alert in opened} == {"m1"}
    assert all(0.7 < alert["reference_value"] < 0.85 for alert in opened)
    same = evaluated(capsys, "s.csv", *OPTIONS, "--evidence-below", f"{PERIOD} less 0.02", *more)
    assert rows == same


def test_the_file_holds_the_alerts_of_the_rows(capsys):
    rows = evaluated(capsys, "s.csv", *OPTIONS, *flags(), "--alerts", "alerts.parquet")
    table = pq.read_table("alerts.parquet")
    assert table.schema.equals(ALERT_SCHEMA)
    assert table.equals(expected(rows))
    found = table.to_pylist()
    assert {(alert["state"], alert["rule"]) for alert in found} >= {("open", RULES[0]), ("closed", RULES[1])}
    assert {alert["model"] for alert in found if alert["rule"] == RULES[0]} == {"m1"}


def test_the_last_line_says_what_opened_what_closed_and_where_that_stands(capsys):
    rules = flags([*RULES, "seq > 100"])
    ran = call(capsys, "evaluate", "s.csv", *OPTIONS, *rules, "--output", "r.csv", "--alerts", "a.csv")
    states = pa.csv.read_csv("a.csv")["state"].to_pylist()
    opened, closed = states.count("open"), states.count("closed")
    assert 0 < closed < opened
    assert ran.lines[1:] == [
        f"rocsteady: {opened} alerts opened, {closed} closed, {opened - closed} still open, in a.csv"
    ]


@pytest.mark.slow
def test_every_ending_says_the_same(capsys):
    for path in ("a.parquet", "a.csv", "a.jsonl", "a.csv.gz"):
        evaluated(capsys, "s.csv", *OPTIONS, *flags(), "--alerts", path)
    table = pq.read_table("a.parquet")
    assert gzip.decompress(Path("a.csv.gz").read_bytes()) == Path("a.csv").read_bytes()
    lines = [json.loads(line) for line in Path("a.jsonl").read_text().splitlines()]
    assert [line["message"] for line in lines] == table["message"].to_pylist()
    assert [line["value"] for line in lines] == table["value"].to_pylist()
    assert lines[0]["time"].endswith("Z")
    assert Path("a.csv").read_text().splitlines()[0] == ",".join(ALERT_SCHEMA.names)


def test_without_a_file_the_sentences_stand_on_stderr_in_order_of_time(capsys):
    rows = evaluated(capsys, "s.csv", *OPTIONS, *flags(), "--alerts", "a.parquet")
    alerts = expected(rows).sort_by(
        [(name, "ascending") for name in ("time", "model", "slice", "row", "rule")]
    )
    ran = call(capsys, "evaluate", "s.csv", *OPTIONS, *flags(), "--output", "r.csv")
    assert ran.lines[1].endswith(" still open; kept with --alerts PATH:")
    told = ran.lines[2:]
    if alerts.num_rows > 20:
        assert told.pop(0) == f"  the last 20 of {alerts.num_rows}:"
    assert told == [f"  {message}" for message in alerts["message"].to_pylist()[-20:]]
    assert names() == ["a.parquet", "r.csv", "rows.parquet", "s.csv"]


def test_of_many_alerts_the_last_twenty_are_shown(capsys):
    rules = [f"accuracy >= 0.{digit}" for digit in range(11, 40)]
    ran = call(capsys, "evaluate", "s.csv", *flags(rules), "--model-name", "m", "--output", "r.csv")
    assert ran.lines[1] == "rocsteady: 29 alerts opened, 0 closed, 29 still open; kept with --alerts PATH:"
    assert ran.lines[2] == "  the last 20 of 29:"
    assert len(ran.lines) == 23


def test_rules_that_never_open_leave_an_empty_table(capsys):
    ran = call(capsys, "evaluate", "s.csv", "--alert", "auc < 0", "--output", "r.csv", "--alerts", "a.csv")
    assert ran.lines[1:] == ["rocsteady: no alert opened; a.csv has no rows"]
    assert Path("a.csv").read_text() == ",".join(ALERT_SCHEMA.names) + "\n"


def test_a_rule_watches_the_models_and_slices_of_its_scope(capsys):
    scoped = (
        f"{RULES[0]} where slice = ''",
        f"{RULES[1]} where model like 'm[1*]'",
        "kappa_m < 0.3 where slice != 'country=DE' and slice like 'country=*'",
    )
    rows = evaluated(capsys, "s.csv", *OPTIONS, *flags(scoped), "--alerts", "a.parquet")
    found = pq.read_table("a.parquet")
    assert found.equals(expected(rows, scoped))
    seen = {(scoped.index(alert["rule"]), alert["model"], alert["slice"]) for alert in found.to_pylist()}
    assert {slice_ for rule, _, slice_ in seen if rule == 0} == {""}
    assert {model for rule, model, _ in seen if rule == 1} == {"m1"}
    assert {slice_ for rule, _, slice_ in seen if rule == 2} == {"country=AR"}


def test_a_scope_without_any_row_is_told(capsys):
    rules = flags(["auc > 0 where model like 'n*'", "auc > 0 where slice = 'country=de'"])
    ran = call(capsys, "evaluate", "s.csv", *OPTIONS, *rules, "--output", "r.csv")
    told = (
        "  no model and slice of the rows passes 'where' of a rule; check the names in the rules "
        "(slices are spelled '' or country=VALUE)"
    )
    assert ran.lines[1:] == ["rocsteady: no alert opened", told]


def test_a_cap_tells_the_first_of_a_day_and_counts_the_others_wherever_the_input_is_cut(capsys):
    rule = "kappa_m < 0.3 at most 2 a day"
    options = (*OPTIONS, "--alert", rule, "--output", "r.csv", "--alerts")
    ran = call(capsys, "evaluate", "s.csv", *options, "whole.jsonl", "--fail-if", "alerts_capped > 0")
    evaluated(capsys, "s.csv", *OPTIONS, "--alert", "kappa_m < 0.3", "--alerts", "all.parquet")
    alerts = pq.read_table("all.parquet").sort_by([("time", "ascending"), ("slice", "ascending")]).to_pylist()
    opened = [alert for alert in alerts if alert["state"] == "open"]
    days = [(alert["model"], alert["time"].date()) for alert in opened]
    first = [alert for at, alert in enumerate(opened) if days[:at].count(days[at]) < 2]
    assert len(first) < len(opened)
    told = [json.loads(line) for line in Path("whole.jsonl").read_text().splitlines()]
    where = ("model", "slice", "row")
    assert sorted([alert[name] for name in where] for alert in told if alert["state"] == "open") == sorted(
        [alert[name] for name in where] for alert in first
    )
    beyond = len(opened) - len(first)
    assert ran.lines[1].startswith(f"rocsteady: {len(first)} alerts opened, ")
    assert ran.lines[2] == f"  {beyond} more opened beyond 'at most N a day' of their rule, and are not told"
    assert ran.lines[-1] == (
        f"rocsteady: --fail-if 'alerts_capped > 0': alerts_capped is {beyond}; the exit status is 4"
    )
    header, *lines = Path("s.csv").read_text().splitlines()
    for part in range(3):
        Path(f"part{part}.csv").write_text("\n".join([header, *lines[part::3], ""]))
    call(capsys, "evaluate", "part*.csv", *options, "parts.jsonl", "--shards", "7")
    assert Path("parts.jsonl").read_bytes() == Path("whole.jsonl").read_bytes()


@pytest.mark.slow
def test_alerts_do_not_depend_on_how_the_input_is_cut(capsys):
    evaluated(capsys, "s.csv", *OPTIONS, *flags(), "--alerts", "whole.csv")
    header, *lines = Path("s.csv").read_text().splitlines()
    for part in range(3):
        Path(f"part{part}.csv").write_text("\n".join([header, *lines[part::3], ""]))
    evaluated(capsys, "part*.csv", *OPTIONS, *flags(), "--alerts", "parts.csv", "--shards", "7")
    assert Path("parts.csv").read_bytes() == Path("whole.csv").read_bytes()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--alert", "auc < 0.5 for 2h"), "'for 2h' goes by event time --time"),
        (("--alert", "auc drops against 7d"), "'against 7d' goes by event time --time"),
        (("--alert", "auc drops against 2013-01-01..2013-02-01"), "goes by event time --time"),
        (("--window", "all", "--alert", "auc drops against 3 rows"), "two windows of all last:N"),
        (("--alert", "auc < .8 until auc > .7"), "one value of auc opens the alert closes"),
        (("--alert", "auc < .8 at most 3 a day"), "'at most 3 a day' goes by event time --time"),
        (("--alert", "auc < .8 where slice = 'a=b'"), "where slice = 'a=b': without --slice"),
        (
            ("--slice", "country", "--alert", "auc < .8 where slice = 'contry=DE'"),
            "where slice = 'contry=DE': slices are spelled '' or country=VALUE",
        ),
        (
            ("--slice", "country", "--alert", "auc < .8 where slice = 'DE'"),
            "where slice = 'DE': slices are spelled '' or country=VALUE",
        ),
        (
            ("--model-name", "n", "--alert", "auc < .8 where model like 'm*'"),
            "where model like 'm*': the job's one model is --model-name 'n'",
        ),
        (
            ("--model-name", "n", "--score", "a", "--score", "b", "--alert", "auc < .8 where model = 'n'"),
            "where model = 'n': with --model-name 'n' the models are 'n/a', 'n/b'",
        ),
        (("--alert", ""), "--alert '': it ends where it needs a column"),
    ],
)
def test_a_rule_that_could_never_open_is_refused_in_a_sentence(options, words, capsys):
    ran = call(capsys, "evaluate", "s.csv", *options, "--output", "r.csv")
    assert (ran.status, len(ran.lines), names()) == (2, 1, ["s.csv"])
    assert ran.lines[0].startswith(("rocsteady: --alert '", 'rocsteady: --alert "'))
    assert all(word in ran.lines[0] for word in words.split())
