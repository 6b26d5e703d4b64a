"""The e-detector, slowly: all blocks are kept, and each sum is added up anew from its products."""

from __future__ import annotations

import itertools
import math
import statistics
from fractions import Fraction

from scipy.stats import t

SHARES = ("0.02", "0.05", "0.1", "0.2", "0.4", "0.7", "0.95")
KEPT = 1_024


def blocks_of(labels, scores, least, times=None, gap=0):
    """The full blocks, each as the index behind its last event, its positives and its negatives."""
    blocks, positives, negatives = [], [], []
    for index, (label, score) in enumerate(zip(labels, scores, strict=True)):
        if gap and blocks and times[index] < times[blocks[-1][0] - 1] + gap:
            continue
        (positives if label else negatives).append(score)
        if min(len(positives), len(negatives)) >= least:
            blocks.append((index + 1, positives, negatives))
            positives, negatives = [], []
    return blocks


def auc(positives, negatives):
    """The AUC of the newest KEPT scores of each class, a tie one half."""
    pairs = [(p, n) for p in positives[-KEPT:] for n in negatives[-KEPT:]]
    return sum(Fraction(2 * (p > n) + (p == n), 2) for p, n in pairs) / len(pairs)


def bound_of_period(labels, scores, times, period, margin, least, gap=0):
    """How many events come before the end of a period, and the bound that it gives, None if it gives none."""
    start, end = period
    before = next((index for index, time in enumerate(times) if time >= end), len(times))
    inside = [index for index in range(before) if times[index] >= start]
    chosen = ([values[index] for index in inside] for values in (labels, scores, times))
    blocks = blocks_of(*itertools.islice(chosen, 2), least, *chosen, gap)
    aucs = [float(auc(positives, negatives)) for _, positives, negatives in blocks]
    if before == len(times) or len(aucs) < 2:
        return before, None
    values = [*aucs, 0.0] if least > 1 else [*aucs, 0.0, 0.0]
    spread = statistics.stdev(values) / math.sqrt(len(values))
    bound = statistics.fmean(values) - t.ppf(0.975, len(values) - 1) * spread - margin
    return before, bound if bound > 0 else None


def evidence(labels, scores, bound, least, times=None, gap=0):
    """After each event: the log of the mean sum, and the mean beginning; None before the first full block.

    The beginning is given as the number of events before the growth began.
    """
    bound = Fraction(bound)
    blocks = blocks_of(labels, scores, least, times, gap)
    gaps = [bound - auc(positives, negatives) for _, positives, negatives in blocks]
    starts = [0, *(end for end, _, _ in blocks)]
    after = {}
    for count, (end, _, _) in enumerate(blocks, 1):
        total = begun = Fraction(0)
        for share in SHARES:
            product = Fraction(1)
            for block in reversed(range(count)):
                product *= 1 + Fraction(share) / (1 - bound) * gaps[block]
                total += product
                begun += product * starts[block]
        mean = total / len(SHARES)
        after[end] = math.log(mean.numerator) - math.log(mean.denominator), float(begun / total)
    values, latest = [], None
    for index in range(1, len(labels) + 1):
        latest = after.get(index, latest)
        values.append(latest)
    return values
