"""Which tests a change can break, and why: by the graph of files, and by rules for what is no Python."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from .graph import Graph
from .modules import module_of

EVERYTHING = {
    "pyproject.toml": "it has the settings of pytest and the dependencies",
    "constraints.txt": "it has the versions of all dependencies",
    "tests/conftest.py": "it holds for all tests",
    ".ci/run": "it runs all tests",
}
"""Files whose change can break any test, and why."""

NAMED = {"LICENSE", "CITATION.cff", "MANIFEST.in", "py.typed", ".gitignore", ".dockerignore"}
"""Files that only the tests use which name them, or look through the tree; likewise pages at the top."""

FOLDERS = {"docs/": ("tests/pages/",), "examples/": ("tests/test_examples.py", "tests/deploy/")}
"""Tests that any file of a folder can break, beside those that name the file."""

WITH_DATA = ("core/", "transforms/", "pipelines/", "runners/", "benchmarks/", "tests/")
"""Folders whose data files belong to the modules beside them."""


class GitError(Exception):
    """Git does not know a revision, or is not there."""


@dataclass(frozen=True)
class Choice:
    """The tests that a change can break.

    tests   of each test file the way to it: the changed file, the files between, the test file
    count   how many test files there are
    all     why all tests are chosen, or ""
    """

    tests: dict[str, list[str]]
    count: int
    all: str = ""
    changed: list[str] = field(default_factory=list)

    def lines(self, *, in_full: bool = False) -> list[str]:
        """Return the choice in words; in full with a line for each test file.

        A test that several changed files can break stands once, below the one that is nearest to it.
        """
        if not self.changed:
            return ["No file changed, so no test is chosen"]
        if self.all:
            return [f"All {self.count} test files, since {self.all}"]
        if not self.tests:
            return [f"No test file of {self.count} can break: none uses {_listed(self.changed)}"]
        causes = defaultdict(list)
        for test, way in self.tests.items():
            causes[way[0]].append(test)
        lines = [f"{len(self.tests)} of {self.count} test files, since {_listed(sorted(causes))} changed:"]
        for cause, tests in sorted(causes.items()):
            lines.append(f"  {cause}: {len(tests)}")
            lines += [f"    {each}" for each in (self._ways(tests) if in_full else self._folders(tests))]
        return lines

    def _ways(self, tests: Collection[str]) -> list[str]:
        return [" <- ".join(reversed(self.tests[test])) for test in sorted(tests)]

    def _folders(self, tests: Collection[str]) -> list[str]:
        folders = defaultdict(list)
        for test in sorted(tests):
            folders[test.rpartition("/")[0]].append(test)
        return [each[0] if len(each) == 1 else f"{name}: {len(each)}" for name, each in folders.items()]


def is_test(path: str) -> bool:
    """Return whether pytest finds tests in a file."""
    return path.startswith("tests/") and path.endswith(".py") and path.rpartition("/")[2].startswith("test_")


def choose(files: Collection[str], read: Callable[[str], str], changed: Collection[str]) -> Choice:
    """Return the tests that a change can break.

    `files` are those of the tree. `changed` are paths that are new, changed, or deleted. A renamed file has
    both of its paths there. `read` returns the text of a file of the tree.
    """
    tests = sorted(filter(is_test, files))
    names = sorted(changed)
    for path in names:
        if path in EVERYTHING:
            return Choice(
                {each: [path, each] for each in tests},
                len(tests),
                f"{path} changed: {EVERYTHING[path]}",
                names,
            )
        if not _is_known(path):
            why = f"{path} changed: no rule says who uses such a path (see tests/checks/selection.py)"
            return Choice({each: [path, each] for each in tests}, len(tests), why, names)
    if not names:
        return Choice({}, len(tests))
    there = set(files)
    graph = Graph(there | set(names), lambda path: read(path) if path in there else "")
    ways = graph.chains(names)
    for path in names:
        for folder, users in FOLDERS.items():
            for test in tests:
                if path.startswith(folder) and test.startswith(users):
                    ways.setdefault(test, [path, test])
    return Choice({test: ways[test] for test in tests if test in ways}, len(tests), changed=names)


def _is_known(path: str) -> bool:
    if path.endswith((".py", ".pyi")):
        path = path.removesuffix("i")
        return module_of(path) is not None or path.startswith(tuple(FOLDERS))
    at_top = "/" not in path
    return path in NAMED or (at_top and path.endswith(".md")) or path.startswith((*FOLDERS, *WITH_DATA))


def files_of(root: Path) -> list[str]:
    """Return the files of the working tree that git follows or may follow."""
    named = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return sorted({path for path in named if (root / path).is_file()})


def changed_in(root: Path, since: str | None = None) -> list[str]:
    """Return the paths that the working tree changes: staged, unstaged and new files, and deleted ones.

    With `since`, also those that commits changed after the branch left that revision.
    """
    changed = {*_git(root, "diff", "--name-only", "--no-renames", "-z", "HEAD")}
    changed |= {*_git(root, "ls-files", "-z", "--others", "--exclude-standard")}
    if since is not None:
        changed |= {*_git(root, "diff", "--name-only", "--no-renames", "-z", f"{since}...HEAD", "--")}
    return sorted(changed)


def chosen(root: Path, since: str | None = None) -> Choice:
    """Return the tests that the change of a checkout can break."""
    return choose(files_of(root), lambda path: (root / path).read_text("utf-8"), changed_in(root, since))


def _git(root: Path, *words: str) -> list[str]:
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise GitError("git is not on this machine, so the change is not known; install git") from None
    if done.returncode:
        raise GitError(f"git {' '.join(words)}: {done.stderr.strip()}")
    return [path for path in done.stdout.split("\0") if path]


def _listed(paths: Collection[str]) -> str:
    names = list(paths)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
