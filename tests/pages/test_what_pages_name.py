"""What pages say of the code is there: paths, names in modules, rooms, and sections that the code cites."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from rocsteady.core.rows.measure_table import MEASURES

from tests.checks.steps import ALL
from tests.support import ROOT

PAGES = [*sorted(ROOT.glob("*.md")), ROOT / "examples" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FLOORS = ("core", "transforms", "pipelines", "runners")
MODULES = sorted(path for floor in FLOORS for path in (ROOT / floor).rglob("*.py"))
ROOMS = {
    f"{floor}/{init.parent.name}"
    for floor in FLOORS
    for init in (ROOT / floor).glob("*/__init__.py")
    if len(list(init.parent.rglob("*.py"))) > 1
}
PATH = re.compile(r"`((?:core|transforms|pipelines|runners|tests|benchmarks|docs)/[\w./-]*)`")
NAMES_IN = re.compile(r"((?:`\w+`(?:, | and ))*`\w+`) in `([\w/]+\.py)`")
CITED = re.compile(r'docs/([\w/-]+)\.md,\s+"([^"]+)"')


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text("utf-8")


def names_in(path: Path) -> set[str]:
    """What a module defines at its top."""
    names = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def test_every_path_that_a_page_names_is_there() -> None:
    named = [(at.name, path) for at in PAGES for path in PATH.findall(at.read_text("utf-8"))]
    assert len(named) > 50
    assert [(name, path) for name, path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", ["architecture/overview", "architecture/math"])
def test_every_name_is_in_the_module_that_a_page_says(name: str) -> None:
    named = [(path, re.findall(r"`(\w+)`", names)) for names, path in NAMES_IN.findall(page(name))]
    assert named
    assert [(path, names) for path, names in named if not names_in(ROOT / path).issuperset(names)] == []


def test_the_architecture_has_every_room() -> None:
    said = {
        path.rstrip("/") for path in PATH.findall(page("architecture/overview").partition("## The way")[0])
    }
    assert said >= ROOMS


def test_every_measure_is_defined() -> None:
    assert [measure for measure in MEASURES if f"`{measure}`" not in page("architecture/math")] == []


def test_every_section_that_the_code_cites_is_there() -> None:
    cited = {
        (found, section)
        for path in [*MODULES, *(ROOT / "tests").rglob("*.py")]
        for found, section in CITED.findall(" ".join(path.read_text("utf-8").split()))
    }
    assert cited
    headings = {name: re.findall(r"^#+ (.*)$", page(name), re.MULTILINE) for name, _ in cited}
    assert [(name, section) for name, section in sorted(cited) if section not in headings[name]] == []


def anchors(path: Path) -> set[str]:
    """The ids of a page's headings, as repository browsers and MyST make them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_of_a_page_beside_the_site_leads_to_a_file_and_a_heading() -> None:
    """The site's own links are checked when it is built."""
    beside = [path for path in PAGES if (ROOT / "docs") not in path.parents]
    links = [
        (path.name, (path.parent / target).resolve() if target else path, anchor)
        for path in beside
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", path.read_text("utf-8"))
    ]
    assert len(links) > 20
    assert [link for link in links if not link[1].exists()] == []
    assert [link for link in links if link[2] and link[2] not in anchors(link[1])] == []


def test_contributors_make_the_checks_of_ci() -> None:
    """CI runs the same commands, by paths of its own. The tests build the site; coverage is no check."""
    told = set(re.findall(r"\.venv/bin/([\w-]+)", (ROOT / "CONTRIBUTING.md").read_text("utf-8")))
    done = {name for step in ALL for name in re.findall(r"bin/([\w-]+)", step.commands)}
    assert told - {"coverage", "python", "sphinx-build"} <= done
    assert {"ruff", "mypy", "lint-imports", "pytest", "twine"} <= told


def test_every_variable_that_changes_the_tests_is_told() -> None:
    read = {
        name
        for path in [*(ROOT / "tests").rglob("*.py"), ROOT / ".ci" / "run"]
        for name in re.findall(r"ROCSTEADY_[A-Z_]+", path.read_text("utf-8"))
    }
    told = set(re.findall(r"ROCSTEADY_[A-Z_]+", (ROOT / "CONTRIBUTING.md").read_text("utf-8")))
    assert told <= read
    assert sorted(read - told) == ["ROCSTEADY_BUCKET_SLOTS"]  # set by a test, for its own subprocess
