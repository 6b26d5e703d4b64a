"""`python -m tests.checks lines`: counts the lines of Python by room.

A line of code has a token that is neither a comment nor part of a docstring. A text that stands alone
behind a constant, and describes the constant, is a docstring too.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import astuple, dataclass
from pathlib import Path

from .modules import FLOORS
from .selection import files_of

WIDTH = 110
_MARK = "# fmt: skip"
_EMPTY = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
_FACE = ("__init__.py", "__init__.pyi")
_HEADS = ("modules", "lines", "code", "docstrings", f"over {WIDTH}", "fmt: skip")


@dataclass(frozen=True)
class Count:
    """Numbers of modules, lines, lines of code, lines of docstrings, lines over WIDTH, and `fmt: skip`."""

    modules: int = 0
    lines: int = 0
    code: int = 0
    docstrings: int = 0
    wide: int = 0
    skips: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(*(one + two for one, two in zip(astuple(self), astuple(other), strict=True)))


def count(text: str) -> Count:
    """Count the lines of a module."""
    lines = text.splitlines()
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            docstrings |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    code: set[int] = set()
    skips = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        skips += token.type == tokenize.COMMENT and _MARK in token.string
        if token.type not in _EMPTY:
            code |= set(range(token.start[0], token.end[0] + 1))
    code = {number for number in code - docstrings if lines[number - 1].strip()}
    wide = sum(len(line) > WIDTH for line in lines)
    return Count(1, len(lines), len(code), len(docstrings), wide, skips)


def table(files: Collection[str], read: Callable[[str], str]) -> list[tuple[str, Count]]:
    """Return the counts by room, then by floor, of the product, and of tests and benchmarks."""
    rooms: dict[str, Count] = defaultdict(Count)
    sums: dict[str, Count] = {floor: Count() for floor in (*FLOORS, "product", "tests", "benchmarks")}
    for path in sorted(files):
        floor, _, rest = path.partition("/")
        if not path.endswith((".py", ".pyi")) or (floor not in sums and path not in _FACE):
            continue
        counted = count(read(path))
        if floor in FLOORS:
            room = f"{floor}/{rest.partition('/')[0]}" if "/" in rest else floor
            rooms[f"{room} (its own modules)" if room == floor else room] += counted
        if floor in sums:
            sums[floor] += counted
        if floor in FLOORS or path in _FACE:
            sums["product"] += counted
    return [*sorted(rooms.items()), *sums.items()]


def shown(rows: Collection[tuple[str, Count]]) -> list[str]:
    """Return the lines of the table."""
    width = max(len(name) for name, _ in rows)
    lines = [" ".join([" " * width, *(f"{head:>10}" for head in _HEADS)])]
    for name, counted in rows:
        if name == FLOORS[0]:
            lines.append("")
        lines.append(" ".join([f"{name:<{width}}", *(f"{number:>10,}" for number in astuple(counted))]))
    return lines


def main(root: Path) -> int:
    """Print the table of a checkout; return the exit status."""
    print("\n".join(shown(table(files_of(root), lambda path: (root / path).read_text("utf-8")))))
    return 0
