"""The rooms of the package and of its tests stay small, and what is tested is found by its name."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from tests.support import ROOT

FOLDERS = sorted(
    folder
    for top in ("core", "transforms", "pipelines", "runners")
    for folder in (ROOT / top, *(ROOT / top).rglob("*"))
    if folder.is_dir() and any(folder.glob("*.py"))
)
MOST_MODULES, MOST_LINES = 16, 400


def of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("folder", FOLDERS, ids=of)
def test_a_room_has_few_modules_and_says_what_it_is_for(folder: Path) -> None:
    modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
    assert len(modules) <= MOST_MODULES
    assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8")))


def unnamed(folder: Path) -> set[str]:
    """Return the modules of a folder that the docstring of its package does not name."""
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or ""
    modules = {path.stem for path in folder.glob("*.py") if path.stem not in ("__init__", "__main__")}
    return modules - set(re.findall(r"\w+", text))


@pytest.mark.parametrize("folder", [room for room in FOLDERS if room.parent != ROOT], ids=of)
def test_a_room_names_each_of_its_modules(folder: Path) -> None:
    assert unnamed(folder) == set()


def test_a_module_is_short() -> None:
    modules = (path for folder in FOLDERS for path in folder.glob("*.py"))
    long = {of(path) for path in modules if path.read_text("utf-8").count("\n") > MOST_LINES}
    assert long == set()


# ---- tests

OF_THEIR_OWN = {
    "benchmarks": "the programs in benchmarks",
    "browser": "pages in a Chromium",
    "checks": "the checks themselves: no tests",
    "deploy": "Dataflow, Docker, Kubernetes and systemd, as far as one machine has them",
    "pages": "the documentation",
    "pipelines/evaluate/classes": "all parts of `rocsteady evaluate`, with a score of each class",
    "servers": "Kafka, Flink and Prism, by which of them a test needs",
    "stress": "a program that plays for long: no tests",
    "support": "what several tests share: no tests",
}
"""Folders of tests that are named after no room of the package, with those below them, and what they hold."""

TEST_FOLDERS = sorted({path.parent for path in (ROOT / "tests").rglob("*.py")} - {ROOT / "tests"})


@pytest.mark.parametrize("folder", TEST_FOLDERS, ids=of)
def test_a_folder_of_tests_is_named_after_a_room_and_holds_few_modules(folder: Path) -> None:
    modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
    assert len(modules) <= MOST_MODULES
    name = folder.relative_to(ROOT / "tests").as_posix()
    named = {name, *(parent.as_posix() for parent in Path(name).parents)} & {*OF_THEIR_OWN}
    assert named or (ROOT / name / "__init__.py").exists(), f"the package has no room {name}"


def test_the_folder_of_all_tests_holds_few_modules() -> None:
    assert len([*(ROOT / "tests").glob("*.py")]) <= MOST_MODULES


def test_a_folder_that_is_named_after_no_room_exists() -> None:
    assert {name for name in OF_THEIR_OWN if not (ROOT / "tests" / name).is_dir()} == set()


@pytest.mark.parametrize("folder", [each for each in TEST_FOLDERS if (each / "__init__.py").exists()], ids=of)
def test_a_package_of_tests_names_each_of_its_modules(folder: Path) -> None:
    assert unnamed(folder) == set()


def bare_imports(path: Path) -> set[str]:
    """Return what a module of tests imports by a name that only the search path of tests makes known."""
    at_hand = {each.stem for each in (ROOT / "tests" / "support").rglob("*.py")} | {
        "core", "transforms", "pipelines", "runners", "examples", "support",
    }  # fmt: skip
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module.partition(".")[0])
    return found & (at_hand - sys.stdlib_module_names)


@pytest.mark.parametrize(
    "top", ["core", "transforms", "pipelines", "runners", "examples", "tests", "benchmarks", "docs"]
)
def test_nobody_imports_a_room_or_a_module_of_support_by_a_bare_name(top: str) -> None:
    """`core` would be a second copy of `rocsteady.core`, from the folder and not from what is installed."""
    found = {of(path): bare for path in (ROOT / top).rglob("*.py") if (bare := bare_imports(path))}
    assert found == {}
