"""The rooms of the package stay small: so many modules in a folder, so many lines in a module."""

from __future__ import annotations

import ast
import re
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


@pytest.mark.parametrize("folder", [room for room in FOLDERS if room.parent != ROOT], ids=of)
def test_a_room_names_each_of_its_modules(folder: Path) -> None:
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or ""
    modules = {path.stem for path in folder.glob("*.py") if path.stem not in ("__init__", "__main__")}
    assert modules - set(re.findall(r"\w+", text)) == set()


def test_a_module_is_short() -> None:
    modules = (path for folder in FOLDERS for path in folder.glob("*.py"))
    long = {of(path) for path in modules if path.read_text("utf-8").count("\n") > MOST_LINES}
    assert long == set()
