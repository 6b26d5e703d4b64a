"""Pages with figures: of which commit they are, and whether the code that they measure has changed since.

    python -m benchmarks.pages

prints a warning for each page whose code has changed; it never fails. A page says its commit by the words
"commit 0123abc"; of several commits the first one counts.

Code has changed where a module that the page measures defines a function, a class or a constant that no
module of the package had in that commit. Imports, comments and docstrings do not count, nor does the module
that a definition stands in. So modules that were only moved or split are no change.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ("core", "transforms", "pipelines", "runners")

_TREES = ("core/kernels", "core/score_tree", "core/measures", "core/evaluator")
_JOB = ("core/shard", "core/table", "transforms/beam", "transforms/events", "transforms/sinks")
_FILES = (*_JOB, "transforms/sources/files")
_TOPICS = (*_JOB, "transforms/kafka", "transforms/sources/streams")
MEASURED: dict[str, tuple[str, ...]] = {
    "docs/benchmarks/alert_rates.md": ("core/alerts", "core/evidence", "core/rows/differences.py"),
    "docs/benchmarks/class_intervals.md": ("core/classes/figures.py", "core/classes/scan.py"),
    "docs/benchmarks/classes.md": ("core/classes",),
    "docs/benchmarks/core.md": _TREES,
    "docs/benchmarks/drift.md": ("core/alerts", "core/evidence", "core/evaluator"),
    "docs/benchmarks/false_alarms.md": ("core/evaluator",),
    "docs/benchmarks/flink.md": _TOPICS,
    "docs/benchmarks/hot_model.md": ("core/shard", "core/table", "core/evaluator"),
    "docs/benchmarks/learning.md": ("core/learning", "core/measures"),
    "docs/benchmarks/live.md": (
        "pipelines/evaluate/live",
        "pipelines/serve",
        "transforms/sources/streams",
        "core/state/checkpoint.py",
    ),
    "docs/benchmarks/many_models.md": ("core/arena", "core/table", "core/evaluator", "core/measures/scan.py"),
    "docs/benchmarks/pipeline.md": (*_FILES, "core/evaluator", "pipelines/evaluate"),
    "docs/benchmarks/prequential.md": ("core/prequential", "core/compare", "transforms/prequential"),
    "docs/benchmarks/report.md": ("core/verdicts", "pipelines/report"),
    "docs/benchmarks/roll_ups.md": ("core/fleet/formulas.py",),
    "docs/benchmarks/sketch.md": ("core/sketches",),
    "docs/benchmarks/start.md": (*_TREES, "core/state", "pipelines/cli.py", "pipelines/demo"),
    "docs/benchmarks/streams.md": (*_FILES, "core/join"),
    "docs/benchmarks/weighted.md": (*_TREES, "core/weighted_tree"),
    "docs/benchmarks/windows.md": (*_TREES, "core/weighted_tree"),
    "docs/benchmarks/faults.md": _TOPICS,
    "docs/papers/bifet2015.md": ("core/prequential", "core/compare"),
    "docs/papers/calders2007.md": ("core/measures", "core/learning/polynomial"),
    "docs/papers/hocking2021.md": ("core/learning/aum",),
    "docs/papers/tatti2018.md": ("core/sketches", "core/score_tree"),
    "docs/papers/tatti2021.md": ("core/sketches", "core/score_tree", "core/measures"),
    "docs/benchmarks/scale.md": (*_JOB, "core/evaluator", "transforms/sources/streams"),
}
"""Every page with figures of ours, and the rooms and modules that it measures."""

COMMIT = re.compile(r"\bcommit ([0-9a-f]{7,40})\b")
MODULES_SHOWN = 4


class UnknownCommitError(Exception):
    """The checkout does not have a commit: it is a shallow clone, or no git repository."""


def git(root: Path, *arguments: str, given: str = "") -> str:
    """Return what git prints. Raises UnknownCommitError where git fails, or is not there."""
    command = ["git", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, input=given.encode(), capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise UnknownCommitError(str(error)) from error
    return done.stdout.decode("utf-8", "replace")


@cache
def made_from() -> str:
    """Return the sentence by which a page that is written now says its commit."""
    try:
        commit = git(ROOT, "rev-parse", "--short", "HEAD").strip()
        edited = git(ROOT, "diff", "HEAD", "--stat", "--", *PACKAGE)
    except UnknownCommitError:
        return "Made outside of a git repository."
    return f"Made from commit {commit}{' and changes that were not committed' if edited else ''}."


def with_commit(page: str) -> str:
    """Return a page that says its commit under its title."""
    title, rest = page.split("\n", 1)
    return f"{title}\n\n{made_from()}\n{rest}"


def definitions(source: str) -> Iterator[tuple[str, str]]:
    """Yield name and content of what a module defines at its top, without docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [each for each in body if not _is_text(each)]  # type: ignore[attr-defined]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, ast.dump(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            yield ast.unparse(target), ast.dump(node)


def _is_text(node: ast.AST) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


@cache
def _contents(root: Path, blob: str) -> frozenset[str]:
    """Return the definitions of a module as git stores it. Modules of many commits are read once."""
    return frozenset(content for _, content in definitions(git(root, "cat-file", "blob", blob)))


@cache
def definitions_of(root: Path, commit: str) -> frozenset[str]:
    """Return all definitions of the package in a commit. Raises UnknownCommitError."""
    listed = git(root, "ls-tree", "-r", commit, "--", *PACKAGE).splitlines()
    blobs = [line.split()[2] for line in listed if line.endswith(".py")]
    return frozenset().union(*(_contents(root, blob) for blob in blobs))


def changed(root: Path, commit: str, measured: tuple[str, ...]) -> dict[str, list[str]]:
    """Return, by module, the definitions that the package did not have in a commit."""
    before = definitions_of(root, commit)
    found = {}
    for place in measured:
        modules = [root / place] if place.endswith(".py") else sorted((root / place).rglob("*.py"))
        for module in modules:
            new = [name for name, content in definitions(module.read_text("utf-8")) if content not in before]
            if new:
                found[module.relative_to(root).as_posix()] = new
    return found


def warnings(root: Path = ROOT, measured: dict[str, tuple[str, ...]] = MEASURED) -> Iterator[str]:
    """Yield a sentence for each page whose code has changed since its commit, or of which that is unknown."""
    for page, places in measured.items():
        named = COMMIT.search((root / page).read_text("utf-8"))
        if named is None:
            yield f"{page} does not say of which commit its figures are"
            continue
        commit = named.group(1)
        try:
            found = changed(root, commit, places)
        except UnknownCommitError:
            yield f"{page}: cannot tell what changed since commit {commit}: this checkout does not have it"
            continue
        if found:
            most = sorted(found, key=lambda module: -len(found[module]))
            rest = f" and {len(most) - MODULES_SHOWN} more" if len(most) > MODULES_SHOWN else ""
            number = sum(map(len, found.values()))
            yield (
                f"{page} has figures of commit {commit}; since then {number} definition{'s' * (number > 1)} "
                f"changed, in {', '.join(most[:MODULES_SHOWN])}{rest}"
            )


if __name__ == "__main__":
    for warning in warnings():
        print(f"warning: {warning}")
