"""The pairs of events that classes rank right, kept current after every event: whole numbers.

The order of class c has all events of the window by their score of class c, in buckets of at most `WIDTH`
events. Within one score events are in the order of their classes. Each order keeps, for each class, the
number of its events in each bucket.

An event of class y that enters or leaves changes
    pairs[y, j] for every class j: by the events of class j below it in the order of class y, and
    pairs[c, y] for every other class c: by the events of class c above it in the order of class c,
where pairs count double, and a tie counts one half. Then it enters or leaves all C orders.

Cost of an event: O(C) places, each O(log k + k / WIDTH + WIDTH), and as many sums again in the order of its
own class. With 10 classes and k = 10,000 an event that enters while another one leaves takes 6 us, a row
included, and 10 us where scores are tied. A tree in the place of the buckets would be O(log k) a place; here
k / WIDTH and WIDTH are sums and moves of neighbours in memory, of which a processor does 8 or more at once.
A width of 256 took 7 us. Helpers that are functions of their own took 10 us, since each call passes all
arrays.

Invariants (`check` in tests/core/classes/test_orders.py): the events of the buckets of an order, one after
another, are sorted by score and class. No bucket is full, and none is empty unless it is the only one.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from ..arrays import FloatArray, Int8Array, Int64Array
from ..kernels.compile import Integer, entry, inlined, kernel
from ..kernels.records import whole
from ..measures.steps import ENTERS, ROW_DUE
from .values import write_means_now

WIDTH: Final = 128
"""Most events of a bucket."""


class Orders(NamedTuple):
    """The orders of C classes, each with room for B buckets.

    A bucket has a number, by which its events are found, and a position in its order.

    keys     float64[C, B, WIDTH], the scores in each bucket, ascending
    codes    int16[C, B, WIDTH], the classes of these events
    sizes    int64[C, B], the events of each bucket
    at       int64[C, B], the bucket at each position; free buckets follow
    firsts   float64[C, B], the least score of the bucket at each position
    used     int64[C], the positions in use
    within   int32[C, C, B], for each order and class, the events of the class at each position
    counts   int64[C], the events of each class
    pairs    int64[C, C], see the module
    """

    keys: FloatArray
    codes: Any
    sizes: Int64Array
    at: Int64Array
    firsts: FloatArray
    used: Int64Array
    within: Any
    counts: Int64Array
    pairs: Int64Array


def buckets_for(events: int) -> int:
    """Return how many buckets an order of at most so many events needs."""
    return 3 * events // WIDTH + 4


def no_orders(classes: int, events: int) -> Orders:
    """Return orders without events, with room for `events`."""
    buckets = buckets_for(events)
    return Orders(
        np.empty((classes, buckets, WIDTH)),
        np.empty((classes, buckets, WIDTH), np.int16),
        np.zeros((classes, buckets), np.int64),
        np.tile(np.arange(buckets), (classes, 1)),
        np.zeros((classes, buckets)),
        np.ones(classes, np.int64),
        np.zeros((classes, classes, buckets), np.int32),
        np.zeros(classes, np.int64),
        np.zeros((classes, classes), np.int64),
    )


@inlined
def _position(o: Orders, c: Integer, score: float, beyond: Integer) -> int:
    """Return the last position whose first score is below a score (`beyond` 1: or equal to it), else 0."""
    firsts = o.firsts[c]
    low, left = 0, o.used[c]
    while left > 1:  # without a branch on the outcome: half of all guesses of a processor would be wrong
        half = left >> 1
        first = firsts[low + half]
        is_before = (first < score) | ((beyond == 1) & (first == score))
        low += half * is_before
        left -= half
    return low


@inlined
def _place(o: Orders, c: Integer, position: Integer, score: float, code: Integer) -> int:
    """Return how many events of a bucket come before an event of a score and a class."""
    bucket = o.at[c, position]
    keys = o.keys[c, bucket]
    left = o.sizes[c, bucket]
    low, size = 0, left
    while left > 1:
        half = left >> 1
        low += half * (keys[low + half - 1] < score)
        left -= half
    low += left == 1 and keys[low] < score
    if code >= 0:
        codes = o.codes[c, bucket]
        while low < size and keys[low] == score and codes[low] < code:
            low += 1
    return whole(low)


@inlined
def _before(o: Orders, c: Integer, position: Integer, place: Integer, code: Integer) -> int:
    """Return how many events of a class come before a place in an order."""
    within, codes = o.within[c, code], o.codes[c, o.at[c, position]]
    total = np.int32(0)
    for earlier in range(position):
        total += within[earlier]
    in_bucket = np.int16(0)
    wanted = np.int16(code)
    for earlier in range(place):
        in_bucket += np.int16(codes[earlier] == wanted)
    return whole(total) + whole(in_bucket)


@inlined
def _is_tied(o: Orders, c: Integer, position: Integer, place: Integer, score: float) -> bool:
    """Whether the event at a place, behind all lower scores, has the score."""
    bucket = o.at[c, position]
    if place < o.sizes[c, bucket]:
        return bool(o.keys[c, bucket, place] == score)
    return bool(position + 1 < o.used[c] and o.firsts[c, position + 1] == score)


@kernel
def _split(o: Orders, c: Integer, position: Integer) -> None:
    """Move the upper half of a full bucket to a bucket of its own behind it."""
    bucket, used = o.at[c, position], o.used[c]
    new = o.at[c, used]
    for later in range(used, position + 1, -1):
        o.at[c, later] = o.at[c, later - 1]
        o.firsts[c, later] = o.firsts[c, later - 1]
    o.at[c, position + 1] = new
    half = WIDTH // 2
    for code in range(len(o.counts)):
        for later in range(used, position + 1, -1):
            o.within[c, code, later] = o.within[c, code, later - 1]
        o.within[c, code, position + 1] = 0
    for place in range(half, WIDTH):
        o.keys[c, new, place - half] = o.keys[c, bucket, place]
        code = o.codes[c, bucket, place]
        o.codes[c, new, place - half] = code
        o.within[c, code, position] -= 1
        o.within[c, code, position + 1] += 1
    o.sizes[c, bucket], o.sizes[c, new] = half, WIDTH - half
    o.firsts[c, position + 1] = o.keys[c, new, 0]
    o.used[c] += 1


@kernel
def _join(o: Orders, c: Integer, position: Integer) -> None:
    """Move the events of the bucket behind a position into the bucket at it, and free that bucket."""
    bucket, gone, used = o.at[c, position], o.at[c, position + 1], o.used[c]
    size = o.sizes[c, bucket]
    for place in range(o.sizes[c, gone]):
        o.keys[c, bucket, size + place] = o.keys[c, gone, place]
        o.codes[c, bucket, size + place] = o.codes[c, gone, place]
    o.sizes[c, bucket] += o.sizes[c, gone]
    o.sizes[c, gone] = 0
    if o.sizes[c, bucket] > 0:
        o.firsts[c, position] = o.keys[c, bucket, 0]
    for code in range(len(o.counts)):
        o.within[c, code, position] += o.within[c, code, position + 1]
        for later in range(position + 1, used - 1):
            o.within[c, code, later] = o.within[c, code, later + 1]
        o.within[c, code, used - 1] = 0
    for later in range(position + 1, used - 1):
        o.at[c, later] = o.at[c, later + 1]
        o.firsts[c, later] = o.firsts[c, later + 1]
    o.at[c, used - 1] = gone
    o.used[c] -= 1


@inlined
def _insert(o: Orders, c: Integer, position: Integer, place: Integer, score: float, code: Integer) -> None:
    """Insert an event at a place of an order."""
    bucket = o.at[c, position]
    keys, codes = o.keys[c, bucket], o.codes[c, bucket]
    for later in range(o.sizes[c, bucket], place, -1):
        keys[later] = keys[later - 1]
    for later in range(o.sizes[c, bucket], place, -1):
        codes[later] = codes[later - 1]
    keys[place], codes[place] = score, code
    o.sizes[c, bucket] += 1
    o.within[c, code, position] += 1
    if place == 0:
        o.firsts[c, position] = score
    if o.sizes[c, bucket] == WIDTH:
        _split(o, c, position)


@inlined
def _remove(o: Orders, c: Integer, position: Integer, place: Integer, code: Integer) -> None:
    """Remove the event at a place of an order."""
    bucket = o.at[c, position]
    keys, codes = o.keys[c, bucket], o.codes[c, bucket]
    size = o.sizes[c, bucket] - 1
    for later in range(place, size):
        keys[later] = keys[later + 1]
    for later in range(place, size):
        codes[later] = codes[later + 1]
    o.sizes[c, bucket] = size
    o.within[c, code, position] -= 1
    if place == 0 and size > 0:
        o.firsts[c, position] = keys[0]
    if size > WIDTH // 4:
        return
    most = 3 * WIDTH // 4 if size > 0 else WIDTH  # an empty bucket goes whatever its neighbour has
    if position + 1 < o.used[c] and size + o.sizes[c, o.at[c, position + 1]] <= most:
        _join(o, c, position)
    elif position > 0 and size + o.sizes[c, o.at[c, position - 1]] <= most:
        _join(o, c, position - 1)


@inlined
def _change(o: Orders, c: Integer, code: Integer, score: float, sign: Integer) -> None:
    """Add an event to an order and its pairs (sign 1), or take it away (-1)."""
    classes = len(o.counts)
    position = _position(o, c, score, 0)
    place = _place(o, c, position, score, -1)
    is_tied = _is_tied(o, c, position, place, score)
    last = beyond = 0
    if is_tied:
        last = _position(o, c, score, 1)
        beyond = _place(o, c, last, score, classes)
    if c == code:
        for other in range(classes):
            if other == c:
                continue
            below = _before(o, c, position, place, other)
            doubled = 2 * below
            if is_tied:
                doubled += _before(o, c, last, beyond, other) - below
            o.pairs[c, other] += sign * doubled
        o.counts[c] += sign
    else:
        below = _before(o, c, position, place, c)
        doubled = 2 * (o.counts[c] - below)
        if is_tied:
            doubled -= _before(o, c, last, beyond, c) - below
        o.pairs[c, code] += sign * doubled
    if is_tied:
        while True:
            place = _place(o, c, position, score, code)
            if position == last or place < o.sizes[c, o.at[c, position]]:
                break
            position += 1
    if sign > 0:
        _insert(o, c, position, place, score, code)
    else:
        _remove(o, c, position, place, code)


@entry
def follow_orders(
    o: Orders,
    codes: Int64Array,
    scores: FloatArray,
    oldest: int,
    coming: int,
    flags: Int8Array,
    leaving: Int64Array,
    aucs: FloatArray,
    pair_aucs: FloatArray,
    shares: FloatArray,
    found: FloatArray,
) -> None:
    """Apply steps to orders with room for all events; write the values of each row that falls due.

    codes, scores   the events held, the oldest first, and then those that enter
    oldest, coming  places of the oldest event held, and of the first event that enters
    flags, leaving  of each step: see `Steps`
    aucs, pair_aucs, shares  scratch space: C, C times C and C numbers
    found           filled, a line for each row: see `write_means_now`
    """
    row = start = 0
    while start < len(flags):
        end = start + 1
        while end < len(flags) and not flags[end - 1] & ROW_DUE:
            end += 1
        for c in range(len(o.counts)):  # order by order, so that an order stays in the processor's cache
            leaves, enters = oldest, coming
            for step in range(start, end):
                for _ in range(leaving[step]):
                    _change(o, c, codes[leaves], scores[leaves, c], -1)
                    leaves += 1
                if flags[step] & ENTERS:
                    _change(o, c, codes[enters], scores[enters, c], 1)
                    enters += 1
        for step in range(start, end):
            oldest += leaving[step]
            coming += (flags[step] & ENTERS) != 0
        if flags[end - 1] & ROW_DUE:
            write_means_now(o.counts, o.pairs, aucs, pair_aucs, shares, found, row)
            row += 1
        start = end
