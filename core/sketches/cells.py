"""Score cells: a ladder of nested partitions of all floats.

On these partitions the counts of any two data sets add exactly.

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

The shares are these: a share falls by sqrt(1/2) a binade, down to 1/16, from 1/8 towards 0. From 1/2 towards
1, and from -1/2 towards -1, where probabilities crowd, the share falls in the same way. All binades from 1 on
have the same share. Half the width of the certified AUC in 64 KB, 1M events: N(0, 1) against N(1, 1) 4.4e-5,
overconfident probabilities (logits N(-3.5, 7) against N(3.5, 7)) 4.0e-5. If cells are prefixes of the float's
bits, all of one length, the widths are 1.1e-4 and 1.1e-2; with eighths of a level, 6.1e-5 and 1.1e-2. Without
the special shares near 1 they are 4.4e-5 and 6.0e-3. Cells of equal mass, which cannot be merged, have 1.9e-5
for the normal scores.

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
from typing import Any, NamedTuple

import numpy as np

from ..arrays import ByteArray, Int64Array, UInt64Array
from ..kernels.compile import entry, inlined

Cells = tuple[Int64Array, Int64Array, Int64Array]
"""The numbers of cells, ascending, with the negatives and the positives of each cell."""


FINEST = 488
"""The finest level: cells hold at most four floats where shares are whole. Ranks fit 62 bits."""

EXACT = FINEST + 1
"""The level above all others: each float is a cell, numbered by its key (`score_tree.layout.keys_of`)."""

_EXPONENTS = 88
_MANTISSA = 52
_BELOW_ONE = 1022  # the biased exponent of [1/2, 1)
_FULL_SHARE = 1020  # the biased exponent of [1/8, 1/4)
_STEP, _MOST = 4, 32  # how many eighths of bits a share loses in a binade, and in all

LEAST_CELL_BYTES = 3


class Partition(NamedTuple):
    """One level of the ladder of partitions: its blocks in order of magnitude.

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
    """Return the starts and the bits of the blocks, and the level from which on each is divided.

    The levels count from _EXPONENTS.
    """
    blocks = [
        (exponent << _MANTISSA, _MANTISSA, min(_MOST, _STEP * max(0, _FULL_SHARE - exponent)))
        for exponent in range(2047)
    ]
    ones = range(_MANTISSA + 1)  # how many leading bits of the mantissa are ones: 1 - 2^-(ones + 1) and up
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
    """Return the partition of a level from 0 to FINEST."""
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
    """Return the number of the block in which a magnitude lies."""
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
    """Return the number of the cell in which a magnitude lies."""
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
def in_coarser(cell: int, exact: bool, finer: Partition, coarser: Partition) -> int:
    """Return the coarser cell that contains `cell`: a cell's number, or a key if `exact`."""
    number = ~cell if cell < 0 else cell
    is_open = 0
    if not exact:
        is_open = number & 1
        number = border_of(number, finer)
    number = cell_of(number, coarser) | is_open
    return ~number if cell < 0 else number


@entry
def cells_of(keys: Int64Array, partition: Partition, cells: Int64Array) -> None:
    """Fill `cells` with the cell of each key; the keys may have any order. O(n)."""
    for event in range(len(keys)):
        cells[event] = in_coarser(keys[event], True, partition, partition)


@entry
def count_cells(cells: Int64Array, exact: bool, finer: Partition, coarser: Partition, limit: int) -> int:
    """Return the number of coarser cells in which sorted cells lie, at most limit + 1. O(n)."""
    count, before = 0, 0
    for place in range(len(cells)):
        cell = in_coarser(cells[place], exact, finer, coarser)
        if count == 0 or cell != before:
            count += 1
            before = cell
            if count > limit:
                break
    return count


@entry
def coarsen(
    cells: Int64Array,
    negatives: Int64Array,
    positives: Int64Array,
    exact: bool,
    finer: Partition,
    coarser: Partition,
    out_cells: Int64Array,
    out_negatives: Int64Array,
    out_positives: Int64Array,
) -> int:
    """Write the coarser cells of sorted cells, with the sums of their counts.

    Return the number of coarser cells. O(n).
    """
    n = -1
    for place in range(len(cells)):
        cell = in_coarser(cells[place], exact, finer, coarser)
        if n < 0 or cell != out_cells[n]:
            n += 1
            out_cells[n] = cell
            out_negatives[n] = 0
            out_positives[n] = 0
        out_negatives[n] += negatives[place]
        out_positives[n] += positives[place]
    return n + 1


@entry
def add_cells(
    cells: Int64Array,
    negatives: Int64Array,
    positives: Int64Array,
    other_cells: Int64Array,
    other_negatives: Int64Array,
    other_positives: Int64Array,
    out_cells: Int64Array,
    out_negatives: Int64Array,
    out_positives: Int64Array,
) -> int:
    """Write the union of sorted cells of one level, with the counts of equal cells added.

    Return the number of cells. O(n).
    """
    n = here = there = 0
    while here < len(cells) or there < len(other_cells):
        from_here = there == len(other_cells) or (here < len(cells) and cells[here] <= other_cells[there])
        from_there = here == len(cells) or (there < len(other_cells) and other_cells[there] <= cells[here])
        out_negatives[n] = 0
        out_positives[n] = 0
        if from_here:
            out_cells[n] = cells[here]
            out_negatives[n] += negatives[here]
            out_positives[n] += positives[here]
            here += 1
        if from_there:
            out_cells[n] = other_cells[there]
            out_negatives[n] += other_negatives[there]
            out_positives[n] += other_positives[there]
            there += 1
        n += 1
    return n


# The wire form of a cell is three numbers (distance from the cell before, negatives, positives), in 7 bits a
# byte, lowest first; the top bit says that more bytes follow. Adding events never makes the form shorter: a
# new cell splits a distance into two that together take at least as many bytes. AucSketch depends on this.


@inlined
def size_of(number: Any) -> int:
    """Return the number of bytes of a number's wire form."""
    size = 1
    while number >= 128:
        number >>= np.uint64(7)
        size += 1
    return size


@entry
def wire_size(distances: UInt64Array, negatives: UInt64Array, positives: UInt64Array) -> int:
    """Return the number of bytes of the cells' wire form."""
    size = 0
    for place in range(len(distances)):
        size += size_of(distances[place]) + size_of(negatives[place]) + size_of(positives[place])
    return size


@inlined
def write_number(number: Any, out: ByteArray, at: int) -> int:
    """Write a number; return the place behind its bytes."""
    while number >= 128:
        out[at] = (number & np.uint64(127)) | np.uint64(128)
        number >>= np.uint64(7)
        at += 1
    out[at] = number
    return at + 1


@entry
def write_cells(
    distances: UInt64Array, negatives: UInt64Array, positives: UInt64Array, out: ByteArray
) -> None:
    """Write cells to a buffer of `wire_size`."""
    at = 0
    for place in range(len(distances)):
        at = write_number(distances[place], out, at)
        at = write_number(negatives[place], out, at)
        at = write_number(positives[place], out, at)


@entry
def read_cells(data: ByteArray, numbers: UInt64Array) -> bool:
    """Read cells into `numbers`, three numbers for each cell.

    Return False unless the data have exactly these cells, in shortest form.
    """
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
