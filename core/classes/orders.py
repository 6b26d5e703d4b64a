"""The pairs of events that classes rank right, kept current after every event: whole numbers.

The order of class c has all events of the window by their score of class c, in buckets of fewer than `WIDTH`
events. Buckets are in the order of scores. Within a bucket events have no order. Each order keeps, for each
class, the number of its events in each bucket.

An event of class y that enters or leaves changes
    pairs[y, j] for every other class j: by the events of class j below it in the order of class y, and
    pairs[c, y] for every other class c: by the events of class c above it in the order of class c,
where pairs count double, and a tie counts one half. Then it enters or leaves all C orders.

Cost of an event: O(C (log k + k / WIDTH + WIDTH)). With 10 classes and k = 10,000, an event that enters while
another one leaves takes 2.2 us with a row of its own, and 1.7 us with a row per 100. Nearly all of that is
loops of fixed length without branches, of which a processor does 8 or more steps at once. Tried, and not
faster:
    buckets that are sorted                   6.0 us: searches by halves, and moves of half a bucket
    a search by halves among all positions    0.5 us more
    sums over buckets of their exact number   0.3 us more: a loop's last steps are done one by one
    a WIDTH of 64; of 128                     with k = 100,000 4.9 us, 96 takes 3.9 us; 0.1 us more
    one loop that counts and finds an event that leaves; arrays that begin at cache lines

Invariants (`check` in tests/core/classes/test_orders.py): no score of a bucket is below `firsts` at its
position, or above `firsts` at the next. No bucket is full, and none is empty unless it is the only one.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from ..arrays import FloatArray, Int8Array, Int64Array
from ..kernels.compile import Integer, entry, inlined, kernel
from ..kernels.records import whole
from ..measures.steps import ENTERS, ROW_DUE
from .values import write_means_now

WIDTH: Final = 96
"""The most events of a bucket."""

SPAN: Final = 64
"""How many lower bounds are compared in one loop of fixed length."""

SUMMED: Final = 128
"""How many buckets have their events added up in one loop of fixed length."""


class Orders(NamedTuple):
    """The orders of C classes, each with room for B buckets.

    A bucket has a number, by which its events are found, and a position in its order.

    keys     float64[C, B, WIDTH], the scores in each bucket; behind them infinity
    codes    int8[C, B, WIDTH], the classes of these events
    sizes    int64[C, B], the events of each bucket
    at       the numbers of the buckets by position; free buckets follow them
    firsts   float64[C, B + SPAN], the least score that the bucket at each position may have, and the greatest
             that the bucket before may have; -infinity at position 0, infinity behind the positions in use
    used     int64[C], the positions in use
    within   int16[C, C, B + SUMMED], for each order and class, the events of the class at each position
    counts   int64[C], the events of each class
    pairs    int64[C, C], see the module
    """

    keys: FloatArray
    codes: Int8Array
    sizes: Int64Array
    at: Int64Array
    firsts: FloatArray
    used: Int64Array
    within: Any
    counts: Int64Array
    pairs: Int64Array


def buckets_for(events: int) -> int:
    """Return how many buckets an order of up to `events` events needs."""
    return 3 * events // WIDTH + 4


def no_orders(classes: int, events: int) -> Orders:
    """Return orders without events, with room for `events`."""
    buckets = buckets_for(events)
    firsts = np.full((classes, buckets + SPAN), np.inf)
    firsts[:, 0] = -np.inf
    return Orders(
        np.full((classes, buckets, WIDTH), np.inf),
        np.zeros((classes, buckets, WIDTH), np.int8),
        np.zeros((classes, buckets), np.int64),
        np.tile(np.arange(buckets), (classes, 1)),
        firsts,
        np.ones(classes, np.int64),
        np.zeros((classes, classes, buckets + SUMMED), np.int16),
        np.zeros(classes, np.int64),
        np.zeros((classes, classes), np.int64),
    )


@inlined
def _position(o: Orders, c: Integer, score: float) -> int:
    """Return the last position whose lower bound is below a score."""
    firsts = o.firsts[c]
    low, left = 0, o.used[c]
    # without a branch on the outcome, because a processor would guess half of these branches wrong
    while left > SPAN:
        half = left >> 1
        low += half * (firsts[low + half] < score)
        left -= half
    below = 0
    for place in range(low, low + SPAN):
        below += firsts[place] < score
    return whole(low + below - 1)


@inlined
def _sum(within: Any, start: Integer, end: Integer) -> int:
    """Return how many events of a class lie at the positions from `start` to before `end`."""
    total = 0
    while end - start >= SUMMED:
        part = np.int16(0)
        for later in range(SUMMED):
            part += within[start + later]
        total += whole(part)
        start += SUMMED
    part, left = np.int16(0), np.int16(end - start)
    for later in range(SUMMED):
        part += within[start + later] * np.int16(np.int16(later) < left)
    return total + whole(part)


@inlined
def _doubled_before(within: Any, position: Integer, last: Integer) -> int:
    """Return 2 for each event of a class before a position, and 1 for each event from there to `last`."""
    doubled = 2 * _sum(within, 0, position)
    if last > position + 1:
        doubled += _sum(within, position + 1, last)
    return doubled


@inlined
def _doubled(o: Orders, c: Integer, bucket: Integer, score: float, code: Integer) -> int:
    """Return 2 for each event of a class in a bucket that is below a score, and 1 for each tie with it."""
    keys, codes = o.keys[c, bucket], o.codes[c, bucket]
    wanted, doubled = np.int8(code), 0
    for place in range(WIDTH):
        is_wanted = codes[place] == wanted
        doubled += 2 * (is_wanted & (keys[place] < score)) + (is_wanted & (keys[place] == score))
    return doubled


@inlined
def _add_pairs(o: Orders, c: Integer, bucket: Integer, score: float, sign: Integer) -> None:
    """Add the events of all classes in a bucket, as `_doubled` counts them, to the pairs of class c."""
    keys, codes, pairs = o.keys[c, bucket], o.codes[c, bucket], o.pairs[c]
    for place in range(o.sizes[c, bucket]):
        pairs[codes[place]] += sign * (2 * (keys[place] < score) + (keys[place] == score))


@kernel
def _split(o: Orders, c: Integer, position: Integer) -> None:
    """Move the upper half of a full bucket to a new bucket behind it."""
    bucket, used = o.at[c, position], o.used[c]
    new, keys, half = o.at[c, used], o.keys[c, bucket], WIDTH // 2
    middle, ties = 0.0, 0
    for place in range(WIDTH):
        below = upto = 0
        for other in range(WIDTH):
            below += keys[other] < keys[place]
            upto += keys[other] <= keys[place]
        if below <= half < upto:
            middle, ties = keys[place], half - below
            break
    for later in range(used, position + 1, -1):
        o.at[c, later] = o.at[c, later - 1]
        o.firsts[c, later] = o.firsts[c, later - 1]
    o.at[c, position + 1], o.firsts[c, position + 1] = new, middle
    for code in range(len(o.counts)):
        for later in range(used, position + 1, -1):
            o.within[c, code, later] = o.within[c, code, later - 1]
        o.within[c, code, position + 1] = 0
    o.used[c] += 1
    o.sizes[c, bucket] = 0
    for place in range(WIDTH):
        score, code = keys[place], o.codes[c, bucket, place]
        keys[place] = np.inf
        o.within[c, code, position] -= 1
        stays = score < middle
        if score == middle and ties > 0:
            stays = True
            ties -= 1
        _append(o, c, position if stays else position + 1, score, code)


@inlined
def _append(o: Orders, c: Integer, position: Integer, score: float, code: Integer) -> None:
    """Add an event to a bucket that has room."""
    bucket = o.at[c, position]
    size = o.sizes[c, bucket]
    o.keys[c, bucket, size], o.codes[c, bucket, size] = score, code
    o.sizes[c, bucket] = size + 1
    o.within[c, code, position] += 1


@kernel
def _join(o: Orders, c: Integer, position: Integer) -> None:
    """Move the events of the bucket behind a position into the bucket at it, and free the emptied bucket."""
    gone, used = o.at[c, position + 1], o.used[c]
    for place in range(o.sizes[c, gone]):
        _append(o, c, position, o.keys[c, gone, place], o.codes[c, gone, place])
        o.keys[c, gone, place] = np.inf
    o.sizes[c, gone] = 0
    for code in range(len(o.counts)):
        for later in range(position + 1, used - 1):
            o.within[c, code, later] = o.within[c, code, later + 1]
        o.within[c, code, used - 1] = 0
    for later in range(position + 1, used - 1):
        o.at[c, later] = o.at[c, later + 1]
        o.firsts[c, later] = o.firsts[c, later + 1]
    o.at[c, used - 1], o.firsts[c, used - 1] = gone, np.inf
    o.used[c] -= 1


@inlined
def _remove(o: Orders, c: Integer, position: Integer, last: Integer, score: float, code: Integer) -> None:
    """Remove an event of a score and a class, which is at one of the positions up to `last`."""
    place, wanted = -1, np.int8(code)
    while True:
        bucket = o.at[c, position]
        keys, codes = o.keys[c, bucket], o.codes[c, bucket]
        for each in range(WIDTH):
            place = max(place, each if (keys[each] == score) & (codes[each] == wanted) else -1)
        if place >= 0 or position == last:
            break
        position += 1
    size = o.sizes[c, bucket] - 1
    keys[place], codes[place] = keys[size], codes[size]
    keys[size] = np.inf
    o.sizes[c, bucket] = size
    o.within[c, code, position] -= 1
    if size > WIDTH // 4:
        return
    most = 3 * WIDTH // 4 if size > 0 else WIDTH  # an empty bucket is joined, whatever its neighbour has
    if position + 1 < o.used[c] and size + o.sizes[c, o.at[c, position + 1]] <= most:
        _join(o, c, position)
    elif position > 0 and size + o.sizes[c, o.at[c, position - 1]] <= most:
        _join(o, c, position - 1)


@inlined
def _change(o: Orders, c: Integer, code: Integer, score: float, sign: Integer) -> None:
    """Add an event to an order and its pairs (sign = 1), or remove it from both (-1)."""
    position = _position(o, c, score)
    last = position
    while o.firsts[c, last + 1] == score:  # several buckets may hold ties of this score
        last += 1
    if c == code:
        for other in range(len(o.counts)):
            o.pairs[c, other] += sign * _doubled_before(o.within[c, other], position, last)
        _add_pairs(o, c, o.at[c, position], score, sign)
        if last > position:
            _add_pairs(o, c, o.at[c, last], score, sign)
        o.pairs[c, c] = 0
        o.counts[c] += sign
    else:
        doubled = _doubled_before(o.within[c, c], position, last)
        doubled += _doubled(o, c, o.at[c, position], score, c)
        if last > position:
            doubled += _doubled(o, c, o.at[c, last], score, c)
        o.pairs[c, code] += sign * (2 * o.counts[c] - doubled)
    if sign < 0:
        _remove(o, c, position, last, score, code)
        return
    _append(o, c, last, score, code)
    if o.sizes[c, o.at[c, last]] == WIDTH:
        _split(o, c, last)


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
    flags, leaving  the columns of the steps: see `Steps`
    aucs, pair_aucs, shares  scratch space: C, C times C and C numbers
    found           filled, a line for each row: see `write_means_now`
    """
    row = start = 0
    while start < len(flags):
        end = start + 1
        while end < len(flags) and not flags[end - 1] & ROW_DUE:
            end += 1
        gone = entered = 0
        for step in range(start, end):
            gone += leaving[step]
            entered += (flags[step] & ENTERS) != 0
        # one order after another, so that an order stays in the processor's cache
        for c in range(len(o.counts)):
            for event in range(coming, coming + entered):
                _change(o, c, codes[event], scores[event, c], 1)
            for event in range(oldest, oldest + gone):
                _change(o, c, codes[event], scores[event, c], -1)
        oldest += gone
        coming += entered
        if flags[end - 1] & ROW_DUE:
            write_means_now(o.counts, o.pairs, aucs, pair_aucs, shares, found, row)
            row += 1
        start = end
