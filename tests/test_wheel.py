"""What is built and installed is the package, whole: every module and every file that it reads beside."""

from __future__ import annotations

import ast
import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import pytest
import rocsteady

from tests.support import ROOT
from tests.support.processes.smoke import smoke

ROOMS = ("core", "transforms", "pipelines", "runners")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def in_the_tree() -> set[str]:
    """Return the files of the package, by their paths in an installation."""
    found = {"__init__.py", "__init__.pyi", "py.typed"}
    for room in ROOMS:
        found |= {path.relative_to(ROOT).as_posix() for path in (ROOT / room).rglob("*") if path.is_file()}
    return {f"rocsteady/{name}" for name in found if not name.endswith(".pyc")}


def test_every_folder_of_the_package_is_named_in_pyproject() -> None:
    """One that is forgotten would be missing in the wheel, and nowhere else."""
    folders = {Path(name).parent.as_posix().replace("/", ".") for name in in_the_tree()}
    assert sorted(PROJECT["tool"]["setuptools"]["packages"]) == sorted(folders)


def test_what_is_installed_is_what_is_in_the_tree() -> None:
    try:
        installed = files("rocsteady") or []
    except PackageNotFoundError:
        pytest.skip("rocsteady is not installed here, but imported from its folder")
    names = {str(name) for name in installed}
    if not any(name.startswith("rocsteady/") for name in names):
        pytest.skip("rocsteady is installed as a link to its folder (pip install -e)")
    ours = {name for name in names if name.startswith("rocsteady/") and not name.endswith(".pyc")}
    assert sorted(ours) == sorted(in_the_tree())


@pytest.fixture
def built() -> Path:
    """The folder that `python -m build` has filled; .ci/run names it."""
    if "ROCSTEADY_BUILT" not in os.environ:
        pytest.skip("ROCSTEADY_BUILT is not set: python -m build --outdir FOLDER, and name FOLDER by it")
    return Path(os.environ["ROCSTEADY_BUILT"])


def test_the_sdist_holds_what_the_repository_holds(built: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("the tests are not in a clone of the repository")
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        held = {member.name.partition("/")[2] for member in archive if member.isfile()}
    made = {name for name in held if name.startswith("rocsteady.egg-info/")} | {"PKG-INFO", "setup.cfg"}
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert sorted(held - made) == sorted(listed.stdout.rstrip("\0").split("\0"))


def test_the_wheel_holds_the_package_and_its_licence(built: Path) -> None:
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        held = set(archive.namelist())
        about = {name for name in held if ".dist-info/" in name}
        (place,) = (name for name in about if name.endswith("/METADATA"))
        metadata = email.message_from_bytes(archive.read(place))
    assert sorted(held - about) == sorted(in_the_tree())
    assert any(name.endswith("/licenses/LICENSE") for name in about)
    assert metadata["Requires-Python"] == PROJECT["project"]["requires-python"]
    described = metadata.get_payload(decode=True).decode("utf-8")
    assert described.strip() == (ROOT / "README.md").read_text("utf-8").strip()


def test_what_is_imported_works() -> None:
    """.ci/run runs the same program where nothing but the wheel is installed."""
    smoke()


def test_the_version_is_that_of_pyproject() -> None:
    assert rocsteady.__version__ == PROJECT["project"]["version"]


def imported_at_once(path: Path) -> set[str]:
    """Return the packages that a module imports when it is imported itself."""
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names


WITH_OTHERS = {"google": "apache-beam", "grpc": "apache-beam", "llvmlite": "numba"}
"""Packages that come with a dependency."""


@pytest.mark.parametrize("room", ["pipelines/report", "pipelines/frames", "pipelines/evaluate"])
def test_the_report_and_frames_need_no_extra(room: str) -> None:
    base = {re.split(r"[>=\[]", each)[0] for each in PROJECT["project"]["dependencies"]}
    needed = set().union(*(imported_at_once(path) for path in (ROOT / room).glob("*.py")))
    assert {WITH_OTHERS.get(name, name.replace("_", "-")) for name in needed} <= base
