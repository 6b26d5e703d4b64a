"""Slots: rows in one numpy array, each at a place of its own until it is freed, and then another's."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .events import Int64Array

_LEAST_ROOM = 256


class Slots:
    """Rows of one dtype by slot number; a freed slot is used again before a new one is.

    rows    the array: `rows[slots]` are the rows of slots that are in use, and may be written to

    Memory is that of the greatest number of rows so far, at most doubled, until `keep`.

    >>> slots = Slots(np.dtype([("score", "f8"), ("model", "i4")]))
    >>> slots.put(np.array([(0.5, 1), (0.25, 2)], slots.rows.dtype))
    array([0, 1])
    >>> slots.free(np.array([0]))
    >>> slots.put(np.array([(0.75, 3)], slots.rows.dtype)), len(slots)
    (array([0]), 2)
    >>> slots.keep(np.array([1]))
    >>> slots.rows[:1].tolist()
    [(0.25, 2)]
    """

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self.rows: npt.NDArray[Any] = np.empty(0, dtype)
        self._fresh = 0  # slots from here on were never used
        self._free = np.empty(0, np.int64)  # a stack, of which the first `_freed` count
        self._freed = 0

    def __len__(self) -> int:
        return self._fresh - self._freed

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.rows.nbytes + self._free.nbytes

    def put(self, rows: npt.NDArray[Any]) -> Int64Array:
        """Let rows in and return their slots, int64[n]. O(n), amortised."""
        reused = min(self._freed, len(rows))
        fresh = len(rows) - reused
        self._make_room(self._fresh + fresh)
        slots = np.empty(len(rows), np.int64)
        slots[:reused] = self._free[self._freed - reused : self._freed]
        slots[reused:] = np.arange(self._fresh, self._fresh + fresh)
        self.rows[slots] = rows
        self._freed -= reused
        self._fresh += fresh
        return slots

    def free(self, slots: Int64Array) -> None:
        """Give up slots that are in use, no slot twice. O(n)."""
        self._free[self._freed : self._freed + len(slots)] = slots
        self._freed += len(slots)

    def keep(self, slots: Int64Array) -> None:
        """Give up all but some slots, no slot twice; the i-th of them becomes slot i. O(n)."""
        self.rows = self.rows[slots]
        self._fresh, self._freed = len(slots), 0
        self._free = np.empty(len(slots), np.int64)

    def _make_room(self, slots: int) -> None:
        if slots <= len(self.rows):
            return
        room = max(_LEAST_ROOM, 2 * len(self.rows), slots)
        for name in ("rows", "_free"):
            old = getattr(self, name)
            larger = np.empty(room, old.dtype)
            larger[: len(old)] = old
            setattr(self, name, larger)
