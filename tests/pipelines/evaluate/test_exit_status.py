"""The exit status of jobs that run to their end: whether anything was evaluated, and rules of --fail-if."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import ConfigError
from rocsteady.pipelines.evaluate.exit_status import parse_fail_rule, status_of
from rocsteady.transforms.beam.metrics import COUNTERS

from tests.support.processes.command import call, names
from tests.support.thorough import examples


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"id": i, "score": i / 100, "label": i % 2, "t": i} for i in range(100)]
    Path("good.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    Path("dead.jsonl").write_text('{"score": "x", "label": 1}\n' * 20)
    Path("mixed.jsonl").write_text(Path("good.jsonl").read_text() + '{"score": 0.5}\n{"score": 0.6}\n')
    Path("none.csv").write_text("score,label\n")
    Path("other.jsonl").write_text('{"id": 1000, "label": 1, "t": 5}\n')


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("dead.jsonl", 3),
        ("none.csv", 0),
        ("good.jsonl dead.jsonl", 0),
        ("good.jsonl --id id --time t --labels other.jsonl --ttl 1s", 3),
        ("mixed.jsonl --fail-if dead_letters>1%", 4),
        ("mixed.jsonl --fail-if late>0 --fail-if rows<1", 0),
        ("mixed.jsonl --fail-if late>0 --fail-if applied<=100", 4),
        ("dead.jsonl --fail-if dead_letters>1%", 3),
        ("none.csv --fail-if dead_letters>=0%", 0),
        ("none.csv --fail-if applied<1", 4),
    ],
)
def test_the_status_says_whether_anything_was_evaluated(words, status, capsys):
    ran = call(capsys, "evaluate", *words.split(), "--output", "rows.csv")
    assert ran.status == status, ran
    assert Path("rows.csv").read_text().startswith("model,slice,row,")
    assert ran.lines[-1].endswith(f"; the exit status is {status}") == bool(status)


def test_a_rule_that_holds_names_itself_and_what_it_compared(capsys):
    ran = call(capsys, "evaluate", "mixed.jsonl", "--output", "r.csv", "--fail-if", "Dead Letters > 1.5 %")
    assert ran.lines[-1] == (
        "rocsteady: --fail-if 'Dead Letters > 1.5 %': dead_letters is 2 of 102 events read, which is 1.96%; "
        "the exit status is 4"
    )


def test_where_nothing_was_applied_and_a_rule_holds_each_line_names_the_one_status(capsys):
    ran = call(capsys, "evaluate", "dead.jsonl", "--output", "r.csv", "--fail-if", "dead_letters > 1%")
    rule, nothing = (line for line in ran.lines if "exit status" in line)
    assert rule.endswith("dead_letters is 20 of 20 events read, which is 100%; the exit status is 3")
    assert nothing.endswith("of 20 records none was applied; the exit status is 3")


@pytest.mark.parametrize(("file", "status"), [("dead.jsonl", 3), ("/dev/null", 0), ("good.jsonl", 0)])
def test_of_stdin_too(file, status, monkeypatch, capsys):
    with Path(file).open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        ran = call(capsys, "evaluate", "-", "--output", "rows.jsonl", "--fail-if", "dead_letters > 30%")
    assert ran.status == status, ran


@pytest.mark.slow
def test_of_prequential_too(capsys):
    Path("dead.jsonl").write_text('{"x": 0.5, "label": 1, "t": "soon"}\n' * 20)
    words = (
        "--time",
        "t",
        "--learner",
        "majority",
        "--learner",
        "persistent",
        "--folds",
        "2",
        "--output",
        "out",
    )
    ran = call(capsys, "prequential", "dead.jsonl", *words, "--fail-if", "dead_letters > 30")
    assert (ran.status, ran.lines[-1][-20:]) == (3, "the exit status is 3"), ran


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("dead_leters > 1%", "did you mean 'dead_letters'? docs/reference/metrics.md has all counters"),
        (
            "score > 1",
            "there are read, applied, invalid, duplicates, rows and others: docs/reference/metrics.md",
        ),
        ("dead_letters", "give COUNTER > NUMBER"),
        ("dead_letters > -1", "give COUNTER > NUMBER"),
        ("dead_letters == 1", "give COUNTER > NUMBER"),
        ("", "give COUNTER > NUMBER"),
        ("rows > 1%", "rows_written is no share of the records that are read"),
    ],
)
def test_a_rule_that_is_none_is_refused_before_the_job(rule, said, capsys):
    before = names()
    ran = call(capsys, "evaluate", "good.jsonl", "--output", "r.csv", "--fail-if", rule)
    assert (ran.status, len(ran.lines), names()) == (2, 1, before)
    assert said in ran.lines[0]


@given(
    st.sampled_from(["late", "labels_late", "unmatched"]), st.sampled_from([">", ">=", "<", "<="]),
    st.decimals(0, 200, places=3), st.integers(0, 1000), st.integers(0, 1000), st.booleans(),
)  # fmt: skip
@settings(max_examples=examples(50))
def test_rules_compare_exactly(counter, compare, number, count, read, percent):
    whole = "labels_read" if counter.startswith("labels") else "events_read"
    rule = parse_fail_rule(f"{counter}{compare}{number:f}{'%' * percent}")
    limit = Fraction(number) * (Fraction(read, 100) if percent else 1)
    expected = {">": count > limit, ">=": count >= limit, "<": count < limit, "<=": count <= limit}[compare]
    counts = {counter: count, whole: read}
    assert rule.holds(counts) == (expected and (read > 0 or not percent))
    if rule.holds(counts):
        assert f"{counter} is {count:,}" in rule.said(counts)


def test_every_counter_can_be_in_a_rule():
    for counter in COUNTERS:
        assert parse_fail_rule(f"{counter} > 1").counter == counter
    with pytest.raises(ConfigError):
        parse_fail_rule("kept > 1")


def test_what_waits_in_a_state_is_not_lost():
    assert status_of({"events_read": 5, "events_kept": 5}, ()) == 0
    assert status_of({"events_read": 5}, (), goes_on=True) == 0
    assert status_of({"labels_read": 5}, ()) == 3
