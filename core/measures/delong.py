"""The interval of an AUC by DeLong, DeLong and Clarke-Pearson (1988), from exact sums of ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import FloatArray, Int8Array
from ..kernels.compile import allocating, kernel
from ..rows import slots
from ..rows.reasons import DEGENERATE, TOO_FEW


@kernel
def rank_sums(negatives: Any, positives: Any) -> Any:
    """Return the doubled pairs, and two sums of squared doubled ranks.

    They are 2U, 4A and 4B in docs/architecture/math.md. 2U: sum over positives of (twice the negatives below,
    plus the negatives tied). 4A: sum over positives of that number squared. 4B: sum over negatives of (twice
    the positives above, plus the positives tied) squared. The sums have the type of the arguments: exact for
    int64 up to EXACT_EVENTS.
    """
    zero = negatives[0] - negatives[0]
    pairs, squares_of_positives, squares_of_negatives = zero, zero, zero
    below = zero
    above = zero
    for entry in range(len(positives)):
        above += positives[entry]
    for entry in range(len(negatives)):
        n, p = negatives[entry], positives[entry]
        above -= p
        doubled_below = 2 * below + n
        doubled_above = 2 * above + p
        pairs += p * doubled_below
        squares_of_positives += p * doubled_below * doubled_below
        squares_of_negatives += n * doubled_above * doubled_above
        below += n
    return pairs, squares_of_positives, squares_of_negatives


@kernel
def delong_variance(
    n: float, p: float, pairs: float, squares_of_positives: float, squares_of_negatives: float
) -> float:
    """Return the DeLong variance of the AUC from the three sums, for n >= 2 negatives, p >= 2 positives.

    The caller may give the sums of the misranked pairs (see `write_interval`). Then the variance is exactly 0
    if all placements are equal.
    """
    auc = pairs / (2.0 * n * p)
    s10 = (squares_of_positives / (4.0 * n * n) - p * auc * auc) / (p - 1.0)
    s01 = (squares_of_negatives / (4.0 * p * p) - n * auc * auc) / (n - 1.0)
    return max(0.0, s10 / p + s01 / n)


@allocating
def auc_interval(
    negatives: Any, positives: Any, n: Any, p: Any, z: float, measures: FloatArray, reasons: Int8Array
) -> None:
    """Write auc, auc_low and auc_high of entries with n negatives and p positives, both > 0."""
    pairs, of_positives, of_negatives = rank_sums(negatives, positives)
    auc = pairs / (2.0 * n * p)
    if pairs > n * p:
        # The misranked pairs are counted again: differences of the sums above would lose their digits in
        # float64.
        pairs, of_positives, of_negatives = rank_sums(negatives[::-1].copy(), positives[::-1].copy())
    write_interval(auc, n, p, pairs, of_positives, of_negatives, z, measures, reasons)


@kernel
def write_interval(
    auc: float,
    n: Any,
    p: Any,
    pairs: Any,
    of_positives: Any,
    of_negatives: Any,
    z: float,
    measures: FloatArray,
    reasons: Int8Array,
) -> None:
    """Write auc and its interval from rank sums of the pairs, or of the misranked pairs if these are fewer.

    Both kinds of sums give the same variance. The smaller sums lose fewer digits to rounding.
    """
    measures[slots.AUC] = auc
    if n < 2 or p < 2:
        reasons[slots.AUC_LOW] = TOO_FEW
        reasons[slots.AUC_HIGH] = TOO_FEW
        return
    variance = delong_variance(n, p, pairs, of_positives, of_negatives)
    half_width = z * np.sqrt(variance)
    measures[slots.AUC_LOW] = max(0.0, auc - half_width)
    measures[slots.AUC_HIGH] = min(1.0, auc + half_width)
    if variance == 0.0:
        reasons[slots.AUC_LOW] = DEGENERATE
