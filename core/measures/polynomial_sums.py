"""Sums of Chebyshev polynomials over the scores of each class, exact, and pairs of such sums.

A term w T_r(u) is rounded once, to a multiple of 2^-42, and added as a whole number. So sums do not depend on
order, splits and groups, and removing an event restores the sum before. The weight goes into the recurrence,
W_0 = w, W_1 = w u, W_{r+1} = 2 u W_r - W_{r-1}, so that weights cost no time.

Scores are gathered by class in blocks of `BLOCK` and every degree is a pass over a block in the L1 cache: a
product, a difference, a store, and a sum of whole numbers, which the compiler may vectorise without leave to
reorder floating point (`fastmath`, which would drop the rounding, too).

Rejected, time by that of this form, degree 30, two classes: sums in floating point, an accumulator per degree
and lane, 1.7; one score after the other, 5.2; blocks of 64 scores 1.3, of 256 1.2. (numpy's sort: 1.6.)
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import FloatArray, Int8Array, Int64Array
from ..kernels.compile import inlined, scanning

FRACTION_BITS = 42
"""Sums count in units of 2^-42: of weights up to 2, 2^20 terms fit 64 bits."""

MOST_TERMS = 1 << 20
"""Greatest number of events that one call may sum."""

BLOCK = 512

_SHIFT = 1.5 * 2.0 ** (52 - FRACTION_BITS)
"""Added to a number of less than a third of it, it leaves no bits below the unit: the number is rounded to
the nearest multiple, ties to even, which stands in the last bits of the sum as a whole number."""

_HALF_RANGE = 2.0**1022
_BITS_OF_SHIFT = int(np.float64(_SHIFT).view(np.int64))


@inlined
def in_units(x: float) -> Any:
    """Return the multiple of the unit that is nearest to x, |x| < 512."""
    return np.float64(x + _SHIFT).view(np.int64) - _BITS_OF_SHIFT


@scanning
def add_block(twice: FloatArray, even: FloatArray, odd: FloatArray, sums: Int64Array) -> None:
    """Add a block to the sums of its class; the block is overwritten.

    twice      2 u of every score
    even, odd  w and w u; zeros where a block is not full, which add nothing
    """
    first = second = np.int64(0)
    for lane in range(BLOCK):
        first += in_units(even[lane])
        second += in_units(odd[lane])
    sums[0] += first
    sums[1] += second
    for degree in range(2, len(sums)):
        total = np.int64(0)
        for lane in range(BLOCK):
            term = twice[lane] * odd[lane] - even[lane]
            even[lane] = term
            total += in_units(term)
        sums[degree] += total
        even, odd = odd, even


@scanning
def add_chebyshev(
    labels: Int8Array,
    scores: FloatArray,
    weights: FloatArray,
    low: float,
    high: float,
    sums: Int64Array,
) -> None:
    """Add w T_r(u) of every event to the sums of its class, in units. O(d) an event, nothing kept per event.

    labels, scores  at most `MOST_TERMS`; 0 and 1; within [low, high], low < high
    weights         in [0, 2]; empty: 1 each
    sums            (2, d + 1), of degree 2 or more: of negatives and of positives

    u is the score scaled from [low, high] to [-1, 1]. Every operation rounds without changing the order: a
    higher score never has a lower u.
    """
    twice, even, odd = np.empty((2, BLOCK)), np.empty((2, BLOCK)), np.empty((2, BLOCK))
    held = np.zeros(2, np.int64)
    weighted = len(weights) > 0
    scale = 0.5 if max(-low, high) > _HALF_RANGE else 1.0  # differences of the largest floats are infinite
    low, high = low * scale, high * scale
    width = high - low
    for event in range(len(scores)):
        label = np.int64(labels[event])
        lane = held[label]
        score = scores[event] * scale
        u = ((score - low) - (high - score)) / width
        weight = weights[event] if weighted else 1.0
        twice[label, lane] = 2.0 * u
        even[label, lane] = weight
        odd[label, lane] = weight * u
        held[label] = lane + 1
        if lane + 1 == BLOCK:
            add_block(twice[label], even[label], odd[label], sums[label])
            held[label] = 0
    for which in range(2):
        end = held[which]
        if end > 0:
            twice[which, end:] = 0.0
            even[which, end:] = 0.0
            odd[which, end:] = 0.0
            add_block(twice[which], even[which], odd[which], sums[which])


@scanning
def mean_over_pairs(pairs: FloatArray, positives: FloatArray, negatives: FloatArray) -> float:
    """Return sum over r, s of A[r, s] P[r] N[s], which is zero where r + s > d; always in the same order."""
    total = 0.0
    for r in range(len(positives)):
        inner = 0.0
        for s in range(len(negatives) - r):
            inner += pairs[r, s] * negatives[s]
        total += positives[r] * inner
    return total
