"""Pages with figures say their commit, and a change of the code that they measure is told from a move."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.pages import COMMIT, MEASURED, made_from, warnings, with_commit
from tests.support import ROOT

BEFORE = '''"""A module."""
import math

LIMIT = 10


def area(side):
    """Return the area."""
    return math.pow(side, 2)
'''
MOVED = '''"""The same elsewhere, in other words."""
from math import pow
import math

LIMIT = 10
"""A text about it."""


def area(side):
    """Say how large it is."""  # with a comment
    return math.pow(side, 2)
'''
CHANGED = MOVED.replace("side, 2", "side, 3")


def git(folder: Path, *arguments: str) -> str:
    author = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *author, "-C", str(folder), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a module, and a page of its commit."""
    folder = tmp_path / "repository"
    (folder / "core").mkdir(parents=True)
    (folder / "core" / "old.py").write_text(BEFORE)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "a module")
    commit = git(folder, "rev-parse", "--short", "HEAD")
    (folder / "page.md").write_text(f"# A page\n\nThe figures last changed in commit {commit}.\n")
    (folder / "core" / "old.py").unlink()
    (folder / "core" / "room").mkdir()
    return folder


def written(folder: Path, source: str) -> list[str]:
    """The warnings about a page where the module stands in a room now."""
    (folder / "core" / "room" / "new.py").write_text(source)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "now in a room")
    return list(warnings(folder, {"page.md": ("core/room",)}))


def test_every_page_with_figures_is_known_and_says_its_commit() -> None:
    folders = [ROOT / "docs" / name for name in ("benchmarks", "papers")]
    pages = {page.relative_to(ROOT).as_posix() for folder in folders for page in folder.glob("[!i]*.md")}
    assert pages == set(MEASURED)
    assert [page for page in MEASURED if not COMMIT.search((ROOT / page).read_text("utf-8"))] == []
    assert [place for places in MEASURED.values() for place in places if not (ROOT / place).exists()] == []


def test_a_module_that_moved_is_no_change(repository: Path) -> None:
    assert written(repository, MOVED) == []


def test_a_definition_that_changed_is_told(repository: Path) -> None:
    (told,) = written(repository, CHANGED)
    assert "; since then 1 definition changed, in core/room/new.py" in told


def test_a_shallow_clone_cannot_tell(repository: Path) -> None:
    written(repository, CHANGED)
    shallow = repository.parent / "shallow"
    git(repository, "clone", "-q", "--depth", "1", repository.as_uri(), str(shallow))
    (told,) = warnings(shallow, {"page.md": ("core/room",)})
    assert "cannot tell what changed" in told


def test_a_page_without_a_commit_is_told(repository: Path) -> None:
    (repository / "page.md").write_text("# A page\n")
    (told,) = written(repository, MOVED)
    assert "does not say of which commit" in told


def test_a_page_that_is_written_now_says_its_commit() -> None:
    assert with_commit("# A page\n\nA text.\n") == f"# A page\n\n{made_from()}\n\nA text.\n"
