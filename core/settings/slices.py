"""Slices of a model: their columns, and their names in rows."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..errors import ConfigError

OTHER = "other"
"""The value in the name of the slice that takes all values without a slice of their own."""


def escape_slice(text: str) -> str:
    r"""Escape the characters that have a meaning in the name of a slice, `carrier=UA,origin=JFK`.

    >>> print(escape_slice("a=b,c"))
    a\=b\,c
    """
    return text.replace("\\", "\\\\").replace("=", "\\=").replace(",", "\\,")


_PAIR = re.compile(r"((?:[^\\=,]|\\.)+)=((?:[^\\=,]|\\.)*)(?:,(?=.)|\Z)", re.DOTALL)


def parse_slice(label: str) -> list[tuple[str, str]]:
    r"""Return the (column, value) pairs of the name of a slice. Raises ValueError for any other text.

    >>> parse_slice("carrier=UA,origin=a\\=b"), parse_slice("")
    ([('carrier', 'UA'), ('origin', 'a=b')], [])
    """
    pairs, at = [], 0
    while at < len(label):
        if (found := _PAIR.match(label, at)) is None:
            raise ValueError(f"{label!r} is no name of a slice")
        name, value = (re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL) for text in found.groups())
        pairs.append((name, value))
        at = found.end()
    return pairs


def checked_slices(asked: Iterable[str | Iterable[str]]) -> tuple[tuple[str, ...], ...]:
    """Return slices as tuples of columns; a single column may be given as text. Raises ConfigError.

    >>> checked_slices(("carrier", ("carrier", "origin")))
    (('carrier',), ('carrier', 'origin'))
    """
    slices = tuple((names,) if isinstance(names, str) else tuple(names) for names in asked)
    for names in slices:
        if not names or not all(isinstance(name, str) and name for name in names):
            raise ConfigError(
                f"slices={asked!r}: a slice is one or more names, a column name or several for a cross"
            )
        if len(set(names)) < len(names):
            raise ConfigError(f"slice {','.join(names)!r} names a column twice; name each once")
    if len(set(slices)) < len(slices):
        raise ConfigError(
            f"slices={asked!r} has the same slice twice, and none may be named twice; name each once"
        )
    return slices
