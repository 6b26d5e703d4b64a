"""Plain text of the package as Markdown: words are escaped, and code is set as code."""

from __future__ import annotations

import re

_CODE = re.compile(
    r"`[^`\n]+`"  # code already
    r"|\"[^\"\n]*\"(?!\w)"  # a value in quotes
    r"|(?<![\w'])'[^'\n]+'(?!\w)"
    r"|(?<![\w-])--?[a-z][\w-]*"  # an option
    r"|(?<!\w)kafka://(?:\S*[\w/])?"
    r"|(?<![\w.])[\w.]+=(?:\"[^\"\n]*\"|[^\s;)\]\"']*[\w/])?"  # key=value, key=
    r"|\b[a-z]+(?:\[?:[\w.|\[\]:,]*[\w\]])+"  # last:7d
    r"|(?<![\w./-])[\w-]*\.(?:csv|jsonl|json|parquet|html|pickle)(?:\.gz)?\b"
    r"|\b[A-Za-z]\w*_\w+(?:\(\))?"  # kappa_m
    r"|\b(?!DeLong|McClish)[A-Z][a-z]+(?:[A-Z][a-z]+)+\b"  # InputError
)
_SPECIAL = re.compile(r"([\\*_<>\[\]#|$])")


def prose(text: str) -> str:
    """Return a text as Markdown with values, options and keywords set as code.

    >>> prose("give --order, 'a < 2' or kappa_m")
    "give `--order`, `'a < 2'` or `kappa_m`"
    """
    parts, end = [], 0
    for found in _CODE.finditer(text):
        parts += [_SPECIAL.sub(r"\\\1", text[end : found.start()]), code(found.group().strip("`"))]
        end = found.end()
    return "".join([*parts, _SPECIAL.sub(r"\\\1", text[end:])])


def sentence(text: str) -> str:
    """Return a text that begins like a sentence and ends with a full stop.

    >>> sentence("last:N events"), sentence("of the file")
    ('last:N events.', 'Of the file.')
    """
    first, _, rest = text.partition(" ")
    word = first.rstrip(",;")
    if word.isalpha() and (len(word) > 1 or word == "a") and not rest.startswith("|"):
        text = text[:1].upper() + text[1:]
    return text.removesuffix(".") + "."


def code(text: str) -> str:
    """Return a text as inline code."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def block(text: str, language: str) -> str:
    """Return lines of code as a fenced block."""
    return f"```{language}\n{text}\n```"


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Return a table; a `|` in a cell must be escaped."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
