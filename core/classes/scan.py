"""Kernels that scan the events of a window in the order of one score, for AUCs between classes.

The order of class c is by the score of class c. A pair of an event of class c and an event of another class
is missed if the event of class c has the lower score of class c; a tie counts as half missed. Masses are
counts, or sums of weights. Missed masses are summed from 0 on, so they are exactly 0 where no pair is missed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import FloatArray, Int64Array
from ..kernels.compile import Integer, entry, kernel, scanning


@entry
def scan_order(
    order: Int64Array,
    column: FloatArray,
    codes: Int64Array,
    weights: Any,
    own: Integer,
    own_share: float,
    rest_shares: FloatArray,
    pair_shares: FloatArray,
    missed: FloatArray,
    missed_in_pairs: FloatArray,
    pairs: Any,
    above: Any,
    tied: Any,
) -> None:
    """Scan the order of one class: O(k + n C), n the events of the class, C classes.

    order            events by rising score
    column           the score of class `own` of each event
    codes            the class of each event
    weights          the weight of each event: int64 or float64, as `pairs`, `above` and `tied`
    own_share        1 / (2 mass of class `own`)
    rest_shares      of each class: what half a missed event of mass 1 adds to `missed`; 0 for class `own`
    pair_shares      the same, for `missed_in_pairs`: 1 / (2 mass of the class)
    missed           filled: of an event of class `own`, the share of all other events that it misses; of
                     another event, the share of class `own` by which it is missed
    missed_in_pairs  added to: of an event of class `own`, the sum over other classes of the share of the
                     class that it misses; of another event, as in `missed`
    pairs            filled: twice the mass of pairs of class `own` and each other class that are not missed
    above, tied      scratch space, one for each class
    """
    above[:] = 0
    tied[:] = 0
    pairs[:] = 0
    end = len(order)
    while end > 0:
        first = _start_of_ties(order, column, end)
        has_own = False
        for place in range(first, end):
            event = order[place]
            tied[codes[event]] += weights[event]
            has_own |= codes[event] == own
        of_rest = of_pairs = 0.0
        if has_own:
            for code in range(len(tied)):
                if code != own:
                    doubled = 2 * above[code] + tied[code]
                    of_rest += doubled * rest_shares[code]
                    of_pairs += doubled * pair_shares[code]
        own_doubled = 2 * above[own] + tied[own]
        for place in range(first, end):
            event = order[place]
            code = codes[event]
            if code == own:
                missed[event] = of_rest
                missed_in_pairs[event] += of_pairs
            else:
                pairs[code] += weights[event] * own_doubled
        for place in range(first, end):
            event = order[place]
            above[codes[event]] += weights[event]
            tied[codes[event]] = 0
        end = first
    below, first = above[own] - above[own], 0
    while first < len(order):
        end, of_ties = first, below - below
        score = column[order[first]]
        while end < len(order) and column[order[end]] == score:
            if codes[order[end]] == own:
                of_ties += weights[order[end]]
            end += 1
        share = (2 * below + of_ties) * own_share
        for place in range(first, end):
            event = order[place]
            if codes[event] != own:
                missed[event] = share
                missed_in_pairs[event] += share
        below += of_ties
        first = end


@kernel
def _start_of_ties(order: Int64Array, column: FloatArray, end: int) -> int:
    """Return the first place of the events whose score is that of place `end` - 1."""
    first = end - 1
    score = column[order[first]]
    while first > 0 and column[order[first - 1]] == score:
        first -= 1
    return first


@scanning
def add_changes(
    codes: Int64Array,
    own: Integer,
    missed: FloatArray,
    weights: FloatArray,
    factors: FloatArray,
    scales: FloatArray,
    shares: FloatArray,
    changes: FloatArray,
) -> None:
    """Add what each event changes in shares[i] times the AUC of class `own` to changes[i], for each i.

    missed   see `scan_order`
    weights  the weight of each event, in units of its class
    factors  the unit of each class's weights
    scales   for class `own` and for all others together: 1 / sqrt(mass (size - 1)), with the mass in those
             units
    """
    sums, masses, firsts = np.zeros(2), np.zeros(2), np.full(2, np.nan)
    for event in range(len(codes)):
        side = 0 if codes[event] == own else 1
        weight = weights[event] * factors[codes[event]]
        if np.isnan(firsts[side]):
            firsts[side] = missed[event]
        sums[side] += weight * (missed[event] - firsts[side])
        masses[side] += weight
    for side in range(2):
        firsts[side] += sums[side] / masses[side]
    for event in range(len(codes)):
        side = 0 if codes[event] == own else 1
        weight = weights[event] * factors[codes[event]]
        change = (firsts[side] - missed[event]) * np.sqrt(weight) * scales[side]
        for kind in range(len(shares)):
            changes[kind, event] += shares[kind] * change


@scanning
def spreads_of_classes(
    codes: Int64Array, weights: FloatArray, values: FloatArray, spreads: FloatArray
) -> None:
    """Write the weighted mean of (value - mean)^2 of each class; 0 exactly where all values are equal."""
    classes = len(spreads)
    sums, masses, firsts = np.zeros(classes), np.zeros(classes), np.full(classes, np.nan)
    for event in range(len(codes)):
        code = codes[event]
        if np.isnan(firsts[code]):
            firsts[code] = values[event]
        sums[code] += weights[event] * (values[event] - firsts[code])
        masses[code] += weights[event]
    spreads[:] = 0.0
    for event in range(len(codes)):
        code = codes[event]
        difference = values[event] - (firsts[code] + sums[code] / masses[code])
        spreads[code] += weights[event] * difference * difference
    for code in range(classes):
        spreads[code] /= masses[code]
