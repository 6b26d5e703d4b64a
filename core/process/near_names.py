"""Suggests names near to a mistyped word, for "did you mean". A suggestion that is not near misleads."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PARTS = re.compile(r"[^\W_]+")
_PREFIX = 3
"""The fewest letters of a word that counts as the beginning of a name."""


def near_names(word: str, names: Iterable[str], most: int = 1) -> list[str]:
    """Return at most `most` of the names that the word may mean, the nearest first.

    A name is near if few edits turn the word into the name: one edit for a word of up to 5 letters, two for
    up to 8 letters, else three. The name must hold both letters of a word of 2 letters. A word of 1 letter is
    near to no name by edits. A name is also near if the word is one of its parts ("order" of "order_id").
    A word of 3 letters or more is also near to the names that begin with this word.
    Case does not count. Names of the same distance keep their order.

    >>> near_names("lable", ["score", "label"]), near_names("order", ["model", "score"])
    (['label'], [])
    >>> near_names("order", ["model", "order_id"]), near_names("auk", ["h", "aum", "auc"], 2)
    (['order_id'], ['aum', 'auc'])
    >>> near_names("fr", ["until", "for"]), near_names("h", ["ks", "hr"])
    (['for'], [])
    """
    plain = word.casefold()
    allowed = 0 if len(plain) <= 1 else 1 if len(plain) <= 5 else 2 if len(plain) <= 8 else 3
    ranked = []
    for name in dict.fromkeys(names):
        other = name.casefold()
        edits = _edits(plain, other) if abs(len(plain) - len(other)) <= allowed else allowed + 1
        if edits <= allowed and (len(plain) != 2 or set(plain) <= set(other)):
            ranked.append((edits, name))
        elif plain and (
            plain in _PARTS.findall(other) or (len(plain) >= _PREFIX and other.startswith(plain))
        ):
            ranked.append((allowed + 1, name))
    return [name for _, name in sorted(ranked, key=lambda each: each[0])[:most]]


def _edits(one: str, other: str) -> int:
    """Return the optimal string alignment distance of two texts. O(product of their lengths).

    An edit leaves out, adds or replaces a letter, or exchanges two neighbouring letters.
    """
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]
