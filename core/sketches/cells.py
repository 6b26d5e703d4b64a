"""Score cells: a ladder of nested partitions of all floats, on which counts of any two data sets add exactly.

Invariants
    Level L + 1 splits some cells of level L and moves no border, so that counts at any level give the counts
    at every level below it. The partitions are fixed: no data decide where a border lies. They are mirrored
    at 0.

How fine are the cells of a region of scores? The counted data cannot decide. Cells must depend on the
multiset of scores alone, and not on how the multiset was split and merged. A part of the data may have few
scores in a region, and its sketch then has coarse cells there. A merge cannot divide coarse cells again. So
if the data decided, a region would be as coarse in all data as in the least favourable part, and no mass
could make it finer. Instead, each region has a share of the cells that was guessed once for all scores.
Regions without scores take no bytes.

The guess: a share falls by sqrt(1/2) a binade, down to 1/16, from 1/8 towards 0. From 1/2 towards 1, and from
-1/2 towards -1, where probabilities crowd, the share falls in the same way. All binades from 1 on have the
same share. Half the width of the certified AUC in 64 KB, 1M events: N(0, 1) against N(1, 1) 4.4e-5,
overconfident probabilities (logits N(-3.5, 7) against N(3.5, 7)) 4.0e-5. Prefixes of the float's bits, all of
one length, have 1.1e-4 and 1.1e-2; with eighths of a level, 6.1e-5 and 1.1e-2. The guess without the shares
near 1 has 4.4e-5 and 6.0e-3. Cells of equal mass, which do not merge, have 1.9e-5.

A level is a number of eighths of bits: with l bits and j eighths, of every 8 neighbours among the cells of l
bits the first j are halved. Up to level 88 the magnitude's 11 bits of exponent are divided. Above, each BLOCK
is divided (a binade, or a piece [1 - 2^-k, 1 - 2^-(k+1)) of [1/2, 1)), later by the eighths of its share.

A cell's number is 2 rank + open: the border nearer to 0 is a cell of its own, of one value, and the open rest
follows it. So ties stay ties if scores are 0, 1, 1/2 or small whole numbers, or are clipped at them. Below 0
the numbers are complements (~), which reverses their order, too. If every cell knew whether it holds one
value, a sketch would take three times the bytes and gain little: 3% of the width on the most tied of real
scores (277,677 events, 84,672 scores, 64 KB).
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..arrays import NO_INT64, ByteArray, Int64Array, UInt64Array
from ..kernels.compile import entry, inlined


class Cells(NamedTuple):
    """The numbers of cells, ascending, with the cells' negatives and positives."""

    numbers: Int64Array
    negatives: Int64Array
    positives: Int64Array


NO_CELLS = Cells(NO_INT64, NO_INT64, NO_INT64)

FINEST = 488
"""The finest level: cells hold at most four floats where shares are whole. Ranks fit 62 bits."""

EXACT = FINEST + 1
"""The level above all others: each float is a cell, numbered by its key (`score_tree.layout.keys_of`)."""

_EXPONENTS = 88
_MANTISSA = 52
_BELOW_ONE = 1022  # the biased exponent of [1/2, 1)
_FULL_SHARE = 1020  # the biased exponent of [1/8, 1/4)
_STEP, _MOST = 4, 32  # eighths of bits less per binade, and at most

LEAST_CELL_BYTES = 3


class Partition(NamedTuple):
    """One level of the ladder: its blocks in order of magnitude. EXACT has no blocks.

    starts  int64[b], the bits of the least magnitude of each block
    bits    int64[b]: a block has 2^bits magnitudes
    steps   int64[b]: the division of a block into cells, in eighths of bits
    ranks   int64[b + 1]: the rank of a block's first cell; at the end the number of all cells
    """

    starts: Int64Array
    bits: Int64Array
    steps: Int64Array
    ranks: Int64Array


