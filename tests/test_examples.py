"""Every file of examples/ runs as its first lines say, and gives what it promises."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import rocsteady as rs

from tests.support import ROOT
from tests.support.processes.command import PROGRAM

EXAMPLES = ROOT / "examples"
INDEX = (EXAMPLES / "README.md").read_text("utf-8")
COMMAND = re.compile(r"^#? {4,5}((?:python|sh) (?:[^\n]*\\\n)*[^\n]*)$", re.MULTILINE)


MODELS = {"model-000", "model-001", "model-007"}
"""Those of predictions.csv."""


def commands_of(name: str) -> list[str]:
    """Return the commands that the first lines of an example give, each on one line."""
    found = COMMAND.findall((EXAMPLES / name).read_text("utf-8"))
    return [re.sub(r"\\\n#? +", "", command) for command in found]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a link to the examples, where `rocsteady` and `python` are those under test."""
    (tmp_path / "examples").symlink_to(EXAMPLES)
    (tmp_path / "bin").mkdir()
    (tmp_path / "command.py").write_text(PROGRAM)
    for name, words in {"python": [], "rocsteady": [str(tmp_path / "command.py")]}.items():
        shim = tmp_path / "bin" / name
        shim.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, *words])} "$@"\n')
        shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(name: str) -> str:
    """Run the commands of an example; return what the last one prints."""
    out = ""
    assert commands_of(name)
    for command in commands_of(name):
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stderr)
        out = done.stdout
    return out


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_the_index_names_every_file() -> None:
    there = {str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("*.*") if path.suffix != ".pyc"}
    there |= {"deploy/Dockerfile"}
    assert set(re.findall(r"\]\((?!\.\./)([\w./-]+)\)", INDEX)) == there - {"README.md"}


@pytest.mark.slow
def test_the_nightly_job_goes_on_from_its_state_finds_the_model_that_got_worse_and_runs_no_night_twice(
    place: Path,
) -> None:
    table = run("nightly.sh")
    assert table.startswith("1 of 200 models ranks worse than it did; 199 show no change.")
    assert "model-007" in next(line for line in table.splitlines() if "  worse " in line)
    assert (place / "work" / "report.html").stat().st_size > 1_000_000
    assert {path.name for path in (place / "work" / "rows").iterdir()} == {"day1.parquet", "day2.parquet"}
    assert (place / "work" / "models.txt").read_text("utf-8") == table
    rows = {path: path.read_bytes() for path in (place / "work" / "rows").iterdir()}
    again = ["sh", "examples/nightly.sh", "data/day2.csv", "work"]
    assert subprocess.run(again, capture_output=True, check=False).returncode == 4  # late > 1%
    assert {path: path.read_bytes() for path in (place / "work" / "rows").iterdir()} == rows


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("make_data.py", "make_data.py data"),
        ("join_labels.py predictions.csv", "join_labels.py data/predictions.csv"),
        ("join_labels.py nowhere.csv labels.csv out", "nowhere.csv does not exist"),
        ("service.py state.bin", "service.py state.bin 8080"),
        ("service.py examples/deploy/Dockerfile 0", "no rocsteady snapshot"),
        ("service.py state.bin 99999", "port 99999: "),
    ],
)
def test_an_example_that_lacks_something_says_so(place: Path, arguments: str, said: str) -> None:
    name, *rest = arguments.split()
    command = [sys.executable, str(EXAMPLES / name), *rest]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_notebook_finds_the_model_that_ranks_worst(place: Path) -> None:
    assert "model-007" in run("notebook.py")
    assert (place / "data" / "report.html").is_file()


def test_the_pipeline_joins_and_tells_what_it_leaves_out(place: Path) -> None:
    run("join_labels.py")
    predictions = len((place / "data" / "predictions.csv").read_text().splitlines()) - 1
    labels = len((place / "data" / "labels.csv").read_text().splitlines()) - 1
    rows = lines_of(place / "out" / "rows.jsonl")
    assert {row["model"] for row in rows} == MODELS
    assert sum(max(row["seq"] for row in rows if row["model"] == model) for model in MODELS) == labels
    assert len(lines_of(place / "out" / "unmatched.jsonl")) == predictions - labels
    assert {alert["model"] for alert in lines_of(place / "out" / "alerts.jsonl")} == {"model-007"}
    assert lines_of(place / "out" / "dead_letters.jsonl") == []


def test_the_own_learner_runs_and_is_found_better(place: Path) -> None:
    assert run("sliding_mean.py").splitlines()[-1] == "{True: 0.75, False: 0.25}"
    assert run("compare_learners.py").splitlines() == [
        "auc: sliding-mean is better, p = 0.0312",
        "accuracy: sliding-mean is better, p = 0.0312",
    ]


def test_the_service_goes_on_where_it_was_stopped(place: Path) -> None:
    """The port is 0 in place of 8080: the system gives one that is free."""
    program = [sys.executable, str(EXAMPLES / "service.py"), "state.bin", "0"]
    (command,) = commands_of("service.py")
    assert command == "python examples/service.py state.bin 8080"
    events = [{"label": number % 2, "score": number * 7 % 10 / 10} for number in range(20)]

    def served(asked: list[dict[str, float]]) -> dict[str, Any]:
        quiet: dict[str, Any] = {"stderr": subprocess.DEVNULL}
        with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, **quiet) as service:
            assert service.stdout
            try:
                url = service.stdout.readline().split()[-1]
                for event in asked:
                    with urllib.request.urlopen(url, json.dumps(event).encode(), timeout=60) as answer:
                        assert json.load(answer) == {"applied": 1}
                with urllib.request.urlopen(url, timeout=60) as answer:
                    measures: dict[str, Any] = json.load(answer)
            finally:
                service.send_signal(signal.SIGTERM)
            assert service.wait(60) == 0
        return measures

    served(events[:12])
    measures = served(events[12:])
    once = rs.ModelEvaluator()
    once.update([event["label"] for event in events], [event["score"] for event in events])
    assert measures["window_events"] == 20
    assert measures["auc"] == once.measures().auc


@pytest.mark.slow
@pytest.mark.parametrize("name", ["evaluate.yaml", "join_labels.yaml"])
def test_the_pipelines_in_yaml_run_as_they_say(place: Path, name: str) -> None:
    """What they give is held against the command in tests/transforms/test_yaml_transforms.py."""
    pytest.importorskip("apache_beam.yaml.main", reason="pip install '.[yaml]'")
    run(name)
    assert list(place.glob("*/rows.jsonl*"))
