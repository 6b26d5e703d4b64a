"""The kernel that scans a window of events that count 1 each, for the AUCs of its classes.

All masses are counts, so that a class needs no order of all events. It needs the sorted scores of the class's
own events, and for every other event its place among these scores. The sums have the same bits as those of
`scan_order` and `add_changes` (scan.py) with weights of 1.

The places among n scores
    The sorted scores are cut into `PARTS` of equal size. A part is divided into `SLOTS` of equal width, and a
    table has the first score of each slot. Searches by halves end within a slot. All steps are loops over
    `SPAN` events without branches, of which a processor does several at once. With 10,000 events this takes
    0.06 ms a class. Scores that crowd towards 0, such as u^8 of uniform u, take 0.1 ms. Searches one event
    after another take 0.3 ms, because half of the guesses of a processor are wrong. Up to `FEW` scores are
    compared one by one.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ..arrays import FloatArray, Int32Array, Int64Array
from ..kernels.compile import Integer, entry, inlined, kernel
from ..kernels.records import whole

FEW: Final = 96
"""The most scores of a class that are compared one after another, without a table of places."""

PARTS: Final = 16
"""The number of parts of a table of places."""

SLOTS: Final = 256
"""The number of slots of a part."""

SPAN: Final = 512
"""How many events have their parts found in one loop."""


@entry
def scan_counted(
    scores: FloatArray,
    columns: Int64Array,
    codes: Int64Array,
    order: Int64Array,
    counts: Int64Array,
    shares: FloatArray,
    scales: FloatArray,
    pairs: Int64Array,
    missed_in_pairs: FloatArray,
    changes: FloatArray,
    floats: tuple[FloatArray, ...],
    integers: tuple[Int32Array, ...],
) -> None:
    """Scan k events of C classes for the AUCs of the first classes: O(k + n C) a class of n events.

    scores   float64[k, at least C], finite
    columns  the column of `scores` of each class that is scanned
    codes    the class of each event
    order    the events of the scanned classes: class after class, the events of a class by rising score of
             the class
    counts   the events of each of the C classes, each more than 0
    shares   float64[2, scanned], the share of each class in two means of AUCs
    scales   float64[2, scanned], see `add_changes`, of each class and of its rest; float64[2, 0]: nothing is
             added to `changes`
    pairs    int64[scanned, C], filled: see `scan_order`
    missed_in_pairs, changes
             added to: see `scan_order` and `add_changes`
    floats, integers
             see `scratch`
    """
    column, missed, known, of_rest, of_pairs, leasts, scales_of_parts = floats
    places, ranked, by_class, before, bins, slots, starts, ends, lows, lefts = integers
    events, classes = len(codes), len(counts)
    starts[0] = ends[0] = 0
    for code in range(classes):
        starts[code + 1] = ends[code + 1] = starts[code] + counts[code]
    for event in order:
        ranked[ends[codes[event]]] = event
        ends[codes[event]] += 1
    for code in range(classes):
        ends[code] = starts[code]
    for event in range(events):
        by_class[ends[codes[event]]] = event
        ends[codes[event]] += 1
    for place in range(len(bins)):
        bins[place] = 0
    for own in range(len(columns)):
        first, end, others = starts[own], starts[own + 1], events - counts[own]
        _copy_column(scores, columns[own], column)
        different = 0
        for place in range(first, end):
            score = column[ranked[place]]
            if different == 0 or known[different - 1] != score:
                known[different], before[different] = score, place - first
                different += 1
        known[different], before[different] = np.inf, end - first
        _find_places(column, known, different, leasts, scales_of_parts, slots, lows, lefts, places)
        mean_of_rest = _miss_rest(places, before, codes, own, 0.5 / counts[own], missed, missed_in_pairs)
        for at in range(different):
            of_rest[at] = of_pairs[at] = 0.0
        for code in range(classes):
            pairs[own, code] = 0
            if code != own:
                for place in range(starts[code], starts[code + 1]):
                    bins[places[by_class[place]]] += 1
                missed_pairs = _miss_own(
                    bins, before, different, 0.5 / others, 0.5 / counts[code], of_rest, of_pairs
                )
                pairs[own, code] = 2 * counts[own] * counts[code] - missed_pairs
        moved, reference = 0.0, of_rest[places[by_class[first]] >> 1]
        for place in range(first, end):
            event = by_class[place]
            at = places[event] >> 1
            moved += of_rest[at] - reference
            missed_in_pairs[event] += of_pairs[at]
        if scales.shape[1] == 0:
            continue
        mean = reference + moved / counts[own]
        for place in range(first, end):
            event = by_class[place]
            missed[event] = mean_of_rest  # so that the loop below adds nothing for this event
            change = (mean - of_rest[places[event] >> 1]) * scales[0, own]
            changes[0, event] += shares[0, own] * change
            changes[1, event] += shares[1, own] * change
        _add_changes(missed, mean_of_rest, scales[1, own], shares[0, own], shares[1, own], changes)


@kernel
def _copy_column(scores: FloatArray, number: Integer, column: FloatArray) -> None:
    for event in range(len(column)):
        column[event] = scores[event, number]


@kernel
def _miss_rest(
    places: Int32Array,
    before: Int32Array,
    codes: Int64Array,
    own: Integer,
    own_share: float,
    missed: FloatArray,
    missed_in_pairs: FloatArray,
) -> float:
    """Write the share of class `own` by which each other event is missed; return the mean of these shares."""
    first = others = 0
    while codes[first] == own:
        first += 1
    moved, at = 0.0, places[first] >> 1
    reference = (before[at] + before[at + (places[first] & 1)]) * own_share
    for event in range(len(codes)):
        at = places[event] >> 1
        share = (before[at] + before[at + (places[event] & 1)]) * own_share
        is_other = codes[event] != own  # a factor, because a processor guesses this branch wrong too often
        missed[event] = share
        missed_in_pairs[event] += share * is_other
        moved += (share - reference) * is_other
        others += is_other
    return float(reference + moved / others)


@kernel
def _miss_own(
    bins: Int32Array,
    before: Int32Array,
    different: Integer,
    in_rest: float,
    in_pairs: float,
    of_rest: FloatArray,
    of_pairs: FloatArray,
) -> int:
    """Add the shares that each score of a class misses of another class's events; return the missed pairs.

    bins    how many of these events are at each place, see `_find_places`; emptied
    before  how many events of the class have lower scores; behind the last score all of them
    """
    above = missed_pairs = 0
    for at in range(different - 1, -1, -1):
        above += bins[2 * at + 2]
        doubled = 2 * above + bins[2 * at + 1]
        above += bins[2 * at + 1]
        bins[2 * at + 1] = bins[2 * at + 2] = 0
        of_rest[at] += doubled * in_rest
        of_pairs[at] += doubled * in_pairs
        missed_pairs += doubled * (before[at + 1] - before[at])
    bins[0] = 0
    return whole(missed_pairs)


@kernel
def _add_changes(
    missed: FloatArray, mean: float, scale: float, share: float, other_share: float, changes: FloatArray
) -> None:
    for event in range(len(missed)):
        change = (mean - missed[event]) * scale
        changes[0, event] += share * change
        changes[1, event] += other_share * change


@inlined
def _slot(score: float, least: float, scale: float) -> int:
    """Return the slot of a score; if the score rises, the slot never falls, whatever the rounding."""
    slot = (score - least) * scale
    return int(min(slot, SLOTS - 1.0)) if slot >= 1.0 else 0  # 0 for NaN: differences may overflow


@kernel
def _find_places(
    column: FloatArray,
    known: FloatArray,
    count: Integer,
    leasts: FloatArray,
    scales: FloatArray,
    slots: Int32Array,
    lows: Int32Array,
    lefts: Int32Array,
    places: Int32Array,
) -> None:
    """Write 2 p for each score, where p of the rising scores `known` are below it.

    Write 2 p + 1 if `known` has the score at place p.

    Behind `known` is infinity.
    """
    widest, compared, compares, start = 0, known, count, 0
    if count > FEW:
        compared, compares, start = leasts, PARTS, 1
        for slot in range(len(slots)):
            slots[slot] = 0
        at = 0
        for part in range(PARTS):
            least, end = known[part * (count - 1) // PARTS], (part + 1) * (count - 1) // PARTS
            leasts[part], scales[part] = least, SLOTS / (known[end] - least)
            while at <= end:
                slots[part * SLOTS + _slot(known[at], least, scales[part]) + 1] += 1
                at += 1
        for slot in range(1, PARTS * SLOTS + 1):
            widest = max(widest, slots[slot])
            slots[slot] += slots[slot - 1]
    for begin in range(0, len(column), SPAN):
        span = min(SPAN, len(column) - begin)
        some, found = column[begin : begin + span], places[begin : begin + span]
        for place in range(span):
            lows[place] = 0
        for at in range(start, compares):
            least = compared[at]
            for place in range(span):
                lows[place] += least < some[place]
        if count > FEW:
            for place in range(span):
                part = lows[place]
                slot = part * SLOTS + _slot(some[place], leasts[part], scales[part])
                lows[place], lefts[place] = slots[slot], slots[slot + 1] - slots[slot]
            left = widest
            while left > 0:
                for place in range(span):
                    half = (lefts[place] + 1) >> 1
                    lows[place] += half * (known[lows[place] + half - 1] < some[place])
                    lefts[place] -= half
                left >>= 1
        for place in range(span):
            found[place] = 2 * lows[place] + (known[lows[place]] == some[place])


def scratch(events: int, classes: int, most: int) -> tuple[tuple[FloatArray, ...], tuple[Int32Array, ...]]:
    """Return scratch space for `scan_counted`; `most` is the number of events of the largest class."""
    floats = events, events, most + 1, most, most, PARTS, PARTS
    integers = [events] * 3 + [most + 1, 2 * most + 1, PARTS * SLOTS + 1] + [classes + 1] * 2 + [SPAN] * 2
    return tuple(map(np.empty, floats)), tuple(np.empty(size, np.int32) for size in integers)