def _blocks() -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return starts, bits and the levels above _EXPONENTS at which blocks begin to be divided."""
    blocks = [
        (exponent << _MANTISSA, _MANTISSA, min(_MOST, _STEP * max(0, _FULL_SHARE - exponent)))
        for exponent in range(2047)
    ]
    ones = range(_MANTISSA + 1)  # leading ones of the mantissa: 1 - 2^-(ones + 1) and up
    below_one = [
        (
            (_BELOW_ONE << _MANTISSA) | (((1 << k) - 1) << (_MANTISSA - k)),
            max(0, _MANTISSA - 1 - k),
            _STEP + min(_MOST, _STEP * k),
        )
        for k in ones
    ]
    blocks[_BELOW_ONE : _BELOW_ONE + 1] = below_one
    starts, bits, later = np.array(blocks, np.int64).T.copy()
    return starts, bits, later


_STARTS, _BITS, _LATER = _blocks()


@lru_cache(maxsize=32)
def partition_at(level: int) -> Partition:
    """Return the partition of a level from 0 to EXACT."""
    if level == EXACT:
        return Partition(NO_INT64, NO_INT64, NO_INT64, NO_INT64)
    if level <= _EXPONENTS:
        starts, bits, steps = np.array([0]), np.array([63]), np.array([level])
    else:
        starts, bits = _STARTS, _BITS
        steps = np.clip(level - _EXPONENTS - _LATER, 0, 8 * _BITS)
    whole, eighths = np.int64(1) << (steps >> 3), steps & 7
    cells = (whole >> 3) * (8 + eighths) + (whole & 7) + np.minimum(whole & 7, eighths)
    return Partition(starts, bits, steps, np.concatenate([[0], np.cumsum(cells)]))


@inlined
def block_of(magnitude: int, blocks: int) -> int:
    """Return the block that a magnitude lies in."""
    if blocks == 1:
        return 0
    exponent = magnitude >> _MANTISSA
    if exponent != _BELOW_ONE:
        return exponent if exponent < _BELOW_ONE else exponent + _MANTISSA
    ones = 0
    while ones < _MANTISSA and (magnitude >> (_MANTISSA - 1 - ones)) & 1:
        ones += 1
    return exponent + ones


@inlined
def cell_of(magnitude: int, partition: Partition) -> int:
    """Return the number of the cell that a magnitude lies in."""
    block = block_of(magnitude, len(partition.starts))
    bits, steps = partition.bits[block], partition.steps[block]
    eighths, width = steps & 7, bits - (steps >> 3)
    rest = magnitude - partition.starts[block]
    index = rest >> width
    rest -= index << width
    last = index & 7
    rank = partition.ranks[block] + (index >> 3) * (8 + eighths) + last + min(last, eighths)
    if last < eighths and (rest >> (width - 1)) & 1:
        rank += 1
        rest -= 1 << (width - 1)
    return 2 * rank + (rest != 0)


@inlined
def border_of(cell: int, partition: Partition) -> int:
    """Return the magnitude of a cell's lower border."""
    rank = cell >> 1
    block, end = 0, len(partition.starts)
    while end - block > 1:
        middle = (block + end) >> 1
        if partition.ranks[middle] <= rank:
            block = middle
        else:
            end = middle
    steps = partition.steps[block]
    eighths, width = steps & 7, partition.bits[block] - (steps >> 3)
    eight, last = divmod(rank - partition.ranks[block], 8 + eighths)
    half = 0
    if last < 2 * eighths:
        half = last & 1
        last >>= 1
    else:
        last -= eighths
    border = partition.starts[block] + ((8 * eight + last) << width)
    return border + (1 << (width - 1)) if half else border


@inlined
def in_coarser(cell: int, finer: Partition, coarser: Partition) -> int:
    """Return the coarser cell that contains a cell of `finer`."""
    number = ~cell if cell < 0 else cell
    is_open = 0
    if len(finer.starts) > 0:
        is_open = number & 1
        number = border_of(number, finer)
    number = cell_of(number, coarser) | is_open
    return ~number if cell < 0 else number


@entry
def coarsen(cells: Int64Array, finer: Partition, coarser: Partition, out: Int64Array) -> None:
    """Fill in the coarser cell that contains each cell; the cells may have any order. O(n)."""
    for place in range(len(cells)):
        out[place] = in_coarser(cells[place], finer, coarser)


