"""`python -m tests.checks`: lint, types, contracts, and the tests that the working tree's change can break.

A check that fails stops no other one. The exit status is 1 where one failed, and 2 where none could run.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import ROOT
from .selection import Choice, GitError, chosen

REMEDY = f"{sys.executable} -m pip install -c constraints.txt -e '.[test,lint,docs]'"
_CONTRACTS = "import sys; from importlinter.cli import lint_imports_command as run; sys.exit(run())"

_NO_TESTS = 5
"""Exit status of pytest when the files that it was given have no test of the marks that it was given."""


@dataclass(frozen=True)
class Check:
    """A check: the words behind `python`, the folder to run in, and the module that must be installed."""

    name: str
    words: Sequence[str]
    needs: str
    folder: Path = ROOT


def checks(tests: Choice) -> list[Check]:
    """Return the checks in their order."""
    found = [
        Check("ruff check", ["-m", "ruff", "check", "."], "ruff"),
        Check("ruff format", ["-m", "ruff", "format", "--check", "."], "ruff"),
        Check(
            "mypy",
            ["-m", "mypy", "--config-file", f"{ROOT.name}/pyproject.toml", "-p", "rocsteady"],
            "mypy",
            ROOT.parent,
        ),
        Check("lint-imports", ["-c", _CONTRACTS], "importlinter"),
    ]
    if tests.all or tests.tests:
        found.append(Check("pytest", ["-m", "pytest", *([] if tests.all else sorted(tests.tests))], "pytest"))
    return found


def main(since: str | None, *, only_list: bool) -> int:
    """Print which tests are chosen, run all checks, say which failed; return the exit status."""
    try:
        tests = chosen(ROOT, since)
    except GitError as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(tests.lines(in_full=only_list)), flush=True)
    if only_list:
        return 0
    if mistake := _not_this_checkout():
        print(mistake, file=sys.stderr)
        return 2
    failed = [check.name for check in checks(tests) if not _passes(check)]
    print(f"\nFailed: {', '.join(failed)}" if failed else "\nAll checks passed", flush=True)
    return 1 if failed else 0


def _passes(check: Check) -> bool:
    print(f"\n== {check.name}", flush=True)
    if importlib.util.find_spec(check.needs) is None:
        print(f"{check.needs} is not installed: {REMEDY}", flush=True)
        return False
    status = subprocess.run([sys.executable, *check.words], cwd=check.folder, check=False).returncode
    if check.name == "pytest" and status == _NO_TESTS:
        print("The chosen files have slow tests alone: pytest -m 'slow or at_length' runs them", flush=True)
        return True
    return status == 0


def _not_this_checkout() -> str:
    """Return a sentence where Python would import another rocsteady than this checkout, or ""."""
    if ROOT.name != "rocsteady":
        return f"the folder {ROOT} must be called rocsteady: it is the package itself; rename it"
    spec = importlib.util.find_spec("rocsteady")
    if spec is None or spec.origin is None:
        return f"rocsteady is not installed: {REMEDY}"
    if not os.path.samefile(spec.origin, ROOT / "__init__.py"):  # noqa: PTH121
        return f"rocsteady is {Path(spec.origin).parent}, and not this checkout: {REMEDY}"
    return ""
