"""The loops of AUM: thresholds, one sweep over them in order, and the selection for binary labels.

Thresholds are sorted by numpy's sort of integers. The high bits of an integer are the leading bits of a
threshold, and its low bits the position. Thresholds with equal leading bits may be out of order afterwards:
an insertion sort mends the order while rows are gathered. If too many rows would move (clusters of thresholds
that are far apart), argsort is used instead.

The following times are for 10^6 breakpoints, as shares of the time of numpy's argsort of the same thresholds
(AVX2, interleaved). Keys and rows take .1, the sort of the keys .35, gathering .3, the sweep .4. Three other
forms were slower: argsort, with a sweep that reads five arrays through its order, 3.8; a radix sort of our
own for keys and positions, .9; one array for each column in place of rows, .2 more.
"""

from __future__ import annotations

import numpy as np

from ...arrays import FloatArray, Int8Array, Int64Array
from ...kernels.compile import entry

FINE, NOT_FINITE, NO_SUCH_EXAMPLE, FP_NEGATIVE, FN_NEGATIVE = 0, 1, 2, 3, 4

THRESHOLD, FP, FN, EXAMPLE = 0, 1, 2, 3
"""Columns of a row; a row holds one breakpoint in 32 bytes, so that its numbers are fetched together."""

_LARGEST = np.int64(2**63 - 1)
_TOP = np.int64(-(2**63))


@entry
def write_rows(
    predictions: FloatArray,
    example: Int64Array,
    breakpoint: FloatArray,  # noqa: A002
    fp_diff: FloatArray,
    fn_diff: FloatArray,
    rows: FloatArray,
    centred: FloatArray,
) -> tuple[int, int]:
    """Write (threshold, fp_diff, fn_diff, example) of every breakpoint.

    Return an error code, and the position of the error.

    centred: filled with the thresholds minus the first threshold, whose keys have a fine resolution near it.
    O(B).
    """
    n = len(predictions)
    centre = 0.0
    for b in range(len(breakpoint)):
        e = example[b]
        if e < 0 or e >= n:
            return NO_SUCH_EXAMPLE, b
        t = breakpoint[b] - predictions[e]
        if not np.isfinite(t):
            return NOT_FINITE, b
        if not b:
            centre = t
        centred[b] = t - centre
        row = rows[b]
        row[THRESHOLD], row[FP], row[FN], row[EXAMPLE] = t, fp_diff[b], fn_diff[b], e
    return FINE, 0


@entry
def write_keys(keys: Int64Array, low: int) -> None:
    """Turn the bits of floats into integers of the same order, whose `low` lowest bits are the positions.

    O(B).
    """
    mask = (np.int64(1) << low) - 1
    for b in range(len(keys)):
        key = keys[b]
        keys[b] = ((key ^ ((key >> 63) & _LARGEST)) & ~mask) | b


@entry
def gather(keys: Int64Array, low: int, rows: FloatArray, ordered: FloatArray) -> bool:
    """Write rows in the order of their thresholds.

    Return False if the order of the keys was too far from this order. O(B).
    """
    mask = (np.int64(1) << low) - 1
    # no other work in this loop, so that rows of many steps are loaded from memory at once
    for k in range(len(keys)):
        b = keys[k] & mask
        for column in range(4):
            ordered[k, column] = rows[b, column]
    moves = 0
    for k in range(1, len(keys)):
        t = ordered[k, THRESHOLD]
        if ordered[k - 1, THRESHOLD] <= t:
            continue
        fp, fn, e = ordered[k, FP], ordered[k, FN], ordered[k, EXAMPLE]
        j = k
        while j and ordered[j - 1, THRESHOLD] > t:
            for column in range(4):
                ordered[j, column] = ordered[j - 1, column]
            j -= 1
            moves += 1
        ordered[j, THRESHOLD], ordered[j, FP], ordered[j, FN], ordered[j, EXAMPLE] = t, fp, fn, e
        if moves > len(keys):
            return False
    return True


