"""README and docs tell the truth: snippets run and print what is shown, commands are those that CI types."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest
from rocsteady.core.rows import COLUMNS
from rocsteady.pipelines.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
SNIPPET = re.compile(r"```python\n(.*?)```(?:\n+```text\n(.*?)```)?", re.DOTALL)
"""Python, and right after it what it prints, if that is shown."""

SNIPPETS = [text for text, _ in SNIPPET.findall(README)]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ALL_SNIPPETS = [
    pytest.param(page.name, text, shown, id=f"{page.name} {index} {text.splitlines()[0]}")
    for page in PAGES
    for index, (text, shown) in enumerate(SNIPPET.findall(page.read_text()))
]


@pytest.mark.parametrize(("page", "snippet", "shown"), ALL_SNIPPETS)
def test_every_python_snippet_runs_as_written_and_prints_what_is_shown(
    page, snippet, shown, tmp_path, monkeypatch, capsys
):
    if "river" in snippet:
        pytest.importorskip("river", reason="pip install '.[test]'")
    monkeypatch.chdir(tmp_path)
    exec(compile(snippet, page, "exec"), {"__name__": "readme"})
    if shown:
        assert capsys.readouterr().out == shown


def test_the_pipeline_prints_its_rows(capsys):
    pipeline = next(text for text in SNIPPETS if "EvaluateModels" in text)
    exec(compile(pipeline, "README.md", "exec"), {"__name__": "readme"})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["churn", "250"],
        ["churn", "500"],
        ["churn", "750"],
        ["churn", "1000"],
    ]


def test_the_evaluate_command_runs_as_written(tmp_path, monkeypatch, capsys):
    command = re.search(r"```bash\n(rocsteady evaluate .*?)```", README, re.DOTALL)
    assert command
    words = shlex.split(command.group(1).replace("\\\n", " "))
    monkeypatch.chdir(tmp_path)
    n = 3_000
    table = pa.table(
        {
            "p": [i % 97 / 97 for i in range(n)],
            "clicked": [int(i % 89 > 40) for i in range(n)],
            "country": [("NZ", "FR")[i % 2] for i in range(n)],
        }
    )
    pa.csv.write_csv(table, "scores.csv")
    assert main(words[1:]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "rejected.jsonl",
        "report.html",
        "rows.parquet",
        "scores.csv",
    ]
    assert "3,000 events read = 3,000 applied + 0 dead letters" in capsys.readouterr().err


def test_every_column_of_a_row_is_in_the_table():
    said = set(re.findall(r"`(\w+)`", README.partition("## What a row says")[2].partition("## How it is")[0]))
    span = {"fp", "tn", "fn", "accuracy", "precision", "recall", "specificity"}  # "`tp` ... `f1`"
    assert set(COLUMNS) - said == span


def test_the_two_commands_are_whole_lines():
    for extra, last in (("demo", "rocsteady demo"), ("test", "pytest")):
        line = f"    python3 -m venv .venv && .venv/bin/pip install '.[{extra}]' && .venv/bin/{last}"
        assert README.splitlines().count(line) == 1
