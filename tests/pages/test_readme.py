"""The README is short, its first screen shows what matters, and its commands are those that CI types.

tests/pages runs its snippets.
"""

from __future__ import annotations

import re

from tests.support import ROOT

README = (ROOT / "README.md").read_text("utf-8")
LINES = README.splitlines()
FRONT = (ROOT / "docs/index.md").read_text("utf-8")
COMMANDS = [
    f"    python3 -m venv .venv && .venv/bin/pip install '.[{extra}]' && .venv/bin/{last}"
    for extra, last in (("demo", "rocsteady demo"), ("test", "pytest"))
]
LARGEST_PICTURE = 100_000
"""Bytes. The picture is loaded by everybody who looks at the README."""


def test_the_readme_is_short():
    assert len(LINES) <= 220
    assert len(README.split()) <= 1_200


def test_the_two_commands_are_whole_lines_of_the_first_25():
    assert [line for line in LINES if line.startswith("    python3")] == COMMANDS
    assert set(COMMANDS) <= set(LINES[:25])


def test_the_first_python_is_within_60_lines_and_shows_what_it_prints():
    begin = LINES.index("```python")
    assert begin < 60
    end = LINES.index("```", begin)
    assert LINES[end + 1 : end + 3] == ["", "```text"]


def test_the_picture_is_there_and_small():
    (picture,) = re.findall(r"!\[.+\]\((.+)\)", README)
    assert (ROOT / picture).stat().st_size < LARGEST_PICTURE


def test_the_front_page_says_what_the_readme_says():
    first = re.compile(r"\*\*How well.*?\n\n", re.DOTALL)
    assert first.findall(README) == first.findall(FRONT)
    bullets = re.findall(r"^- .*$", README.partition("rocsteady is not published")[0], re.MULTILINE)
    assert len(bullets) == 7
    assert [bullet.replace("](docs/", "](") for bullet in bullets] == re.findall(
        r"^- .*$", FRONT, re.MULTILINE
    )


def cells_of(page: str, section: str, first: str) -> list[str]:
    """The cells of a line in a section of a page, behind the first cells."""
    text = (ROOT / page).read_text("utf-8").partition(section)[2]
    return text.partition(f"\n| {first} | ")[2].partition(" |\n")[0].split(" | ")


def test_the_seconds_are_those_of_the_benchmarks():
    many = cells_of("docs/benchmarks/pipeline.md", "## By number of models", "1,000 | last:1000")
    one = "## One file, one row per model: 1,000 models"
    ours = cells_of("docs/benchmarks/pipeline.md", one, "rocsteady, its default row")
    polars = cells_of("docs/benchmarks/pipeline.md", one, "polars, AUC alone")
    short = [f"{float(seconds):.1f}" for seconds in (many[5], polars[0], ours[0])]
    front = "docs/benchmarks/index.md"
    rows = [
        "1,000 models | last:1000",
        "polars | AUC",
        "`rocsteady evaluate --window all` | all usual measures, AUC with its interval",
    ]
    told = [cells_of(front, "# Benchmarks", row) for row in rows]
    assert [told[0][2], told[1][0], told[2][0]] == short
    for page in (README, FRONT):
        assert re.findall(r"\btakes? ([\d.]+) s on one core", page) == short[:1]
    assert re.findall(r"in ([\d.]+) s; `rocsteady evaluate` takes ([\d.]+) s", README) == [tuple(short[1:])]


def test_the_demos_lines_are_those_of_the_demos_page():
    """`.ci/run` holds both against what the demo prints."""
    begin = next(index for index, line in enumerate(LINES) if line.startswith("Does the flight"))
    shown = LINES[begin : LINES.index("```", begin)]
    page = iter((ROOT / "docs/tutorials/demo.md").read_text("utf-8").splitlines())
    assert [line for line in shown if line not in page] == []
