"""Keeps the warnings of this process, so that each is logged once."""

from __future__ import annotations

_told: dict[tuple[str, str], str] = {}
"""The warnings so far, by column, and by unit or label. Threads share it without a lock: each use is one step
of a dict.
"""


def is_new(key: tuple[str, str], text: str) -> bool:
    """Keep a warning, unless a warning with its key is kept already; return whether the warning was kept."""
    return _told.setdefault(key, text) is text


def is_told(key: tuple[str, str]) -> bool:
    """Return whether a warning of a key is kept."""
    return key in _told


def keep(key: tuple[str, str], text: str) -> None:
    """Keep a warning in the place of an earlier warning of its key."""
    _told[key] = text


def kept() -> list[str]:
    """Return the warnings, in the order of their keys' first warnings."""
    return [*_told.values()]


def forget() -> None:
    """Forget all warnings."""
    _told.clear()