@entry
def count_cells(cells: Int64Array, finer: Partition, coarser: Partition, limit: int) -> int:
    """Return the number of coarser cells that sorted cells lie in, at most limit + 1. O(n)."""
    count, before = 0, 0
    for place in range(len(cells)):
        cell = in_coarser(cells[place], finer, coarser)
        if count == 0 or cell != before:
            count += 1
            before = cell
            if count > limit:
                break
    return count


@entry
def add_cells(some: Cells, others: Cells, out: Cells) -> int:
    """Fill in the union of sorted cells of one level, with counts added; return their number. O(n)."""
    cells, other_cells = some.numbers, others.numbers
    n = here = there = 0
    while here < len(cells) or there < len(other_cells):
        from_here = there == len(other_cells) or (here < len(cells) and cells[here] <= other_cells[there])
        from_there = here == len(cells) or (there < len(other_cells) and other_cells[there] <= cells[here])
        out.negatives[n] = 0
        out.positives[n] = 0
        if from_here:
            out.numbers[n] = cells[here]
            out.negatives[n] += some.negatives[here]
            out.positives[n] += some.positives[here]
            here += 1
        if from_there:
            out.numbers[n] = other_cells[there]
            out.negatives[n] += others.negatives[there]
            out.positives[n] += others.positives[there]
            there += 1
        n += 1
    return n


def united(some: Cells, others: Cells) -> Cells:
    """Return the union of cells of one level, with their counts added. O(n)."""
    room = Cells(*np.empty((3, len(some.numbers) + len(others.numbers)), np.int64))
    n = add_cells(some, others, room)
    return Cells(*(column[:n].copy() for column in room))


def at_level(numbers: Int64Array, level: int, coarser: int) -> Int64Array:
    """Return the cells of a coarser level that contain the cells of a level. O(n)."""
    if level == coarser:
        return numbers
    out = np.empty_like(numbers)
    coarsen(numbers, partition_at(level), partition_at(coarser), out)
    return out


def coarsened(cells: Cells, level: int, coarser: int) -> Cells:
    """Return the cells of a level as cells of a coarser level, with the sums of their counts. O(n)."""
    if level == coarser or not len(cells.numbers):
        return cells
    numbers = at_level(cells.numbers, level, coarser)
    begins = np.flatnonzero(np.diff(numbers, prepend=~numbers[0]))
    negatives, positives = (np.add.reduceat(counts, begins) for counts in cells[1:])
    return Cells(numbers[begins], negatives, positives)


# The wire form of a cell is three numbers (distance from the cell before, negatives, positives), in 7 bits a
# byte, lowest first; the top bit says that more bytes follow. Adding events never makes the form shorter: a
# new cell splits a distance into two that together take at least as many bytes. AucSketch depends on this.


@entry
def wire_size(numbers: UInt64Array) -> int:
    """Return the number of bytes of the numbers' wire form."""
    size = len(numbers)
    for number in numbers:
        while number >= 128:
            number >>= np.uint64(7)
            size += 1
    return size


@entry
def write_numbers(numbers: UInt64Array, out: ByteArray) -> None:
    """Write numbers to a buffer of `wire_size`."""
    at = 0
    for number in numbers:
        while number >= 128:
            out[at] = (number & np.uint64(127)) | np.uint64(128)
            number >>= np.uint64(7)
            at += 1
        out[at] = number
        at += 1


@entry
def read_numbers(data: ByteArray, numbers: UInt64Array) -> bool:
    """Fill in numbers; return False unless the data have exactly as many, in shortest form."""
    at = 0
    for place in range(len(numbers)):
        number, shift = np.uint64(0), 0
        while True:
            if at == len(data) or shift > 63:
                return False
            byte = data[at]
            at += 1
            if (shift == 63 and byte > 1) or (shift > 0 and byte == 0):
                return False
            number |= np.uint64(byte & 127) << np.uint64(shift)
            shift += 7
            if byte < 128:
                break
        numbers[place] = number
    return at == len(data)
