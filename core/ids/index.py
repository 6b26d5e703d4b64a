"""Ids as numbers: a hash that is fixed for all versions, and an index that holds every id once.

`hash64_of_ids` is SipHash-1-3 under the key 0, of an id's bytes: the same on every machine and in every
version, so that it may decide an id's shard. (CPython's `hash` of bytes gives the same value with
PYTHONHASHSEED=0.)

`IdIndex` gives equal ids equal numbers, 0, 1, 2, ... in the order in which the ids first appear; equal means
the same bytes, compared one by one. Its table hashes under a key drawn for the process, so that nobody can
choose ids that collide in the table. No result of the index depends on that key.

Invariant: the bytes of id i are arena[starts[i] : starts[i + 1]]. The table is open addressing with linear
probes and never more than 3/4 full; a slot holds half of the hash beside the number, so that a probe looks
at other ids' bytes once in 2^32 times. Ids are not removed one by one: `kept` makes an index of some of them.

Source: Aumasson & Bernstein 2012, SipHash: a fast short-input PRF, sections 2 and 6.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from ..arrays import ByteArray, Int32Array, Int64Array, UInt64Array
from ..errors import CorruptBytesError, InputError
from ..events.columns import IdColumn, gathered
from ..kernels.bits import prefetch
from ..kernels.compile import entry, inlined
from ..kernels.records import at, for_kernels, whole

MOST_IDS = 2**31 - 1

EMPTY = -1
_SLOT_FIELDS: list[Any] = [("tag", "u4"), ("number", "i4")]  # the slot is free if its number is EMPTY
SLOT = np.dtype(_SLOT_FIELDS)

_LOOK_AHEAD = 12  # rows to prefetch ahead; finding one of 2M ids takes 76 ns, without prefetching 93 ns

_AT_ONCE = 16_384  # rows in a call of the kernel; the index has room for so many new ids

u8 = np.uint64
_V0, _V1 = u8(0x736F6D6570736575), u8(0x646F72616E646F6D)
_V2, _V3 = u8(0x6C7967656E657261), u8(0x7465646279746573)
_LAST = u8(0xFF)
_BYTE, _HALF, _LOW_HALF = u8(8), u8(32), u8(0xFFFFFFFF)
_NO_KEY = u8(0), u8(0)
_KEY_OF_PROCESS = tuple(np.frombuffer(os.urandom(16), np.uint64))


@inlined
def rotated(word: Any, left: int) -> Any:
    """Rotate 64 bits to the left."""
    return (word << u8(left)) | (word >> u8(64 - left))


@inlined
def sip_round(v0: Any, v1: Any, v2: Any, v3: Any) -> tuple[Any, Any, Any, Any]:
    """One SipRound, figure 2.1 of the paper."""
    v0 += v1
    v1 = rotated(v1, 13) ^ v0
    v0 = rotated(v0, 32)
    v2 += v3
    v3 = rotated(v3, 16) ^ v2
    v0 += v3
    v3 = rotated(v3, 21) ^ v0
    v2 += v1
    v1 = rotated(v1, 17) ^ v2
    v2 = rotated(v2, 32)
    return v0, v1, v2, v3


@inlined
def word_of(data: ByteArray, start: int) -> Any:
    """Read eight bytes as a little-endian word: one load, when compiled."""
    word = u8(data[at(start)])
    for j in range(1, 8):
        word |= u8(data[at(start + j)]) << u8(8 * j)
    return word


@entry
def hash_all(data: ByteArray, offsets: Int64Array, key0: Any, key1: Any, hashes: UInt64Array) -> None:
    """Write the SipHash-1-3 of every id to `hashes`."""
    for row in range(len(hashes)):
        start, end = offsets[row], offsets[row + 1]
        v0, v1, v2, v3 = key0 ^ _V0, key1 ^ _V1, key0 ^ _V2, key1 ^ _V3
        length = u8(end - start)
        while end - start >= 8:
            word = word_of(data, start)
            v0, v1, v2, v3 = sip_round(v0, v1, v2, v3 ^ word)
            v0 ^= word
            start += 8
        word = length << u8(56)
        shift = u8(0)
        while start < end:
            word |= u8(data[at(start)]) << shift
            shift += _BYTE
            start += 1
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3 ^ word)
        v0 ^= word
        v2 ^= _LAST
        for _ in range(3):
            v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
        hashes[row] = v0 ^ v1 ^ v2 ^ v3


class Index(NamedTuple):
    """An IdIndex for kernels: SLOTs of the table; starts int64[ids + 1]; the bytes of the ids."""

    table: Any
    starts: Any
    arena: Any


@inlined
def home_of(hash_: Any, slots: int) -> int:
    """Return the slot where a probe begins: the hash's upper half, scaled to the table."""
    return whole(((hash_ >> _HALF) * u8(slots)) >> _HALF)


