"""The memory of a `Deduplicator`: hashes of (model, id) with times, in a ring with an index.

Layout: a ring of entries in the order in which they came, so that each pane is a piece of it, and an index
by open addressing: a slot holds the first half of an entry's hash high bits and its place, so that a look-up
touches one place in memory, the index, unless it finds what it looks for. Entries leave the index by moving
back those behind them: there are no tombstones, and nothing is ever rebuilt but to grow or shrink.
(A set for each pane was tried: an event is looked for in nine of them.)
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import Int32Array, Int64Array, UInt64Array
from ..events.times import NO_TIME
from ..kernels.compile import entry, inlined, kernel
from ..kernels.rings import unrolled

HEAD, COUNT, CLOCK, PANES, TOUCHED = range(5)
"""Fields of the counters: place of the oldest entry, entries, greatest time seen, panes; and what is
read ahead (`_touch`), which means nothing."""

NUMBER, ENTRIES = range(2)
"""Columns of the panes, the oldest first: number on a grid of times since 1970, and how many entries."""

PANES_AT_MOST = 12
"""Eight in a horizon, one more at either end, and one that is new while the oldest is there still."""

FIRST_CAPACITY = 256
_AT_ONCE = 64
_LINE = 8
_32, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_EMPTY = np.uint64(0)


class Memory(NamedTuple):
    """What is remembered. Of C entries and S = 3 C / 2 slots: 24 C + 8 S bytes.

    hashes    uint64[C, 2], their halves
    times     int64[C]
    slots     uint64[S]: the upper half of a hash's first half, and place + 1 below; 0 is empty
    panes     int64[PANES_AT_MOST, 2]
    counters  int64[5]
    """

    hashes: UInt64Array
    times: Int64Array
    slots: UInt64Array
    panes: Int64Array
    counters: Int64Array


@inlined
def _home(value: np.uint64, slots: UInt64Array) -> int:
    """Return the slot where the search for an entry starts: slots rise with the hash."""
    return int(np.int64(((value >> _32) * np.uint64(len(slots))) >> _32))  # int() of a uint64 remains one


@inlined
def _after(slot: int, slots: UInt64Array) -> int:
    return slot + 1 if slot + 1 < len(slots) else 0


@inlined
def _touch(memory: Memory, hashes: UInt64Array, start: int, end: int) -> None:
    """Read the slots where searches will start, all at once: the memory then answers them side by side.

    Of 10 million entries it saves two thirds of the time.
    """
    touched = _EMPTY
    for number in range(start, end):
        slot = _home(hashes[number, 0], memory.slots)
        touched ^= memory.slots[slot] ^ memory.slots[min(slot + _LINE, len(memory.slots) - 1)]
    memory.counters[TOUCHED] = np.int64(touched >> _32)


@kernel
def _unindex(slots: UInt64Array, value: np.uint64) -> None:
    """Take an entry out of the index; those behind it that it pushed away move back."""
    gap = _home(value, slots)
    while slots[gap] != value:
        gap = _after(gap, slots)
    slot = _after(gap, slots)
    while slots[slot] != _EMPTY:
        distance, pushed = slot - gap, slot - _home(slots[slot], slots)
        if distance < 0:
            distance += len(slots)
        if pushed < 0:
            pushed += len(slots)
        if pushed >= distance:
            slots[gap] = slots[slot]
            gap = slot
        slot = _after(slot, slots)
    slots[gap] = _EMPTY


@kernel
def _go_on(memory: Memory, time: int, remembered: int, pane: int) -> None:
    """Set the clock, open its pane, and forget the panes that it leaves behind."""
    counters, panes = memory.counters, memory.panes
    counters[CLOCK] = time
    gone = 0
    while gone < counters[PANES] and (panes[gone, NUMBER] + 1) * pane - 1 < time - remembered:
        for number in range(panes[gone, ENTRIES]):
            place = counters[HEAD]
            if number % _AT_ONCE == 0:
                _touch(memory, memory.hashes, place, min(place + _AT_ONCE, len(memory.times)))
            _unindex(memory.slots, (memory.hashes[place, 0] >> _32 << _32) | np.uint64(place + 1))
            counters[HEAD] = place + 1 if place + 1 < len(memory.times) else 0
        counters[COUNT] -= panes[gone, ENTRIES]
        gone += 1
    held = counters[PANES] - gone
    for number in range(held):
        panes[number, NUMBER] = panes[number + gone, NUMBER]
        panes[number, ENTRIES] = panes[number + gone, ENTRIES]
    if held == 0 or panes[held - 1, NUMBER] < time // pane:
        panes[held, NUMBER] = time // pane
        panes[held, ENTRIES] = 0
        held += 1
    counters[PANES] = held


@entry
def judge(
    memory: Memory,
    horizon: int,
    remembered: int,
    pane: int,
    hashes: UInt64Array,
    lengths: Int32Array,
    times: Int64Array,
    start: int,
    keep: npt.NDArray[np.bool_],
    kept_times: Int64Array,
) -> int:
    """Judge the events from `start` on; return where it stopped: at the end, or where there is no room.

    remembered  microseconds that the clock goes on until an event is forgotten, and
    pane        how many of them are forgotten together
    kept_times  of dropped events, that of the nearest kept one; of two that are as near, the earlier
    """
    counters, slots = memory.counters, memory.slots
    for event in range(start, len(times)):
        if (event - start) % _AT_ONCE == 0:
            _touch(memory, hashes, event, min(event + _AT_ONCE, len(times)))
        time = times[event]
        if time > counters[CLOCK]:
            _go_on(memory, time, remembered, pane)
        keep[event] = True
        if lengths[event] < 0:
            continue
        high, low = hashes[event, 0], hashes[event, 1]
        tag = high >> _32
        slot = _home(high, slots)
        nearest = horizon + 1
        while slots[slot] != _EMPTY:
            if slots[slot] >> _32 == tag:
                place = np.int64(slots[slot] & _LOW) - 1
                if memory.hashes[place, 0] == high and memory.hashes[place, 1] == low:
                    kept = memory.times[place]
                    distance = abs(time - kept)
                    if distance < nearest or (distance == nearest <= horizon and kept < time):
                        nearest = distance
                        keep[event], kept_times[event] = False, kept
            slot = _after(slot, slots)
        if not keep[event]:
            continue
        if counters[COUNT] == len(memory.times):
            return event
        place = (counters[HEAD] + counters[COUNT]) % len(memory.times)
        memory.hashes[place, 0], memory.hashes[place, 1], memory.times[place] = high, low, time
        slots[slot] = tag << _32 | np.uint64(place + 1)
        counters[COUNT] += 1
        memory.panes[counters[PANES] - 1, ENTRIES] += 1
    return len(times)


@entry
def _fill_index(hashes: UInt64Array, slots: UInt64Array) -> None:
    """Fill an empty index with the entries at places 0, 1, 2, ..."""
    for place in range(len(hashes)):
        slot = _home(hashes[place, 0], slots)
        while slots[slot] != _EMPTY:
            slot = _after(slot, slots)
        slots[slot] = (hashes[place, 0] >> _32 << _32) | np.uint64(place + 1)


@entry
def _move_index(old: UInt64Array, head: int, capacity: int, slots: UInt64Array) -> None:
    """Fill an empty index from one of another size, whose place `head` becomes 0: both in order of slots."""
    for value in old:
        if value == _EMPTY:
            continue
        place = np.int64(value & _LOW) - 1 - head
        if place < 0:
            place += capacity
        slot = _home(value, slots)
        while slots[slot] != _EMPTY:
            slot = _after(slot, slots)
        slots[slot] = (value >> _32 << _32) | np.uint64(place + 1)


def new_memory() -> Memory:
    """Return one that remembers nothing."""
    counters = np.zeros(5, np.int64)
    counters[CLOCK] = NO_TIME
    return _with_room(FIRST_CAPACITY, np.zeros((PANES_AT_MOST, 2), np.int64), counters)


def filled(hashes: UInt64Array, times: Int64Array, panes: Int64Array, clock: int) -> Memory:
    """Return a memory of these entries and panes, the oldest first."""
    count, held = len(times), len(panes)
    counters = np.array([0, count, clock, held, 0], np.int64)
    all_panes = np.zeros((PANES_AT_MOST, 2), np.int64)
    all_panes[:held] = panes
    memory = _with_room(_room_for(count), all_panes, counters)
    memory.hashes[:count], memory.times[:count] = hashes, times
    _fill_index(memory.hashes[:count], memory.slots)
    return memory


def resized(old: Memory) -> Memory:
    """Return a memory of the same with the room that suits it; counters and panes are the same arrays."""
    head, count = int(old.counters[HEAD]), int(old.counters[COUNT])
    memory = _with_room(_room_for(count), old.panes, old.counters)
    memory.hashes[:count] = unrolled(old.hashes, head, count)
    memory.times[:count] = unrolled(old.times, head, count)
    _move_index(old.slots, head, len(old.times), memory.slots)
    memory.counters[HEAD] = 0
    return memory


def is_too_large(memory: Memory) -> bool:
    """Return whether it was made for far more than it remembers."""
    return len(memory.times) > max(4 * int(memory.counters[COUNT]), FIRST_CAPACITY)


def _room_for(entries: int) -> int:
    """Return how many entries to have room for where there are some: an eighth more.

    While they grow each moves eight times, and takes 40 bytes; with room for half as many more twice, and 54.
    """
    return max(entries + entries // 8 + 1, FIRST_CAPACITY)


def _with_room(capacity: int, panes: Int64Array, counters: Int64Array) -> Memory:
    """Return a memory with room for so many entries, and an empty index."""
    return Memory(
        np.empty((capacity, 2), np.uint64), np.empty(capacity, np.int64),
        np.zeros(capacity * 3 // 2 + 1, np.uint64), panes, counters,
    )  # fmt: skip
