"""Pages have every room, measure and variable; sections that the code cites, and links, are there."""

from __future__ import annotations

import re
from pathlib import Path

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
CITED = re.compile(r'docs/([\w/-]+)\.md,\s+"([^"]+)"')


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text("utf-8")


def test_the_architecture_has_every_room() -> None:
    said = {
        path.rstrip("/") for path in PATH.findall(page("architecture/overview").partition("## The way")[0])
    }
    assert said >= ROOMS


def test_the_mathematics_lists_every_module_that_speaks_of_delong() -> None:
    """So a further place that computes his variance is seen, as is a place that is gone."""
    section = page("architecture/math").partition("### Where the variance")[2].partition("\n## ")[0]
    listed = {path for path in PATH.findall(section) if path.endswith(".py")}
    speaks = {
        path.relative_to(ROOT).as_posix()
        for path in MODULES
        if re.search("DeLong|delong|Delong", path.read_text("utf-8"))
    }
    assert listed == {path for path in speaks if not path.endswith("__init__.py")}


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
