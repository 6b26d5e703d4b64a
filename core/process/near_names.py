"""Suggests names near to a mistyped word, for "did you mean". A suggestion that is not near misleads."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PARTS = re.compile(r"[^\W_]+")
_PREFIX = 3
"""The fewest letters of a word that counts as the beginning of a name."""


def near_names(word: str, names: Iterable[str], most: int = 1) -> list[str]:
    """Return at most `most` of the names that the word may mean, the nearest first.

    A name is near if few edits make it of the word: 1 for up to 5 letters, 2 up to 8, else 3. A word of 2
    letters has to keep both of them, and a word of 1 letter is near to no name by edits.
    It is also near if the word is a part of it ("order" of "order_id") or, from 3 letters on, its beginning.
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
    """Return the optimal string alignment distance: letters left out, added, replaced, or two exchanged."""
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
