"""Docstrings of the package as Markdown.

A docstring has paragraphs with a blank line between them. Some paragraphs have a form of their own:

    name, name  a description of parameters or fields; further lines begin below it
    - a point of a list
        code, four spaces to the right
    >>> 1 + 1
    2
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from inspect import cleandoc

from .markdown import block, code, prose

_NAMES = r"\*{0,2}\w+(?:, \*{0,2}\w+)*"
_ITEM = re.compile(rf"({_NAMES}) {{2,}}(\S.*)")
_ONLY_NAMES = re.compile(rf"{_NAMES}")

Linked = Callable[[str], str]
"""Adds links to Markdown."""


def paragraphs(docstring: str) -> list[list[str]]:
    """Return the paragraphs of a docstring, each as its lines; indented code is one paragraph."""
    found: list[list[str]] = [[]]
    for line in cleandoc(docstring).splitlines():
        was_code = found[-1][:1] != [] and found[-1][0].startswith("    ")
        if not line or (was_code and not line.startswith("    ")):
            found.append([])
        found[-1] += [line] if line else []
    joined: list[list[str]] = []
    for lines in filter(None, found):
        if joined and lines[0].startswith("    ") and joined[-1][0].startswith("    "):
            joined[-1] += ["", *lines]
        else:
            joined.append(lines)
    return joined


def described(docstring: str) -> dict[str, str]:
    r"""Return the descriptions of a docstring by name.

    >>> described("Add.\n\na, b  numbers\nc  text,\n   too")
    {'a': 'numbers', 'b': 'numbers', 'c': 'text, too'}
    """
    return {
        name: text
        for lines in paragraphs(docstring)
        for names, text in _items(lines)
        for name in names.split(", ")
    }


def markdown_of(docstring: str, linked: Linked, more: dict[str, str] | None = None) -> str:
    """Return a docstring as Markdown.

    more  descriptions of further names, which follow those of the docstring
    """
    parts: list[str] = []
    waits = dict(more or {})
    for lines in paragraphs(docstring):
        items = [*_items(lines)]
        if items:
            parts.append(definitions(items, linked))
            if waits:
                parts.append(definitions([*waits.items()], linked))
                waits = {}
        elif lines[0].startswith(">>>"):
            parts.append(block("\n".join(lines), "pycon"))
        elif lines[0].startswith("    "):
            parts.append(block(cleandoc("\n" + "\n".join(lines)), "python"))
        elif lines[0].startswith("- "):
            points = [prose(line) if line[0] == " " else f"- {prose(line[2:])}" for line in lines]
            parts.append(linked("\n".join(points)))
        else:
            parts.append(linked(prose(" ".join(lines))))
    if waits:
        parts.append(definitions([*waits.items()], linked))
    return "\n\n".join(parts)


def definitions(items: list[tuple[str, str]], linked: Linked) -> str:
    """Return a list of names with descriptions."""
    return "\n\n".join(
        f"{', '.join(code(name) for name in names.split(', '))}\n: {linked(prose(text))}"
        for names, text in items
    )


def _items(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield (names, description) of a paragraph that describes names; yield nothing of another one."""
    has_names_above = len(lines) > 1 and lines[1][0] == " " and _ONLY_NAMES.fullmatch(lines[0])
    if not has_names_above and _ITEM.match(lines[0]) is None:
        return
    columns = [found.start(2) for line in lines if (found := _ITEM.match(line))]
    names, text = "", ""
    for line in lines:
        if line.startswith(" "):
            text = f"{text} {line.strip()}".strip()
            continue
        if names:
            yield names, text
        names, text = _parted(line, columns)
    yield names, text


def _parted(line: str, columns: list[int]) -> tuple[str, str]:
    """Return the names and the description of a line; names as long as the column have one space."""
    if found := _ITEM.match(line):
        return found[1], found[2]
    for column in columns:
        if line[column - 1 : column] == " " and _ONLY_NAMES.fullmatch(line[: column - 1]):
            return line[: column - 1], line[column:]
    return line, ""
