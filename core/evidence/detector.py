"""The kernel of an e-detector: events form blocks, and each full block changes the sums of the grid.

`below` says what the sums guarantee. All sums are natural logarithms, so no sum overflows.
"""

from __future__ import annotations

import math

from ..arrays import FloatArray, Int8Array, Int64Array
from ..kernels.compile import entry, inlined

POSITIVES, NEGATIVES, BLOCKS, EVENTS, LAST, READY = range(6)
"""Counters: events of each class in the block that fills; full blocks; all events; events up to the latest
full block; the time from which events are used, NO_TIME at first."""

COUNTERS = 6

SUM, AGE = range(2)
"""Rows of the grid. SUM: the logarithm of each Shiryaev-Roberts sum, -inf before the first block. AGE: how
many events ago the growth of the sum began, as a mean over the products in the sum.
"""

EVIDENCE, MEAN_AGE, AUC = range(3)
"""The numbers of a full block."""


@inlined
def _of_right_pairs(positives: FloatArray, negatives: FloatArray, first: int, second: int) -> float:
    """Return the AUC of the first scores of both columns; a tie counts one half. O(first * second)."""
    halves = 0
    for i in range(first):
        for j in range(second):
            if positives[i] > negatives[j]:
                halves += 2
            elif positives[i] == negatives[j]:
                halves += 1
    return halves / (2 * first * second)


@inlined
def _multiply(grid: FloatArray, bets: FloatArray, gap: float, events: int) -> None:
    """Apply M <- (M + 1) L to each sum, with L = 1 + bet * gap, and let the ages grow."""
    for k in range(len(bets)):
        before = grid[SUM, k]
        if before > 0.0:
            rest = math.exp(-before)
            grown, share = before + math.log1p(rest), 1.0 / (1.0 + rest)
        else:
            odds = math.exp(before)
            grown, share = math.log1p(odds), odds / (1.0 + odds)
        grid[SUM, k] = grown + math.log1p(bets[k] * gap)
        grid[AGE, k] = events + grid[AGE, k] * share


@inlined
def _mean(grid: FloatArray, values: FloatArray, block: int) -> None:
    """Write the logarithm of the mean of the sums, and the mean of the ages, weighted by the sums."""
    count = grid.shape[1]
    most = grid[SUM, 0]
    for k in range(count):
        most = max(most, grid[SUM, k])
    total = aged = 0.0
    for k in range(count):
        weight = math.exp(grid[SUM, k] - most)
        total += weight
        aged += weight * grid[AGE, k]
    values[block, EVIDENCE] = most + math.log(total / count)
    values[block, MEAN_AGE] = aged / total


@entry
def feed(
    counters: Int64Array,
    positives: FloatArray,
    negatives: FloatArray,
    grid: FloatArray,
    bets: FloatArray,
    bound: float,
    least: int,
    labels: Int8Array,
    scores: FloatArray,
    times: Int64Array,
    pause: int,
    ends: Int64Array,
    values: FloatArray,
) -> int:
    """Feed events; return how many blocks became full. O(least) an event.

    positives, negatives  rings for the newest scores of the block that fills, by class
    bound, least          the AUC that is promised; events of each class that a full block holds
    times, pause          microseconds: events within `pause` behind a full block's last event are not used;
                          0 = all are used, and `times` is not read
    ends                  filled: the index of the event that made each block full
    values                filled, three numbers a block: the logarithm of the mean sum, the mean age in
                          events, and the block's AUC
    """
    full = 0
    for event in range(len(labels)):
        counters[EVENTS] += 1
        if pause and times[event] < counters[READY]:
            continue
        if labels[event] == 1:
            positives[counters[POSITIVES] % len(positives)] = scores[event]
            counters[POSITIVES] += 1
        else:
            negatives[counters[NEGATIVES] % len(negatives)] = scores[event]
            counters[NEGATIVES] += 1
        if counters[POSITIVES] < least or counters[NEGATIVES] < least:
            continue
        first, second = min(counters[POSITIVES], len(positives)), min(counters[NEGATIVES], len(negatives))
        values[full, AUC] = _of_right_pairs(positives, negatives, first, second)
        _multiply(grid, bets, bound - values[full, AUC], counters[EVENTS] - counters[LAST])
        counters[BLOCKS] += 1
        counters[LAST] = counters[EVENTS]
        counters[POSITIVES] = counters[NEGATIVES] = 0
        if pause:
            counters[READY] = times[event] + pause
        _mean(grid, values, full)
        ends[full] = event
        full += 1
    return full
