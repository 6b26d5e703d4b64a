"""`evaluate --deduplicate`, `--slice-cap`, `--idle-ttl`: what they do to a file, and what is said."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.support.processes.command import call

N = 600
DAY = 86_400


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def events():
    """Three models, a score a minute; `c` falls silent for two days in the middle."""
    rng = np.random.default_rng(2)
    time = np.arange(N) * 60
    model = np.array(["a", "b", "c"])[np.arange(N) % 3]
    time[N // 2 :] += np.where(model[N // 2 :] == "c", 2 * DAY, 0)
    label = rng.integers(0, 2, N)
    columns = {
        "score": np.round(rng.normal(label), 2), "label": label, "model": model, "time": time,
        "id": np.arange(N), "user": [f"u{number}" for number in rng.integers(0, 40, N)],
    }  # fmt: skip
    return pa.table(columns)


def evaluate(capsys, *options):
    """Return the rows of every (model, slice), and what was said."""
    ran = call(capsys, "evaluate", *options, "--every", "50", "--output", "rows.parquet")
    assert ran.status == 0, ran.lines
    rows = pq.read_table("rows.parquet").to_pylist()
    return [{**row, "config": ""} for row in rows], "\n".join(ran.lines)


def test_events_that_come_twice_count_once_and_are_told_by_their_place(capsys):
    table = events()
    again = table.take([5, 17, 5, 300])
    late = again.set_column(3, "time", pa.array(again["time"].to_numpy() + 3_600))
    pa.csv.write_csv(table, "once.csv")
    pa.csv.write_csv(pa.concat_tables([table.slice(0, 400), late, table.slice(400)]), "twice.csv")
    options = ("--time", "time", "--id", "id", "--deduplicate", "2h")
    once, said = evaluate(capsys, "once.csv", *options)
    assert "duplicate" not in said
    twice, said = evaluate(capsys, "twice.csv", *options, "--dead-letters", "dead.csv")
    assert twice == once
    assert "604 events read = 600 applied + 0 dead letters + 4 duplicates;" in said
    letters = pa.csv.read_csv("dead.csv").to_pylist()
    assert {(row["kind"], row["source"], row["position"], row["model"], row["id"]) for row in letters} == {
        ("duplicate", "twice.csv", 400, "c", 5), ("duplicate", "twice.csv", 401, "c", 17),
        ("duplicate", "twice.csv", 402, "c", 5), ("duplicate", "twice.csv", 403, "a", 300),
    }  # fmt: skip
    assert {(row["reason"], row["detail"], row["gap_seconds"], row["limit_seconds"]) for row in letters} == {
        (
            "second event of this model and id", "its model and id came before, with a time 1h earlier",
            3_600, 7_200,
        )
    }  # fmt: skip
    assert '"score":' in letters[0]["raw"]
    without, _ = evaluate(capsys, "twice.csv", *options[:4])
    assert without != once


def test_values_beyond_the_cap_share_a_slice_and_the_summary_says_so(capsys):
    table = events()
    pa.csv.write_csv(table, "s.csv")
    options = ("s.csv", "--time", "time", "--id", "id", "--slice", "user")
    rows, said = evaluate(capsys, *options, "--slice-cap", "5")
    for model in "abc":
        own = [
            user
            for name, user in zip(*(table[c].to_pylist() for c in ("model", "user")), strict=True)
            if name == model
        ]
        first = list(dict.fromkeys(own))[:5]
        last = {row["slice"]: row["seq"] for row in rows if row["model"] == model}
        assert last.pop("") == len(own)
        assert last.pop("user=other") == sum(user not in first for user in own)
        assert last == {f"user={user}": own.count(user) for user in first}
    beyond = sum(
        max(row["seq"] for row in rows if (row["model"], row["slice"]) == (m, "user=other")) for m in "abc"
    )
    told = f"rocsteady: {beyond:,} events of slices are in their slice of others: --slice-cap 5 says how many"
    assert told in said
    _, said = evaluate(capsys, *options)
    assert "slice of others" not in said


@pytest.mark.slow
@pytest.mark.parametrize("order", ["time", "position", "arrival"])
def test_a_model_that_was_silent_returns_with_an_empty_window(capsys, order):
    pa.csv.write_csv(events(), "s.csv")
    rows, said = evaluate(capsys, "s.csv", "--time", "time", "--order", order, "--idle-ttl", "1d")
    silent = [row for row in rows if row["model"] == "c"]
    assert [row["row"] for row in silent] == list(range(len(silent)))
    assert [(row["seq"], row["window_events"]) for row in silent] == [
        (50, 50), (100, 100), (150, 50), (200, 100),
    ]  # fmt: skip
    left = "1 time" if order == "arrival" else "3 times"  # the others had ended when the last event came
    assert f"silent for longer than --idle-ttl 1d: {left} a model or a slice of one gave a last row" in said
    at_length, said = evaluate(capsys, "s.csv", "--time", "time", "--order", order, "--idle-ttl", "3d")
    assert "silent for longer" not in said
    assert at_length == evaluate(capsys, "s.csv", "--time", "time", "--order", order)[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--deduplicate", "7d"), "--deduplicate 7d needs times; name their column with --time COL"),
        (
            ("--deduplicate", "7d", "--time", "time"),
            "--deduplicate 7d needs ids; name their column with --id COL",
        ),
        (("--idle-ttl", "7d"), "--idle-ttl 7d needs times; name their column with --time COL"),
        (("--idle-ttl", "soon", "--time", "time"), "--idle-ttl soon: 'soon' is no duration"),
        (("--slice-cap", "0"), "--slice-cap '0': give a whole number, 1 or more"),
        (("--slice-cap", "many"), "--slice-cap 'many': give a whole number, 1 or more"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_the_job(capsys, options, message):
    pa.csv.write_csv(events(), "s.csv")
    ran = call(capsys, "evaluate", "s.csv", *options, "--output", "rows.csv")
    assert ran.status == 2
    assert message in ran.lines[-1]


def test_a_label_that_is_left_over_is_shown_in_its_own_words(capsys):
    Path("p.csv").write_text("id,score,t\na,0.5,100\n")
    Path("l.csv").write_text("id,label,t\na,yes,160\nb,yes,170\nc,perhaps,180\n")
    ran = call(
        capsys, "evaluate", "p.csv", "--labels", "l.csv", "--id", "id", "--time", "t", "--positive", "yes",
        "--ttl", "1h", "--output", "o.csv", "--dead-letters", "d.jsonl",
    )  # fmt: skip
    assert ran.status == 0
    letters = [json.loads(line) for line in Path("d.jsonl").read_text().splitlines()]
    assert [(letter["id"], json.loads(letter["raw"])["label"]) for letter in letters] == [
        ("b", "yes"), ("c", "perhaps"),
    ]  # fmt: skip