@inlined
def holds(index: Index, number: int, data: ByteArray, start: int, length: int) -> bool:
    """Return whether the id with a number equals the `length` bytes of `data` from `start` on.

    The loop has no early exit, so that it compiles to vector instructions.
    """
    here = index.starts[at(number)]
    if index.starts[at(number + 1)] - here != length:
        return False
    different = np.uint8(0)
    for j in range(length):
        different |= index.arena[at(here + j)] ^ data[at(start + j)]
    return different == 0


@entry
def find_or_add(
    index: Index, count: int, data: ByteArray, offsets: Int64Array, hashes: UInt64Array, numbers: Int32Array
) -> int:
    """Write the number of every id, and add new ids to the index; return the new number of ids in the index.

    The index must have room for all ids of the call.
    """
    slots = len(index.table)
    rows = len(numbers)
    for row in range(rows):
        if row + _LOOK_AHEAD < rows:
            prefetch(index.table[at(home_of(hashes[row + _LOOK_AHEAD], slots))])
        start, length = offsets[row], offsets[row + 1] - offsets[row]
        tag = np.uint32(hashes[row] & _LOW_HALF)
        place = home_of(hashes[row], slots)
        while True:
            slot = index.table[at(place)]
            number = whole(slot.number)
            if number == EMPTY:
                number = count
                slot.tag = tag
                slot.number = number
                here = index.starts[at(number)]
                for j in range(length):
                    index.arena[at(here + j)] = data[at(start + j)]
                index.starts[at(number + 1)] = here + length
                count += 1
                break
            if slot.tag == tag and holds(index, number, data, start, length):
                break
            place += 1
            if place == slots:
                place = 0
        numbers[row] = number
    return count


@entry
def fill(table: Any, hashes: UInt64Array) -> None:
    """Fill an empty table with distinct ids, by their hashes: the id of number i has `hashes[i]`."""
    slots = len(table)
    for number in range(len(hashes)):
        place = home_of(hashes[number], slots)
        while table[at(place)].number != EMPTY:
            place += 1
            if place == slots:
                place = 0
        slot = table[at(place)]
        slot.tag = np.uint32(hashes[number] & _LOW_HALF)
        slot.number = number


def _hashes(data: ByteArray, offsets: Int64Array, key: tuple[Any, ...]) -> UInt64Array:
    hashes = np.empty(len(offsets) - 1, np.uint64)
    data = data.view()
    data.flags.writeable = False  # always read-only, so that the kernel has one specialisation
    with np.errstate(over="ignore"):  # without compilation numpy would warn of additions modulo 2^64
        hash_all(data, offsets, key[0], key[1], hashes)
    return hashes


def hash64_of_ids(ids: IdColumn) -> UInt64Array:
    """Return the hash of every id (uint64[n]), fixed for all versions; a missing id hashes as the empty id.

    O(bytes): 60 million ids of 8 to 24 bytes a second, and twice as many if all have one length.

    >>> [hex(h) for h in hash64_of_ids(IdColumn.of(["flight 7", "Flight 7"])).tolist()]
    ['0x6b6e38e9f7ed99b1', '0x5e57ec735a4cbd8a']
    """
    return _hashes(np.frombuffer(ids.data, np.uint8), ids.offsets, _NO_KEY)


def _empty_table(slots: int) -> Any:
    table = np.empty(slots, SLOT)
    table["number"] = EMPTY
    return for_kernels(table)


