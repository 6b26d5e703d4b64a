"""Deduplicator: of the events of one model with one id, within a horizon of time, the first alone counts.

For sources that deliver again what they delivered before. An event is dropped iff an event of the same
(model, id) that was kept, and is remembered, has a time at most `horizon` from its own. The clock is the
greatest time seen, of all models; what was kept is remembered until the clock has gone on by more than
`horizon` from where it stood when the event came. (And no longer than by nine eighths of it: what came at one
eighth, a pane, is forgotten at once.) So

    in order of time    that is every kept event within the horizon, and no other
    in any other order  an event counts twice only if it comes again when the clock has gone on by more than
                        the horizon, and is never dropped for one that is farther from it

An event without an id is never dropped, nor remembered.

What is remembered of (model, id) is its 128-bit hash (hash128.py) and the event's time: 24 bytes. An event
is dropped wrongly only where two hashes are equal: of n remembered ones some two are with a chance below
n^2 / 2^129, for a thousand million 1.5e-21.

Layout: a ring of entries in the order in which they came, so that each pane is a piece of it, and an index
by open addressing: a slot holds the first half of an entry's hash high bits and its place, so that a look-up
touches one place in memory, the index, unless it finds what it looks for. Entries leave the index by moving
back those behind them: there are no tombstones, and nothing is ever rebuilt but to grow or shrink.
(A set for each pane was tried: an event is looked for in nine of them.)
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .errors import CorruptBytesError, InputError
from .evaluator_state import Reader
from .events import NO_TIME, IdColumn, Int32Array, Int64Array, TextColumn
from .hash128 import UInt64Array, hash128
from .kernels import entry, inlined, kernel
from .rings import unrolled

HEAD, COUNT, CLOCK, PANES, TOUCHED = range(5)
"""Fields of the counters: place of the oldest entry, entries, greatest time seen, panes; and what is
read ahead (`_touch`), which means nothing."""

NUMBER, ENTRIES = range(2)
"""Columns of the panes, the oldest first: number on a grid of times since 1970, and how many entries."""

PANES_AT_MOST = 12
"""Eight in a horizon, one more at either end, and one that is new while the oldest is there still."""

_FIRST_CAPACITY = 256
_AT_ONCE = 64
_LINE = 8
_FARTHEST = 2**61
_HEAD = struct.Struct("<qqQI")

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
def _go_on(memory: Memory, time: int, horizon: int, pane: int) -> None:
    """Set the clock, open its pane, and forget the panes that it leaves behind."""
    counters, panes = memory.counters, memory.panes
    counters[CLOCK] = time
    gone = 0
    while gone < counters[PANES] and (panes[gone, NUMBER] + 1) * pane - 1 < time - horizon:
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
def _sift(
    memory: Memory,
    horizon: int,
    pane: int,
    hashes: UInt64Array,
    lengths: Int32Array,
    times: Int64Array,
    start: int,
    keep: npt.NDArray[np.bool_],
    kept_times: Int64Array,
) -> int:
    """Judge the events from `start` on; return where it stopped: at the end, or where there is no room.

    pane        microseconds of clock that are forgotten together
    kept_times  of dropped events, that of the nearest kept one; of two that are as near, the earlier
    """
    counters, slots = memory.counters, memory.slots
    for event in range(start, len(times)):
        if (event - start) % _AT_ONCE == 0:
            _touch(memory, hashes, event, min(event + _AT_ONCE, len(times)))
        time = times[event]
        if time > counters[CLOCK]:
            _go_on(memory, time, horizon, pane)
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
def _index(hashes: UInt64Array, slots: UInt64Array) -> None:
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


class Deduplicator:
    """Tells which events come again within a horizon, in microseconds.

    >>> deduplicator = Deduplicator(10)
    >>> models, ids = TextColumn.of(["a"] * 4), IdColumn.of(["x", "x", "y", "x"])
    >>> keep, kept_times = deduplicator.take(models, ids, np.array([0, 10, 10, 11]))
    >>> keep.tolist(), kept_times[~keep].tolist()
    ([True, False, True, True], [0])
    """

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon
        self._pane = -(-horizon // 8)
        counters = np.zeros(5, np.int64)
        counters[CLOCK] = NO_TIME
        self._memory = _with_room(_FIRST_CAPACITY, np.zeros((PANES_AT_MOST, 2), np.int64), counters)

    def __len__(self) -> int:
        """Return how many events are remembered."""
        return int(self._memory.counters[COUNT])

    @property
    def clock(self) -> int:
        """The greatest time seen; NO_TIME before the first event."""
        return int(self._memory.counters[CLOCK])

    def take(
        self, models: TextColumn, ids: IdColumn, times: Int64Array
    ) -> tuple[npt.NDArray[np.bool_], Int64Array]:
        """Return which of n events count, in their order; and of the others the time of the one that did.

        Of several within the horizon that is the nearest one's, of two as near the earlier one's; NO_TIME for
        events that count. 0.15 us an event, whatever is remembered; the result does not depend on how events
        are cut into calls.

        Raises InputError, and takes in nothing, for a time farther than 70,000 years from 1970, or none.
        """
        n = len(times)
        keep, kept_times = np.ones(n, np.bool_), np.full(n, NO_TIME)
        if not n:
            return keep, kept_times
        if not (times.min() > -_FARTHEST and times.max() < _FARTHEST):
            raise InputError(
                "an event to be deduplicated has no time, or one that lies more than 70,000 years from 1970; "
                "check the unit of the times"
            )
        hashes = hash128(ids, models.codes, hash128(IdColumn.of([*models.values])))
        at = 0
        while True:
            at = _sift(
                self._memory, self.horizon, self._pane, hashes, ids.lengths, times, at, keep, kept_times
            )
            if at == n:
                break
            self._resize(_room_for(len(self)))
        if len(self._memory.times) > max(4 * len(self), _FIRST_CAPACITY):
            self._resize(_room_for(len(self)))
        return keep, kept_times

    def _resize(self, capacity: int) -> None:
        """Move what is remembered to where there is room for so much."""
        old, count = self._memory, len(self)
        head = int(old.counters[HEAD])
        memory = _with_room(capacity, old.panes, old.counters)
        memory.hashes[:count] = unrolled(old.hashes, head, count)
        memory.times[:count] = unrolled(old.times, head, count)
        _move_index(old.slots, head, len(old.times), memory.slots)
        memory.counters[HEAD] = 0
        self._memory = memory

    # ---- state

    @property
    def nbytes(self) -> int:
        """How much memory it takes: 36 to 40.5 bytes an event remembered, or four times that after a peak."""
        return sum(array.nbytes for array in self._memory)

    def snapshot_bytes(self) -> int:
        """Return how long `to_bytes` is, in O(1)."""
        return 4 + _HEAD.size + 16 * int(self._memory.counters[PANES]) + 24 * len(self)

    def to_bytes(self) -> bytes:
        """Return a snapshot: a deduplicator loaded from it goes on exactly as this one does.

        Wire form, little-endian: crc32 of the rest (u32); horizon and clock (i64), entries (u64), panes
        (u32); number and entries of each pane (i64); then of all entries, the oldest first, their hashes (two
        u64), and their times (i64).
        """
        memory, count = self._memory, len(self)
        panes = memory.panes[: memory.counters[PANES]]
        oldest = int(memory.counters[HEAD])
        payload = b"".join(
            [
                _HEAD.pack(self.horizon, self.clock, count, len(panes)),
                panes.astype("<i8").tobytes(),
                unrolled(memory.hashes, oldest, count).astype("<u8").tobytes(),
                unrolled(memory.times, oldest, count).astype("<i8").tobytes(),
            ]
        )
        return struct.pack("<I", zlib.crc32(payload)) + payload

    @classmethod
    def from_bytes(cls, data: bytes) -> Deduplicator:
        """Return the deduplicator that wrote a snapshot; CorruptBytesError for any other bytes."""
        try:
            return cls._read(Reader(memoryview(data)))
        except ValueError as damage:
            raise CorruptBytesError(
                f"{len(data)} bytes are no snapshot of a deduplicator: {damage}; go on from another one"
            ) from damage

    @classmethod
    def _read(cls, reader: Reader) -> Deduplicator:
        """Read a snapshot; ValueError where it is damaged or contradicts itself."""
        if reader.number("<I") != zlib.crc32(reader.payload[reader.at :]):
            raise ValueError("their checksum is another")
        horizon, clock, count, held = reader.numbers(_HEAD.format)
        if not 0 < horizon < _FARTHEST or held > PANES_AT_MOST:
            raise ValueError(f"a horizon of {horizon} and {held} panes")
        self = cls(horizon)
        panes = reader.array("<i8", 2 * held).reshape(held, 2)
        hashes = reader.array("<u8", 2 * count).reshape(count, 2)
        times = reader.array("<i8", count)
        reader.end()
        if (
            (panes[:, ENTRIES] < 0).any()
            or panes[:, ENTRIES].sum() != count
            or (held == 0) != (clock == NO_TIME)
        ):
            raise ValueError(f"panes of {panes[:, ENTRIES].tolist()} entries where there are {count}")
        if (np.diff(panes[:, NUMBER]) <= 0).any() or (held and panes[-1, NUMBER] != clock // self._pane):
            raise ValueError(f"panes {panes[:, NUMBER].tolist()} up to a clock of {clock}")
        counters = np.array([0, count, clock, held, 0], np.int64)
        all_panes = np.zeros((PANES_AT_MOST, 2), np.int64)
        all_panes[:held] = panes
        memory = self._memory = _with_room(_room_for(count), all_panes, counters)
        memory.hashes[:count], memory.times[:count] = hashes, times
        _index(hashes, memory.slots)
        return self


def _room_for(entries: int) -> int:
    """Return how many entries to have room for where there are some: an eighth more.

    While they grow each moves eight times, and takes 40 bytes; with room for half as many more twice, and 54.
    """
    return max(entries + entries // 8 + 1, _FIRST_CAPACITY)


def _with_room(capacity: int, panes: Int64Array, counters: Int64Array) -> Memory:
    """Return a memory with room for so many entries, and an empty index."""
    return Memory(
        np.empty((capacity, 2), np.uint64), np.empty(capacity, np.int64),
        np.zeros(capacity * 3 // 2 + 1, np.uint64), panes, counters,
    )  # fmt: skip
