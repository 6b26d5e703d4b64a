"""Measures of a window by one scan over its sorted scores: plain, exact, and the oracle of what is faster.

The window stands as two parallel arrays sorted by (score, label). A scan groups equal scores into
entries (negatives, positives), and everything about ranking follows from the entries in order:

- pairs and squared ranks as doubled integers (a tie counts one half), so that AUC and its DeLong
  variance (DeLong, DeLong & Clarke-Pearson 1988; Sun & Xu 2014) come out the same on every path;
- the lower convex hull of (X = events, Y = positives) cumulated from the LOWEST score. Its vertices are
  strict (collinear points are none), its slopes are the isotonic calibration (PAV) of the scores, and
  it is the ROC convex hull (Tatti 2021, section 5);
- everything else from entries and hull, O(n) each.

Predicted positive means score >= threshold, everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .events import FloatArray, Int8Array, Int64Array
from .kernels import Integer, scanning
from .rows import DEGENERATE, NUMBER_COLUMNS, ONE_CLASS, TOO_FEW
from .score_tree_layout import loss_in_fixed_point
from .settings import MEASURES

EXACT_EVENTS = 2_400_000
"""Up to here the sums of squared doubled ranks fit 64 bits; larger windows sum them in float64."""

_MEASURE = len(NUMBER_COLUMNS) - len(MEASURES)
_WEIGHT, _POSITIVES, _NEGATIVES, _PREVALENCE = range(_MEASURE)
_AUC = MEASURES.index("auc")
_AUC_LOW = MEASURES.index("auc_low")
_AUC_HIGH = MEASURES.index("auc_high")
_H = MEASURES.index("h")
_KS = MEASURES.index("ks")
_KS_THRESHOLD = MEASURES.index("ks_threshold")
_BRIER = MEASURES.index("brier")
_LOG_LOSS = MEASURES.index("log_loss")
_TPR_AT_FPR = MEASURES.index("tpr_at_fpr")
_COST_THRESHOLD = MEASURES.index("cost_threshold")
_AUM = MEASURES.index("aum")
_COST_CURVE_AREA = MEASURES.index("cost_curve_area")
_AVERAGE_PRECISION = MEASURES.index("average_precision")
_CALIBRATION_ERROR = MEASURES.index("calibration_error")


@scanning
def merge_sorted(
    scores: FloatArray,
    labels: Int8Array,
    removed_scores: FloatArray,
    removed_labels: Int8Array,
    added_scores: FloatArray,
    added_labels: Int8Array,
    out_scores: FloatArray,
    out_labels: Int8Array,
) -> int:
    """Take the removed events out of the sorted window, put the added ones in; return the new length.

    All three inputs are sorted by (score, label); an event that comes and goes between two rows may be
    both in added and in removed. Linear in all of them.
    """
    n = old = gone = new = 0
    while old < len(scores) or new < len(added_scores):
        take_new = old == len(scores) or (
            new < len(added_scores)
            and (
                added_scores[new] < scores[old]
                or (added_scores[new] == scores[old] and added_labels[new] < labels[old])
            )
        )
        if take_new:
            score, label = added_scores[new], added_labels[new]
            new += 1
        else:
            score, label = scores[old], labels[old]
            old += 1
        if gone < len(removed_scores) and removed_scores[gone] == score and removed_labels[gone] == label:
            gone += 1
        else:
            out_scores[n] = score
            out_labels[n] = label
            n += 1
    return n if gone == len(removed_scores) else -1


@scanning
def group_ties(
    scores: FloatArray,
    labels: Int8Array,
    keys: FloatArray,
    negatives: Int64Array,
    positives: Int64Array,
) -> int:
    """Fill keys, negatives and positives, one entry per distinct score; return how many there are."""
    entry = -1
    for event in range(len(scores)):
        if entry < 0 or scores[event] != keys[entry]:
            entry += 1
            keys[entry] = scores[event]
            negatives[entry] = 0
            positives[entry] = 0
        positives[entry] += labels[event]
        negatives[entry] += 1 - labels[event]
    return entry + 1


@scanning
def rank_sums(negatives: Any, positives: Any) -> Any:
    """Return doubled pairs and the two sums of squared doubled ranks (MATH: 2U, 4A, 4B).

    2U: over positives, twice the negatives below plus the negatives tied. 4A: over positives, that number
    squared. 4B: over negatives, twice the positives above plus the positives tied, squared. In the type of
    the arguments: exact for int64 up to EXACT_EVENTS.
    """
    zero = negatives[0] - negatives[0]
    pairs, squares_of_positives, squares_of_negatives = zero, zero, zero
    below = zero
    above = positives.sum()
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


@scanning
def delong_variance(
    n: float, p: float, pairs: float, squares_of_positives: float, squares_of_negatives: float
) -> float:
    """Return the DeLong variance of the AUC from the three sums, for n >= 2 negatives, p >= 2 positives.

    Called with the sums of the misranked pairs (see `write_interval`), so that it is exactly 0 when
    nothing varies.
    """
    auc = pairs / (2.0 * n * p)
    s10 = (squares_of_positives / (4.0 * n * n) - p * auc * auc) / (p - 1.0)
    s01 = (squares_of_negatives / (4.0 * p * p) - n * auc * auc) / (n - 1.0)
    return max(0.0, s10 / p + s01 / n)


@scanning
def auc_interval(
    negatives: Any, positives: Any, n: Any, p: Any, z: float, measures: FloatArray, reasons: Int8Array
) -> None:
    """Write auc, auc_low and auc_high of entries with n negatives and p positives, both > 0."""
    pairs, of_positives, of_negatives = rank_sums(negatives, positives)
    auc = pairs / (2.0 * n * p)
    if pairs > n * p:
        # Counted anew, since taken from the sums above the misranked would cancel to noise in float64.
        pairs, of_positives, of_negatives = rank_sums(negatives[::-1].copy(), positives[::-1].copy())
    write_interval(auc, n, p, pairs, of_positives, of_negatives, z, measures, reasons)


@scanning
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
    """Write auc and its interval from the rank sums, of the misranked pairs where they are the fewer.

    Their variance is the same, and a small sum of small numbers where nearly all are ranked right.
    """
    measures[_AUC] = auc
    if n < 2 or p < 2:
        reasons[_AUC_LOW] = TOO_FEW
        reasons[_AUC_HIGH] = TOO_FEW
        return
    variance = delong_variance(n, p, pairs, of_positives, of_negatives)
    half_width = z * np.sqrt(variance)
    measures[_AUC_LOW] = max(0.0, auc - half_width)
    measures[_AUC_HIGH] = min(1.0, auc + half_width)
    if variance == 0.0:
        reasons[_AUC_LOW] = DEGENERATE


@scanning
def lower_hull(negatives: Int64Array, positives: Int64Array, vertices: Int64Array) -> int:
    """Fill vertices with the hull's, as numbers of entries below; return how many there are.

    Vertex v lies at (X, Y) = (events, positives) of the first v entries; 0 and all are always vertices.
    Graham's scan; integer cross products, so collinear points are told exactly.
    """
    x = np.zeros(len(negatives) + 1, np.int64)
    y = np.zeros(len(negatives) + 1, np.int64)
    top = 0
    vertices[0] = 0
    for entry in range(len(negatives)):
        point = entry + 1
        x[point] = x[entry] + negatives[entry] + positives[entry]
        y[point] = y[entry] + positives[entry]
        while top > 0:
            a, b = vertices[top - 1], vertices[top]
            if (x[b] - x[a]) * (y[point] - y[a]) > (y[b] - y[a]) * (x[point] - x[a]):
                break
            top -= 1
        top += 1
        vertices[top] = point
    return top + 1


@scanning
def kolmogorov_smirnov(
    keys: FloatArray, negatives: Int64Array, positives: Int64Array, n: Integer, p: Integer
) -> tuple[float, float]:
    """Return the greatest TPR - FPR (Youden's J, at least 0) and the largest score that attains it."""
    best, threshold = np.int64(-1) << np.int64(62), np.inf
    true_positives = false_positives = np.int64(0)
    for entry in range(len(keys) - 1, -1, -1):
        true_positives += positives[entry]
        false_positives += negatives[entry]
        advantage = true_positives * n - false_positives * p
        if advantage > best:
            best, threshold = advantage, keys[entry]
    return best / (float(n) * float(p)), threshold


@scanning
def tpr_at_fpr(negatives: Int64Array, positives: Int64Array, n: Integer, p: Integer, fpr: float) -> float:
    """Return the TPR at a FPR: linear between ROC points, the upper end of a vertical step."""
    true_positives = false_positives = np.int64(0)
    for entry in range(len(negatives) - 1, -1, -1):
        if (false_positives + negatives[entry]) / n > fpr:  # fpr * n would round past a whole number
            share = (fpr * n - false_positives) / negatives[entry]
            return float((true_positives + share * positives[entry]) / p)
        false_positives += negatives[entry]
        true_positives += positives[entry]
    return 1.0


@scanning
def area_under_min(keys: FloatArray, negatives: Int64Array, positives: Int64Array) -> float:
    """Return AUM, the area under min(FP, FN) over thresholds (Hocking & Hillman 2021), in units of score.

    The two curves cross once, at the smallest score c with positives <= c at least as many as negatives
    > c: below it every positive adds its distance, above it every negative.
    """
    crossing = keys[-1]
    below, above = np.int64(0), negatives.sum()
    for entry in range(len(keys)):
        below += positives[entry]
        above -= negatives[entry]
        if below >= above:
            crossing = keys[entry]
            break
    area = 0.0
    for entry in range(len(keys)):
        distance = keys[entry] - crossing
        if distance < 0.0 and positives[entry] > 0:
            area -= positives[entry] * distance
        elif distance > 0.0 and negatives[entry] > 0:
            area += negatives[entry] * distance
    return area


@scanning
def average_precision(negatives: Int64Array, positives: Int64Array, p: Integer) -> float:
    """Return the sum over thresholds of (rise in recall) * precision, ties as one threshold."""
    area = 0.0
    true_positives = predicted = np.int64(0)
    for entry in range(len(negatives) - 1, -1, -1):
        true_positives += positives[entry]
        predicted += positives[entry] + negatives[entry]
        area += positives[entry] * (true_positives / predicted)
    return area / p


@scanning
def calibration_error(
    keys: FloatArray,
    negatives: Int64Array,
    positives: Int64Array,
    vertices: Int64Array,
    events: int,
) -> float:
    """Return the sum over PAV blocks of share of events * |mean score - share of positives|."""
    error = 0.0
    for block in range(len(vertices) - 1):
        scores, block_positives = 0.0, 0.0
        for entry in range(vertices[block], vertices[block + 1]):
            scores += keys[entry] * (negatives[entry] + positives[entry])
            block_positives += positives[entry]
        error += abs(scores - block_positives)
    return error / events


@scanning
def cost_threshold(
    keys: FloatArray,
    vertices: Int64Array,
    edge_negatives: Int64Array,
    edge_positives: Int64Array,
    cost: float,
) -> float:
    """Return the smallest score whose PAV value is at least the cost of a false positive, else +inf."""
    for edge in range(len(edge_negatives)):
        if edge_positives[edge] / (edge_negatives[edge] + edge_positives[edge]) >= cost:
            return float(keys[vertices[edge]])
    return np.inf


@scanning
def cost_curve_area(
    edge_negatives: Int64Array | FloatArray,
    edge_positives: Int64Array | FloatArray,
    n: Integer | float,
    p: Integer | float,
) -> float:
    """Return the area under the cost curve, in [0, 1/4] (Tatti 2021, section 2)."""
    area = 0.0
    for edge in range(len(edge_negatives)):
        x, y = edge_negatives[edge] / n, edge_positives[edge] / p
        area += x * y / (x + y)
    return area / 2.0


@scanning
def probability_losses(scores: FloatArray, labels: Int8Array, numbers: FloatArray) -> None:
    """Write the Brier score and the log loss (clipped at 2^-52) of a window of probabilities."""
    brier = log_loss = 0.0
    for event in range(len(scores)):
        brier += (scores[event] - labels[event]) ** 2
        right = scores[event] if labels[event] else 1.0 - scores[event]
        log_loss -= np.log(max(right, 2.0**-52))
    numbers[_MEASURE + _BRIER] = brier / len(scores)
    numbers[_MEASURE + _LOG_LOSS] = log_loss / len(scores)


@scanning
def write_masses(n: Integer, p: Integer, numbers: FloatArray, reasons: Int8Array) -> bool:
    """Write the masses of a window; return whether it has both classes, and say so where it has not."""
    numbers[_WEIGHT] = n + p
    numbers[_POSITIVES] = p
    numbers[_NEGATIVES] = n
    if n + p > 0:
        numbers[_PREVALENCE] = p / (n + p)
        if n == 0 or p == 0:
            for measure in range(_AUC, _CALIBRATION_ERROR + 1):
                if measure not in (_BRIER, _LOG_LOSS):
                    reasons[measure] = ONE_CLASS
    return bool(n > 0 and p > 0)


@scanning
def write_tree_rows(rows: Any, with_h: int, z: float, numbers: FloatArray, reasons: Int8Array) -> None:
    """Write masses and ranking measures from records of ROW (score_tree_rows), one row each.

    The same bits as `scan_window` of the same window: both divide the same whole numbers.
    """
    for index in range(len(rows)):
        row = rows[index]
        n, p = row.negatives, row.positives
        if not write_masses(n, p, numbers[index], reasons[index]):
            continue
        measures = numbers[index, _MEASURE:]
        pairs, of_positives, of_negatives = row.pairs2, row.squares_positive, row.squares_negative
        auc = pairs / (2.0 * n * p)
        if pairs > n * p:
            of_positives += 4 * n * (n * p - pairs)
            of_negatives += 4 * p * (n * p - pairs)
            pairs = 2 * n * p - pairs
        write_interval(auc, n, p, pairs, of_positives, of_negatives, z, measures, reasons[index])
        if with_h:
            measures[_H] = 1.0 - row.h_loss / row.h_loss_of_all
        measures[_KS], measures[_KS_THRESHOLD] = row.ks, row.ks_threshold
        measures[_TPR_AT_FPR], measures[_COST_THRESHOLD] = row.tpr_at_fpr, row.cost_threshold
        measures[_AUM] = row.aum


@scanning
def scan_window(
    scores: FloatArray,
    labels: Int8Array,
    asked: Int8Array,
    z: float,
    at_fpr: float,
    cost: float,
    curvature: float,
    scale: float,
    numbers: FloatArray,
    reasons: Int8Array,
    edge_negatives: Int64Array,
    edge_positives: Int64Array,
) -> int:
    """Write masses and ranking measures of a sorted window; return its number of hull edges.

    scores, labels  the window, sorted by (score, label); labels are 0 and 1
    asked           1 for each of `MEASURES` that is wanted
    curvature       of the cost density, and
    scale           of the fixed point of its loss (`loss_in_fixed_point`): H is written; scale 0: it is not
    numbers         float64[len(NUMBER_COLUMNS)], one row of `Rows`; NaN where nothing is written
    reasons         int8[len(MEASURES)]
    edge_...        room for one more than the window has events; filled from the lowest scores up
    """
    events = len(scores)
    p = np.int64(labels.sum())
    n = events - p
    if not write_masses(n, p, numbers, reasons):
        return 0
    measures = numbers[_MEASURE:]
    keys = np.empty(events)
    entry_negatives = np.empty(events, np.int64)
    entry_positives = np.empty(events, np.int64)
    entries = group_ties(scores, labels, keys, entry_negatives, entry_positives)
    keys = keys[:entries]
    entry_negatives, entry_positives = entry_negatives[:entries], entry_positives[:entries]
    if events <= EXACT_EVENTS:
        auc_interval(entry_negatives, entry_positives, n, p, z, measures, reasons)
    else:
        auc_interval(
            entry_negatives.astype(np.float64), entry_positives.astype(np.float64),
            float(n), float(p), z, measures, reasons,
        )  # fmt: skip
    measures[_KS], measures[_KS_THRESHOLD] = kolmogorov_smirnov(keys, entry_negatives, entry_positives, n, p)
    measures[_TPR_AT_FPR] = tpr_at_fpr(entry_negatives, entry_positives, n, p, at_fpr)
    measures[_AUM] = area_under_min(keys, entry_negatives, entry_positives)
    vertices = np.empty(entries + 1, np.int64)
    vertices = vertices[: lower_hull(entry_negatives, entry_positives, vertices)]
    edges = len(vertices) - 1
    for edge in range(edges):
        edge_negatives[edge] = entry_negatives[vertices[edge] : vertices[edge + 1]].sum()
        edge_positives[edge] = entry_positives[vertices[edge] : vertices[edge + 1]].sum()
    edge_negatives, edge_positives = edge_negatives[:edges], edge_positives[:edges]
    measures[_COST_THRESHOLD] = cost_threshold(keys, vertices, edge_negatives, edge_positives, cost)
    if scale > 0.0:
        loss = np.int64(0)
        for edge in range(edges):
            dx = edge_negatives[edge] + edge_positives[edge]
            loss += loss_in_fixed_point(dx, edge_positives[edge], curvature, scale)
        measures[_H] = 1.0 - loss / loss_in_fixed_point(np.int64(events), p, curvature, scale)
    if asked[_COST_CURVE_AREA]:
        measures[_COST_CURVE_AREA] = cost_curve_area(edge_negatives, edge_positives, n, p)
    if asked[_AVERAGE_PRECISION]:
        measures[_AVERAGE_PRECISION] = average_precision(entry_negatives, entry_positives, p)
    if asked[_CALIBRATION_ERROR]:
        measures[_CALIBRATION_ERROR] = calibration_error(
            keys, entry_negatives, entry_positives, vertices, events
        )
    return edges
