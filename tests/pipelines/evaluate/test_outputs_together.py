"""One job with roll-ups, pairs, and rules on groups and on evidence: each as in a job of its own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.processes.command import call, run

N = 3_000
COMMON = (
    "--time",
    "time",
    "--id",
    "id",
    "--window",
    "last:400",
    "--every",
    "30m",
    "--order",
    "time:1m",
    "--evidence-below",
    "0.9",
)
PAIRS = ("--champion", "a", "--pair-within", "0s")
GROUPS = ("--roll-up", "models", "--roll-up", "a*")
ON_GROUPS = ("--alert", "auc_mean > 0.5 where group = 'models'")
ON_PAIRS = ("--alert", "difference > 0.01 where model = 'b'")
SURELY = ("--alert", "auc surely < 0.9", "--false-alarms", "1 per 1000000")
"""Rules on rows, on groups and on pairs have one budget."""


@pytest.fixture
def events(tmp_path, monkeypatch):
    """Two models that score the same instances, of one time each; their AUC is near 0.75."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    label = (rng.random(N) < 0.4).astype(int)
    parts = [
        pa.table(
            {"model": [model] * N, "score": rng.normal(strength * label), "label": label, "id": np.arange(N),
             "time": np.arange(N) * 5.0}
        )
        for model, strength in (("a", 1.0), ("b", 0.9))
    ]  # fmt: skip
    table = pa.concat_tables(parts).sort_by([("time", "ascending"), ("model", "ascending")])
    pq.write_table(table, "events.parquet")
    return table


def lines(name):
    return sorted(Path(name).read_text().splitlines())


def told(name):
    return sorted(
        (alert["rule"], alert["model"], alert["state"], alert["row"])
        for alert in map(json.loads, lines(name))
    )


def test_each_output_is_that_of_a_job_of_its_own(events, capsys):
    def evaluate(name, *options):
        ran = call(capsys, "evaluate", "events.parquet", *COMMON, *options, "--output", f"{name}.jsonl")
        assert ran.status == 0, ran

    evaluate(
        "all", *PAIRS, "--pairs", "pairs.jsonl", *GROUPS, "--roll-ups", "roll-ups.jsonl",
        *ON_GROUPS, *ON_PAIRS, *SURELY, "--alerts", "alerts.jsonl",
    )  # fmt: skip
    evaluate("1", *PAIRS, "--pairs", "pairs-1.jsonl", *ON_PAIRS, "--alerts", "alerts-3.jsonl")
    evaluate("2", *GROUPS, "--roll-ups", "roll-ups-1.jsonl", *ON_GROUPS, "--alerts", "alerts-1.jsonl")
    evaluate("3", *SURELY, "--alerts", "alerts-2.jsonl")
    assert lines("all.jsonl") == lines("1.jsonl") == lines("2.jsonl") == lines("3.jsonl")
    assert lines("pairs.jsonl") == lines("pairs-1.jsonl") != []
    assert lines("roll-ups.jsonl") == lines("roll-ups-1.jsonl") != []
    apart = [line for number in (1, 2, 3) for line in lines(f"alerts-{number}.jsonl")]
    assert lines("alerts.jsonl") == sorted(apart)
    assert {model for _, model, _, _ in told("alerts.jsonl")} == {"models", "a", "b", "b against a"}


def test_a_live_job_has_the_outputs_of_a_job_of_files(events, tmp_path, capsys):
    Path("events.jsonl").write_text("".join(json.dumps(row) + "\n" for row in events.to_pylist()))
    options = (*COMMON, *PAIRS, *GROUPS, *ON_GROUPS, *ON_PAIRS, *SURELY)

    def outputs(name):
        kinds = ("output", "pairs", "roll-ups", "alerts")
        return [word for kind in kinds for word in (f"--{kind}", f"{name}-{kind}.jsonl")]

    ran = call(capsys, "evaluate", "events.jsonl", *options, *outputs("file"))
    assert ran.status == 0, ran
    with open("events.jsonl") as stdin:  # noqa: PTH123
        ran = run("evaluate", "-", *options, *outputs("live"), stdin=stdin, cwd=tmp_path)
    assert ran.status == 0, ran
    for kind in ("output", "pairs", "roll-ups"):
        assert lines(f"live-{kind}.jsonl") == lines(f"file-{kind}.jsonl") != []
    assert told("live-alerts.jsonl") == told("file-alerts.jsonl") != []
