"""`python -m tests.checks`: which tests a change can break, on made-up trees and here; counts of lines."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.checks import __main__ as command
from tests.checks import changed, lines
from tests.checks.selection import Choice, GitError, changed_in, choose, files_of
from tests.support import ROOT

FACE = """
from importlib import import_module
from pathlib import Path
from .core.version import VERSION
STUB = Path(__file__).with_name("__init__.pyi")
def __getattr__(name):
    return getattr(import_module(name), name)
"""
STUB = """
from .core.tree import Tree as Tree
try:
    from .core.join.join import Join as Join
except ImportError: ...
"""
TREE = {
    "__init__.py": FACE,
    "__init__.pyi": STUB,
    "core/__init__.py": "",
    "core/version.py": "VERSION = 1",
    "core/tree.py": "class Tree: ...",
    "core/join/__init__.py": "",
    "core/join/join.py": "from ..tree import Tree",
    "core/join/late.py": "def late():\n    from . import join",
    "pipelines/__init__.py": "",
    "pipelines/cli.py": "from importlib import import_module\n"
    "def run(name):\n    return import_module(f'{__package__}.{name}')",
    "pipelines/show.py": "",
    "pipelines/report/__init__.py": "",
    "pipelines/report/render.py": "",
    "pipelines/report/page/page.js": "",
    "benchmarks/__init__.py": "",
    "benchmarks/start/__init__.py": "",
    "benchmarks/start/__main__.py": "",
    "docs/index.md": "",
    "docs/how-to/live.md": "",
    "examples/evaluate.py": "from rocsteady import Tree",
    "examples/job.yaml": "",
    "CHANGELOG.md": "",
    "LICENSE": "",
    "pyproject.toml": "",
    "tests/conftest.py": "from tests.support.thorough import THOROUGH",
    "tests/support/__init__.py": "from pathlib import Path\nROOT = Path(__file__).parents[2]",
    "tests/support/thorough.py": "THOROUGH = 1",
    "tests/support/data/stored.bin": "",
    "tests/support/data/reader.py": "",
    "tests/core/conftest.py": "import benchmarks",
    "tests/core/test_tree.py": "import rocsteady as rs\ndef test(): rs.Tree()",
    "tests/core/test_join.py": "from rocsteady import Join",
    "tests/core/test_late.py": "from rocsteady.core.join.late import late",
    "tests/core/test_stored.py": "from tests.support.data import reader",
    "tests/pages/test_index.py": "",
    "tests/pipelines/test_all_names.py": "import rocsteady\nfor name in vars(rocsteady): ...",
    "tests/pipelines/test_cli.py": "P = '''\nimport sys\nfrom rocsteady.pipelines.cli import run\n'''",
    "tests/pipelines/test_live.py": "from tests.support import ROOT\n"
    "def test(name):\n    assert (ROOT / 'docs' / f'{name}.md').read_text()",
    "tests/pipelines/test_render.py": "from rocsteady.pipelines.report import render",
    "tests/pipelines/test_start.py": "run(['python', '-m', 'benchmarks.start'])",
    "tests/pipelines/test_types.py": "from typing import TYPE_CHECKING\n"
    "if TYPE_CHECKING:\n    from rocsteady.core.tree import Tree",
    "tests/test_examples.py": "from tests.support import ROOT\nHERE = ROOT / 'examples'",
    "tests/test_rooms.py": "from tests.support import ROOT\nALL = [*ROOT.rglob('*.py')]",
}
TESTS = {path for path in TREE if path.rpartition("/")[2].startswith("test_")}


def of(*paths: str, tree: dict[str, str] = TREE) -> set[str]:
    """Return the tests that a change of these paths can break, but for the one that looks at all modules."""
    choice = choose(tree, tree.__getitem__, paths)
    assert not choice.all
    return {*choice.tests} - {"tests/test_rooms.py"}


OF_FACE = {
    *(path for path in TESTS if "rocsteady" in TREE[path] and not path.endswith("test_types.py")),
    "tests/test_examples.py",
}
JOIN = {"tests/core/test_join.py", "tests/core/test_late.py", "tests/pipelines/test_all_names.py"}


@pytest.mark.parametrize(
    ("path", "tests"),
    [
        ("core/join/join.py", JOIN),
        ("core/tree.py", {*JOIN, "tests/core/test_tree.py", "tests/test_examples.py"}),
        ("core/join/late.py", {"tests/core/test_late.py"}),
        ("__init__.pyi", OF_FACE),
        ("pipelines/show.py", {"tests/pipelines/test_cli.py"}),
        ("pipelines/report/page/page.js", {"tests/pipelines/test_cli.py", "tests/pipelines/test_render.py"}),
        ("benchmarks/start/__main__.py", {"tests/pipelines/test_start.py"}),
        ("tests/support/data/stored.bin", {"tests/core/test_stored.py"}),
        ("tests/core/conftest.py", {path for path in TESTS if path.startswith("tests/core/")}),
        ("tests/support/thorough.py", TESTS - {"tests/test_rooms.py"}),
        ("docs/how-to/live.md", {"tests/pages/test_index.py", "tests/pipelines/test_live.py"}),
        ("docs/img/new.svg", {"tests/pages/test_index.py"}),
        ("examples/job.yaml", {"tests/test_examples.py"}),
        ("CHANGELOG.md", set()),
        ("tests/core/test_tree.py", {"tests/core/test_tree.py"}),
    ],
)
def test_a_change_chooses_the_tests_that_use_the_file(path: str, tests: set[str]) -> None:
    assert of(path) == tests


def test_a_package_that_hands_names_on_lazily_leads_to_their_modules_alone() -> None:
    assert "tests/core/test_join.py" in of("core/version.py"), "the face imports that module at once"
    assert "tests/core/test_tree.py" not in of("core/join/join.py")


def test_a_test_that_looks_at_all_modules_is_chosen_for_a_module_that_nobody_imports() -> None:
    choice = choose(TREE, TREE.__getitem__, ["core/join/late.py"])
    assert choice.tests["tests/test_rooms.py"] == ["core/join/late.py", "tests/test_rooms.py"]


@pytest.mark.parametrize(
    "path", ["pyproject.toml", "tests/conftest.py", "setup.py", "new/data.bin", "Makefile"]
)
def test_what_holds_for_all_tests_and_what_no_rule_knows_chooses_all(path: str) -> None:
    choice = choose({**TREE, path: ""}, lambda _: "", [path, "core/tree.py"])
    assert {*choice.tests} == TESTS
    assert choice.lines()[0].startswith(f"All {len(TESTS)} test files, since {path} changed: ")


def test_a_deleted_module_chooses_those_that_still_import_it() -> None:
    tree = {path: text for path, text in TREE.items() if path != "core/join/join.py"}
    assert of("core/join/join.py", tree=tree) == JOIN


def test_a_renamed_module_chooses_the_users_of_both_names() -> None:
    tree = {path: text for path, text in TREE.items() if path != "core/tree.py"}
    tree |= {"core/trees.py": "class Tree: ...", "tests/core/test_tree.py": "import rocsteady.core.trees"}
    assert of("core/tree.py", "core/trees.py", tree=tree) == {
        *JOIN,
        "tests/core/test_tree.py",
        "tests/test_examples.py",
    }


def test_a_deleted_test_and_a_module_that_does_not_parse_stop_nothing() -> None:
    tree = {path: text for path, text in TREE.items() if path != "tests/core/test_tree.py"}
    assert of("tests/core/test_tree.py", tree=tree) == set()
    assert of("core/join/late.py", tree={**TREE, "core/join/late.py": "def ("}) == {"tests/core/test_late.py"}


def test_the_choice_is_said_in_words_with_the_way_to_each_test() -> None:
    choice = choose(TREE, TREE.__getitem__, ["core/join/join.py"])
    assert choice.lines()[:3] == [
        f"4 of {len(TESTS)} test files, since core/join/join.py changed:",
        "  core/join/join.py: 4",
        "    tests/core: 2",
    ]
    way = "    tests/core/test_late.py <- core/join/late.py <- core/join/join.py"
    assert way in choice.lines(in_full=True)
    assert choose(TREE, TREE.__getitem__, ["LICENSE"]).lines() == [
        f"No test file of {len(TESTS)} can break: none uses LICENSE"
    ]
    assert choose(TREE, TREE.__getitem__, []).lines() == ["No file changed, so no test is chosen"]


# ---- git


def test_the_change_is_what_is_staged_unstaged_new_deleted_and_committed_since(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    names = ["staged", "unstaged", "deleted", "moved", "still", "committed"]
    git("init", "-q", "-b", "main")
    for name in names:
        (tmp_path / name).write_text(name)
    git("add", ".")
    git("commit", "-qm", "one")
    git("branch", "before")
    (tmp_path / "committed").write_text("two")
    git("commit", "-qam", "two")
    (tmp_path / "staged").write_text("two")
    git("add", "staged")
    (tmp_path / "unstaged").write_text("two")
    (tmp_path / "deleted").unlink()
    git("mv", "moved", "there")
    (tmp_path / "new é").write_text("")
    assert changed_in(tmp_path) == ["deleted", "moved", "new é", "staged", "there", "unstaged"]
    assert {*changed_in(tmp_path, "before")} == {*changed_in(tmp_path), "committed"}
    assert files_of(tmp_path) == ["committed", "new é", "staged", "still", "there", "unstaged"]
    with pytest.raises(GitError, match=r"nowhere\.\.\.HEAD"):
        changed_in(tmp_path, "nowhere")


# ---- this repository


@cache
def here() -> tuple[str, ...]:
    return tuple(
        path.relative_to(ROOT).as_posix()
        for top in ("core", "tests/core", "tests/support", "tests/conftest.py", "__init__.py")
        for path in ([ROOT / top] if top.endswith(".py") else (ROOT / top).rglob("*.py"))
    )


def test_a_change_of_the_join_chooses_its_tests_and_none_of_the_kernels_of_the_tree() -> None:
    choice = choose(here(), lambda path: (ROOT / path).read_text("utf-8"), ["core/join/join.py"])
    assert {"tests/core/join/test_join.py", "tests/core/state/test_compile_ahead.py"} <= {*choice.tests}
    assert "tests/core/score_tree/test_kernels.py" not in choice.tests
    assert len(choice.tests) < choice.count


def test_the_checks_run_every_tool_and_the_chosen_tests() -> None:
    some = changed.checks(Choice({"tests/a.py": ["b.py", "tests/a.py"]}, 2, changed=["b.py"]))
    assert [check.name for check in some] == ["ruff check", "ruff format", "mypy", "lint-imports", "pytest"]
    assert some[-1].words == ["-m", "pytest", "tests/a.py"]
    assert changed.checks(Choice({}, 2, "all", ["b.py"]))[-1].words == ["-m", "pytest"]
    assert [check.name for check in changed.checks(Choice({}, 2))][-1] == "lint-imports"


@pytest.mark.parametrize(
    ("name", "status", "passes"), [("pytest", 5, True), ("pytest", 1, False), ("mypy", 5, False)]
)
def test_files_with_slow_tests_alone_are_no_failure(
    name: str, status: int, passes: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    check = changed.Check(name, ["-c", f"raise SystemExit({status})"], "pytest")
    assert changed._passes(check) is passes
    assert ("have slow tests alone" in capfd.readouterr().out) is passes


def test_a_command_takes_no_option_of_the_checks(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--list", "lines"])
    assert (
        "--since and --list are for the checks without a command, and not for lines"
        in capsys.readouterr().err
    )


# ---- lines

MODULE = (
    '''"""A module.

