"""Ring buffers: arrays in which slot `head` is the oldest entry, and slot 0 follows the last slot."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from .compile import inlined

_Array = TypeVar("_Array", bound=npt.NDArray[Any])

FIRST_CAPACITY = 64
"""The number of slots of the smallest ring."""


def capacity_for(count: int, limit: int | None) -> int:
    """Return how many slots a ring for `count` entries gets.

    The number is a power of two, at least 64, but at most `limit`.

    >>> capacity_for(3, None), capacity_for(65, None), capacity_for(65, 100), capacity_for(200, 100)
    (64, 128, 100, 100)
    """
    room = max(FIRST_CAPACITY, 1 << max(0, count - 1).bit_length())
    return room if limit is None else min(room, limit)


def with_room(entries: _Array, capacity: int, fill: int = 0) -> _Array:
    """Return a ring of `capacity` slots with the given entries, the oldest in slot 0, and `fill` behind them.

    Entries may be rows of a matrix.
    """
    shape = (capacity, *entries.shape[1:])
    ring = np.full(shape, fill, entries.dtype) if fill else np.zeros(shape, entries.dtype)
    ring[: len(entries)] = entries
    return ring  # type: ignore[return-value]


def unrolled(ring: _Array, head: int, count: int) -> _Array:
    """Return a copy of `count` entries from slot `head` on, oldest first. O(count).

    >>> unrolled(np.array([4, 5, 2, 3]), 2, 3)
    array([2, 3, 4])
    """
    first = ring[head : head + count]
    if len(first) == count:
        return first.copy()  # type: ignore[return-value]
    return np.concatenate([first, ring[: count - len(first)]])  # type: ignore[return-value]


def write_ring(ring: npt.NDArray[Any], start: int, values: npt.NDArray[Any]) -> None:
    """Write values from slot `start` on; if there are more values than slots, only the last values stay.

    O(values).

    `start` is taken modulo the length. Two slices take a third of the time of one index for each slot.

    >>> ring = np.array([4, 5, 2, 3])
    >>> write_ring(ring, 2, np.array([6, 7, 8]))
    >>> ring
    array([8, 5, 6, 7])
    """
    size = len(ring)
    if len(values) > size:
        start += len(values) - size
        values = values[len(values) - size :]
    if not size:
        return
    start %= size
    first = min(size - start, len(values))
    ring[start : start + first] = values[:first]
    ring[: len(values) - first] = values[first:]


@inlined
def move_on(column: Any, slot: int, count: int) -> None:
    """Move the entries in the `count` slots before `slot` by one slot, overwriting the entry in `slot`.

    It moves two pieces that do not wrap: a test at each slot would take several times as long. One helper
    that opens a slot in all columns of a ring, given as a tuple, was tried: `apply_decisions` then takes 3%
    longer an event if the helper is inlined, and else 8% longer an event that comes out of order.
    """
    before_wrap = min(count, slot)
    for at in range(slot, slot - before_wrap, -1):
        column[at] = column[at - 1]
    if before_wrap < count:
        last = len(column) - 1
        column[0] = column[last]
        for at in range(last, last - (count - before_wrap - 1), -1):
            column[at] = column[at - 1]
