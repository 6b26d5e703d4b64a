"""Each command that reads CSV ends with an error where a quote is never closed, and names its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.processes.command import call

N = 400


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("good.csv")
    write("cut.csv", cut=100)


def write(name, cut=None):
    """Write events; the note of record `cut` opens a quote."""
    lines = ["id,time,score,label,note"]
    notes = ['"n' if i == cut else "n" for i in range(N)]
    lines += [f"{i},{i},{i % 9 / 10},{i % 2},{note}" for i, note in enumerate(notes)]
    Path(name).write_text("\n".join(lines) + "\n")


HOW = "a quote opens a field here, and the file ends inside the field, 300 lines below; close the quote"


@pytest.mark.parametrize(
    "command",
    [
        "evaluate cut.csv --output rows.csv",
        "evaluate cut.csv --time time --output rows.csv",
        "evaluate good.csv cut.csv --model-name m --output rows.csv",
        "evaluate good.csv --labels cut.csv --id id --time time --ttl 7d --output rows.csv",
        "evaluate cut.csv --labels good.csv --id id --time time --ttl 7d --output rows.csv",
        "prequential cut.csv --feature score --learner majority --output learned",
        "replay cut.csv --time time --speed max",
    ],
)
def test_a_job_ends_with_the_line_of_the_quote(command, capsys):
    ran = call(capsys, *command.split())
    assert ran.status == 1, ran
    assert ran.lines[-1].startswith(f"rocsteady: cut.csv, line 102: {HOW}")
    assert not Path("rows.csv").exists()


@pytest.mark.parametrize("role", ["events", "labels"])
def test_a_followed_folder_keeps_the_records_before_the_quote_and_a_letter_of_the_rest(role, capsys):
    options = []
    for name in ("in", "late"):
        Path(name).mkdir()
        Path(name, "_END").touch()
    Path("cut.csv").rename("in/a.csv" if role == "events" else "late/a.csv")
    Path("good.csv").rename("in/b.csv" if role == "events" else "in/a.csv")
    if role == "labels":
        options = ["--labels", "late", "--id", "id", "--time", "time", "--ttl", "7d"]
    ran = call(
        capsys, "evaluate", "in", "--follow", "--model-name", "m", *options, "--output", "rows/",
        "--dead-letters", "dead/",
    )  # fmt: skip
    letters = [json.loads(line) for part in Path("dead").iterdir() for line in part.read_text().splitlines()]
    (letter,) = [each for each in letters if each["reason"] == "file cannot be read"]
    assert letter["position"] == 100
    assert letter["detail"].startswith(f"{letter['source']}, line 102: {HOW}")
    assert any("line 102" in line for line in ran.lines)
    events = 100 + N if role == "events" else 100
    assert f"= {events} applied" in "\n".join(ran.lines)


@pytest.mark.parametrize(
    "command", ["show", "rows -o o.csv", "report -o r.html", "compare -o c.csv", "roll-up -o o.csv"]
)
def test_commands_that_read_rows_refuse_a_file_that_ends_inside_a_quote(command, capsys):
    assert call(capsys, "evaluate", "good.csv", "--output", "rows.csv").status == 0
    head, row = Path("rows.csv").read_text().splitlines()[:2]
    Path("rows.csv").write_text(f"{head}\n{row}\n" + row.rpartition(",")[0] + ',"cut\n' + f"{row}\n" * 9)
    name, *options = command.split()
    ran = call(capsys, name, "rows.csv", *options)
    assert ran.status != 0
    assert "rows.csv, line 3: a quote opens a field here, and " in "\n".join(ran.lines), ran