Two more lines.
"""

import os  # a comment beside code

# a comment
WIDTH = 1
"""What it is."""

TABLE = (
    1,

    2,
)  # fmt: skip


def f():
    """One line."""
    text = """a text

    is code"""
    return text, "'''
    + "x" * 110
    + """"
"""
)


def test_each_kind_of_line_is_counted() -> None:
    counted = lines.count(MODULE)
    assert counted == lines.Count(modules=1, lines=24, code=10, docstrings=6, wide=1, skips=1)


def test_rooms_floors_and_the_product_are_sums() -> None:
    tree = {"__init__.py": "a = 1\n", "core/errors.py": "a = 1\n", "core/join/join.py": "a = 1\n\nb = 2\n",
        "core/join/deep/x.py": "a = 1\n", "tests/test_a.py": MODULE, "docs/conf.py": "a = 1\n",
        "core/page.js": "1"}  # fmt: skip
    rows = dict(lines.table(tree, tree.__getitem__))
    assert rows["core/join"] == lines.Count(2, 4, 3, 0, 0, 0)
    assert rows["core"] == rows["core/join"] + rows["core (its own modules)"]
    assert rows["product"] == rows["core"] + lines.Count(1, 1, 1, 0, 0, 0)
    assert rows["tests"] == lines.count(MODULE)
    assert lines.shown(list(rows.items()))[0].split() == [
        "modules",
        "lines",
        "code",
        "docstrings",
        "over",
        "110",
        "fmt:",
        "skip",
    ]