@entry
def sweep(
    rows: FloatArray,
    fp_slack: float,
    fn_slack: float,
    fn_from: FloatArray,
    derivatives: FloatArray,
    tied: FloatArray,
) -> tuple[int, float]:
    """Return an error code, and AUM or the threshold of the error; add to `derivatives`, float64[n, 2]. O(B).

    rows     in the order of thresholds; their differences are overwritten
    slack    how far below 0 rounding may bring a total; such a total counts as 0
    fn_from  float64[B + 1], scratch: FN just before each row
    tied     float64[n, 2], zeros, scratch: sums of the differences over an example's rows at one threshold
    """
    count = len(rows)
    fn_from[count] = 0.0
    for k in range(count - 1, -1, -1):
        fn_from[k] = fn_from[k + 1] - rows[k, FN]
    value = fp_sum = before = 0.0
    k = 0
    while k < count:
        t = rows[k, THRESHOLD]
        dfp = rows[k, FP]
        end = k + 1
        while end < count and rows[end, THRESHOLD] == t:
            dfp += rows[end, FP]
            end += 1
        fp_before, fn_before = max(fp_sum, 0.0), max(fn_from[k], 0.0)
        fp_sum += dfp
        fp_after, fn_after = max(fp_sum, 0.0), max(fn_from[end], 0.0)
        if fp_sum < -fp_slack:
            return FP_NEGATIVE, t
        if fn_from[k] < -fn_slack:
            return FN_NEGATIVE, t
        min_before, min_after = min(fp_before, fn_before), min(fp_after, fn_after)
        if k and min_before > 0.0:
            value += (t - before) * min_before
        if end == k + 1:
            rows[k, FP] = rows[k, FN] = min_after - min_before
        else:
            for j in range(k, end):
                e = int(rows[j, EXAMPLE])
                tied[e, 0] += rows[j, FP]
                tied[e, 1] += rows[j, FN]
            for j in range(k, end):
                e = int(rows[j, EXAMPLE])
                fp, fn = tied[e, 0], tied[e, 1]  # both 0: the example was done before, or its changes cancel
                tied[e, 0] = tied[e, 1] = 0.0
                rows[j, FP] = min_after - min(fp_after - fp, fn_after - fn)
                rows[j, FN] = min(fp_before + fp, fn_before + fn) - min_before
        before = t
        k = end
    for k in range(count):  # no other work in this loop, as in `gather`
        e = int(rows[k, EXAMPLE])
        derivatives[e, 0] += rows[k, FP]
        derivatives[e, 1] += rows[k, FN]
    return FINE, value


@entry
def crossing(
    bits: Int64Array,
    labels: Int8Array,
    weights: FloatArray,
    own: FloatArray,
    wanted: float,
    width: int,
    masses: FloatArray,
    kept: Int64Array,
) -> int:
    """Return the index of the smallest score such that the mass at or below it is at least `wanted`. O(n).

    Each pass selects by `width` bits of the key, among the scores in one bin of the pass before.

    bits     scores as int64; -0.0 has been made 0.0
    weights  weights of events, float64[n], empty if all are 1; each is multiplied by own[label]
    width    a divisor of 64
    masses   float64[1 << width], scratch
    kept     int64[n], scratch
    """
    n = len(bits)
    count = n
    for i in range(n):
        kept[i] = i
    below = 0.0
    low = np.int64((1 << width) - 1)
    for step in range(64 // width):
        shift = 64 - width * (step + 1)
        masses[:] = 0.0
        last = -1
        for k in range(count):
            i = kept[k]
            key = bits[i]
            key = ~key if key < 0 else key ^ _TOP
            b = (key >> shift) & low
            last = max(last, b)
            masses[b] += own[labels[i]] * (weights[i] if len(weights) else 1.0)
        chosen = last  # if rounding leaves the sum a little below `wanted`, the greatest score is the answer
        for b in range(last):
            if masses[b] > 0.0 and below + masses[b] >= wanted:
                chosen = b
                break
            below += masses[b]
        rest = 0
        for k in range(count):
            i = kept[k]
            key = bits[i]
            key = ~key if key < 0 else key ^ _TOP
            if (key >> shift) & low == chosen:
                kept[rest] = i
                rest += 1
        count = rest
    return int(kept[0])


@entry
def sums_about(
    at: float,
    labels: Int8Array,
    scores: FloatArray,
    weights: FloatArray,
    own: FloatArray,
    together: bool,
    left: FloatArray,
    right: FloatArray,
) -> float:
    """Return AUM of labels whose curves FP and FN cross at the score `at`; write the derivatives. O(n).

    Below the crossing FN is smaller than FP, above the crossing FP is smaller (see `aum_of_labels`). Scores
    at the crossing get the terms of the sweep. `together`: all scores of a class at the crossing are moved as
    one, and each score gets its share by mass.
    """
    value = 0.0
    fn_below = fp_above = fn_at = fp_at = 0.0
    for i in range(len(scores)):
        y = labels[i]
        w = own[y] * (weights[i] if len(weights) else 1.0)
        s = scores[i]
        if s == at:
            if y:
                fn_at += w
            else:
                fp_at += w
        elif y and s < at:
            value += (at - s) * w
            fn_below += w
            left[i] = right[i] = -w
        elif not y and s > at:
            value += (s - at) * w
            fp_above += w
            left[i] = right[i] = w
    # As the threshold t = -score goes up, FP grows by fp_at from fp_above, and FN falls by fn_at to fn_below.
    min_before = min(fp_above, fn_below + fn_at)
    min_after = min(fp_above + fp_at, fn_below)
    for i in range(len(scores)):
        if scores[i] == at:
            w = own[labels[i]] * (weights[i] if len(weights) else 1.0)
            share = w / (fn_at if labels[i] else fp_at) if together else 1.0
            fp, fn = (0.0, -w / share) if labels[i] else (w / share, 0.0)
            left[i] = share * (min_after - min(fp_above + fp_at - fp, fn_below - fn))
            right[i] = share * (min(fp_above + fp, fn_below + fn_at + fn) - min_before)
    return value