class IdIndex:
    """Distinct ids, by number. Ids are equal if their bytes are; the empty id is an id like any other.

    Memory: the ids' bytes, and 8 + 8 x 4/3 to 8 + 8 x 7/4 bytes for each.

    >>> index = IdIndex()
    >>> index.numbers(IdColumn.of(["a", "b", "A", "a"]))
    array([0, 1, 2, 0], dtype=int32)
    >>> index.kept(np.array([2, 0])).ids().to_list()
    ['A', 'a']
    """

    def __init__(self) -> None:
        self._count = 0
        self._starts = np.zeros(1, np.int64)
        self._arena = np.empty(0, np.uint8)
        self._table = _empty_table(1)

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes of memory, without room that was never written to."""
        return int(8 * (self._count + 1) + self._starts[self._count] + self._table.nbytes)

    @classmethod
    def of(cls, ids: IdColumn) -> IdIndex:
        """Make the index in which id i has the number i.

        Raises CorruptBytesError if two of the ids are equal.
        """
        index = cls()
        index.numbers(ids)
        if len(index) != len(ids):
            raise CorruptBytesError(f"of {len(ids)} ids that have to differ only {len(index)} do; damaged")
        return index

    def numbers(self, ids: IdColumn) -> Int32Array:
        """Return the number of every id (int32[n]), and add new ids to the index. O(bytes), amortised."""
        if len(ids) and int(ids.lengths.min()) < 0:
            raise InputError("an event without an id cannot be found by its id; leave it out before")
        data, offsets = np.frombuffer(ids.data, np.uint8), ids.offsets
        hashes = _hashes(data, offsets, _KEY_OF_PROCESS)
        numbers = np.empty(len(ids), np.int32)
        for start in range(0, len(ids), _AT_ONCE):
            end = min(start + _AT_ONCE, len(ids))
            self._make_room(end - start, int(offsets[end] - offsets[start]))
            self._count = find_or_add(
                self._index(),
                self._count,
                data,
                offsets[start : end + 1],
                hashes[start:end],
                numbers[start:end],
            )
        return numbers

    def ids(self, numbers: Int64Array | None = None) -> IdColumn:
        """Return the ids with these numbers, or all ids if `numbers` is None."""
        if numbers is None:
            numbers = np.arange(self._count)
        starts, data = gathered(self._arena, self._starts[: self._count + 1], numbers)
        return IdColumn(np.diff(starts).astype(np.int32), data)

    def kept(self, numbers: Int64Array) -> IdIndex:
        """Return an index of the ids with these numbers, all different.

        The id of numbers[i] gets the number i.

        O(size of the result).
        """
        kept, count = IdIndex(), len(numbers)
        starts, data = gathered(self._arena, self._starts[: self._count + 1], numbers)
        kept._starts = grown(starts, count + 1, count + 1)
        kept._arena = grown(np.frombuffer(data, np.uint8), len(data), len(data))
        kept._count = count
        kept._fill_table(count)
        return kept

    def _index(self) -> Index:
        return Index(self._table, self._starts, self._arena)

    def _make_room(self, ids: int, size: int) -> None:
        """Grow the index until it has room for `ids` more ids, of `size` bytes in all."""
        count = self._count + ids
        if count > MOST_IDS:
            raise InputError(f"{count} ids wait at once and {MOST_IDS} can; use more shards or a shorter ttl")
        if count >= len(self._starts):
            self._starts = grown(self._starts, self._count + 1, count + 1)
        used = int(self._starts[self._count])
        if used + size > len(self._arena):
            self._arena = grown(self._arena, used, used + size)
        if 4 * count > 3 * len(self._table):
            self._fill_table(count)

    def _fill_table(self, count: int) -> None:
        """Make a table of the ids in the index, with room for `count` ids."""
        self._table = _empty_table(count * 7 // 4 + 1)
        fill(self._table, _hashes(self._arena, self._starts[: self._count + 1], _KEY_OF_PROCESS))


def grown(column: Any, used: int, needed: int) -> Any:
    """Return a copy of a column with room for `needed` entries and another `used` entries.

    Room takes memory only once it is written to. The column is copied as bytes: numpy copies records field by
    field, in ten times the time.
    """
    larger = np.empty(needed + used, column.dtype)
    size = used * column.dtype.itemsize
    larger.view(np.uint8)[:size] = np.asarray(column).view(np.uint8)[:size]
    return for_kernels(larger) if column.dtype.names else larger
