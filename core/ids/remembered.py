"""The memory of a `Deduplicator`: hashes of (model, id) with times, in a ring with an index.

Layout: a ring of entries in order of arrival, and an index by open addressing. Each pane is a contiguous part
of the ring. A slot of the index holds 32 bits of an entry's hash and the entry's place in the ring. So a
look-up that finds nothing touches the index alone. When an entry leaves the index, the entries behind it move
back into the gap: there are no tombstones, and the index is rebuilt only to grow or to shrink. (A set for
each pane was tried and dropped: an event had to be looked up in nine sets.)
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
"""Fields of the counters: place of the oldest entry, entries, greatest time seen, panes; and a field without
meaning, to which `_touch` writes so that the compiler keeps its reads.
"""

NUMBER, ENTRIES = range(2)
"""Columns of the panes, the oldest pane first: number on a grid of times since 1970, and count of entries."""

PANES_AT_MOST = 12
"""The most panes at a time: eight in a horizon, one more at either end, and a new pane while the oldest pane
is still held.
"""

FIRST_CAPACITY = 256
_AT_ONCE = 64
_LINE = 8
_32, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_EMPTY = np.uint64(0)


class Memory(NamedTuple):
    """The entries and their index. With room for C entries and S = 3 C / 2 slots: 24 C + 8 S bytes.

    hashes    uint64[C, 2]: both halves of each entry's hash
    times     int64[C]
    slots     uint64[S]: upper 32 bits of the hash's first half, then place + 1 in 32 bits; 0 is a free slot
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
    """Return the slot where the search for an entry starts; a greater hash never has a lower slot."""
    return int(np.int64(((value >> _32) * np.uint64(len(slots))) >> _32))  # int() of a uint64 stays a uint64


@inlined
def _after(slot: int, slots: UInt64Array) -> int:
    return slot + 1 if slot + 1 < len(slots) else 0


@inlined
def _touch(memory: Memory, hashes: UInt64Array, start: int, end: int) -> None:
    """Read in advance the slots where the searches for entries will start, so that cache misses overlap.

    With 10 million entries this reading in advance saves two thirds of the time.
    """
    touched = _EMPTY
    for number in range(start, end):
        slot = _home(hashes[number, 0], memory.slots)
        touched ^= memory.slots[slot] ^ memory.slots[min(slot + _LINE, len(memory.slots) - 1)]
    memory.counters[TOUCHED] = np.int64(touched >> _32)


@kernel
def _unindex(slots: UInt64Array, value: np.uint64) -> None:
    """Remove an entry from the index, and move displaced entries behind it back into the gap."""
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
    """Advance the clock to `time`, open the pane of that time, and forget panes older than `remembered`."""
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
    """Decide which events from `start` on count; return the event at which the kernel stopped.

    It stops at the end of the events, or when the memory has no room for another entry.

    remembered  microseconds by which the clock advances until an event is forgotten
    pane        microseconds of a pane, whose events are forgotten together
    kept_times  filled, for each dropped event, with the time of the nearest kept event; of two equally near
                events, with the earlier time
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
    """Fill an empty index from an index of another size, in order of slots; place `head` becomes place 0."""
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
    """Return a memory without entries."""
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
    """Copy a memory into one with suitable room for its entries. Counters and panes are the same arrays."""
    head, count = int(old.counters[HEAD]), int(old.counters[COUNT])
    memory = _with_room(_room_for(count), old.panes, old.counters)
    memory.hashes[:count] = unrolled(old.hashes, head, count)
    memory.times[:count] = unrolled(old.times, head, count)
    _move_index(old.slots, head, len(old.times), memory.slots)
    memory.counters[HEAD] = 0
    return memory


def contents(memory: Memory) -> tuple[Int64Array, UInt64Array, Int64Array]:
    """Return the panes, and the hashes and the times of all entries, the oldest first."""
    head, count, held = (int(memory.counters[field]) for field in (HEAD, COUNT, PANES))
    return memory.panes[:held], unrolled(memory.hashes, head, count), unrolled(memory.times, head, count)


def is_too_large(memory: Memory) -> bool:
    """Return whether a memory has room for more than four times the entries it holds."""
    return len(memory.times) > max(4 * int(memory.counters[COUNT]), FIRST_CAPACITY)


def _room_for(entries: int) -> int:
    """Return the capacity for a number of entries: the number and an eighth of it.

    While a memory grows, each entry is then copied eight times and takes 40 bytes. With a half more, an entry
    would be copied twice and take 54 bytes.
    """
    return max(entries + entries // 8 + 1, FIRST_CAPACITY)


def _with_room(capacity: int, panes: Int64Array, counters: Int64Array) -> Memory:
    """Return a memory with room for `capacity` entries, and an empty index."""
    return Memory(
        np.empty((capacity, 2), np.uint64), np.empty(capacity, np.int64),
        np.zeros(capacity * 3 // 2 + 1, np.uint64), panes, counters,
    )  # fmt: skip
