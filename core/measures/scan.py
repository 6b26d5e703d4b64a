"""Measures of a window by one scan over its sorted scores.

The scan is simple and exact, and is the oracle of faster methods.

The window is given as two parallel arrays sorted by (score, label). A scan groups equal scores into entries
(negatives, positives), and all ranking measures follow from the entries in order:

- pairs and squared ranks as doubled integers (a tie counts one half), so that AUC and its DeLong
  variance (DeLong, DeLong & Clarke-Pearson 1988; Sun & Xu 2014) come out the same on every path;
- the lower convex hull of (X = events, Y = positives) cumulated from the LOWEST score. Its vertices are
  strict (points inside an edge are no vertices), its slopes are the isotonic calibration (PAV) of the scores,
  and it is the ROC convex hull (Tatti 2021, section 5);
- everything else from entries and hull, O(n) each.

Predicted positive means score >= threshold, everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import FloatArray, Int8Array, Int64Array
from ..kernels.compile import Integer, allocating, kernel, scanning
from ..kernels.exact_sums import SUM_CHUNKS, add, add_times, rounded
from ..kernels.records import whole
from ..rows import slots
from ..rows.reasons import ONE_CLASS
from .delong import auc_interval, write_interval
from .sorted import group_ties
from .sums import area_under_min, brier_term, log_loss_term, loss_in_fixed_point

EXACT_EVENTS = 2_400_000
"""The greatest number of events for which sums of squared doubled ranks fit into 64 bits; larger windows sum
them in float64.
"""


@kernel
def total(counts: Int8Array | Int64Array | FloatArray) -> np.int64:
    """Return the sum of whole numbers. With numba's own `sum`, each start would import `scipy.linalg`."""
    sum_of = np.int64(0)
    for count in counts:
        sum_of += np.int64(count)
    return sum_of


@scanning
def lower_hull(negatives: Any, positives: Any, vertices: Int64Array) -> int:
    """Fill `vertices` with the hull's vertices, as numbers of entries below them.

    Return the number of vertices.

    Vertex v lies at (X, Y) = (events, positives) of the first v entries. v = 0 and v = the number of entries
    are always vertices. Graham's scan. With counts, cross products are integers, so collinearity is decided
    exactly.
    """
    x = np.zeros(len(negatives) + 1, negatives.dtype)
    y = np.zeros(len(negatives) + 1, negatives.dtype)
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


@kernel
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


@kernel
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


@allocating
def area_of_entries(keys: FloatArray, negatives: Int64Array, positives: Int64Array) -> float:
    """Return AUM (`area_under_min`), in units of score.

    FP and FN cross at the smallest score c with positives <= c at least as many as negatives > c.
    """
    crossing = keys[-1]
    below, above = np.int64(0), total(negatives)
    for entry in range(len(keys)):
        below += positives[entry]
        above -= negatives[entry]
        if below >= above:
            crossing = keys[entry]
            break
    sums = np.zeros(SUM_CHUNKS, np.int64)
    positives_below, negatives_above = np.int64(0), np.int64(0)
    for entry in range(len(keys)):
        if keys[entry] < crossing and positives[entry] > 0:
            add_times(sums, -keys[entry], positives[entry])
            positives_below += positives[entry]
        elif keys[entry] > crossing and negatives[entry] > 0:
            add_times(sums, keys[entry], negatives[entry])
            negatives_above += negatives[entry]
    return area_under_min(sums, positives_below, negatives_above, crossing)


@kernel
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


@allocating
def probability_losses(scores: FloatArray, labels: Int8Array, numbers: FloatArray) -> None:
    """Write the Brier score and the log loss (clipped at 2^-52) of a window of probabilities."""
    brier, log_loss = np.zeros(SUM_CHUNKS, np.int64), np.zeros(SUM_CHUNKS, np.int64)
    for event in range(len(scores)):
        # the type that trees give, so that the function of terms is compiled once
        label = whole(labels[event])
        add(brier, brier_term(scores[event], label), 1)
        add(log_loss, log_loss_term(scores[event], label), 1)
    numbers[slots.MEASURES + slots.BRIER] = rounded(brier) / len(scores)
    numbers[slots.MEASURES + slots.LOG_LOSS] = rounded(log_loss) / len(scores)


@kernel
def write_masses(n: Integer, p: Integer, numbers: FloatArray, reasons: Int8Array) -> bool:
    """Write the masses of a window; return whether it has both classes. If not, write the reasons."""
    numbers[slots.WEIGHT] = n + p
    numbers[slots.POSITIVES] = p
    numbers[slots.NEGATIVES] = n
    if n + p > 0:
        numbers[slots.PREVALENCE] = p / (n + p)
        if n == 0 or p == 0:
            for measure in slots.RANKED:
                reasons[measure] = ONE_CLASS
    return bool(n > 0 and p > 0)


@scanning
def write_tree_rows(rows: Any, with_h: int, z: float, numbers: FloatArray, reasons: Int8Array) -> None:
    """Write masses and ranking measures from records of ROW (score_tree/tree_rows.py), one row each.

    The rows have the same bits as those of `scan_window`: both functions divide the same whole numbers.
    """
    for index in range(len(rows)):
        row = rows[index]
        n, p = row.negatives, row.positives
        numbers[index, slots.MEASURES + slots.BRIER] = row.brier
        numbers[index, slots.MEASURES + slots.LOG_LOSS] = row.log_loss
        if not write_masses(n, p, numbers[index], reasons[index]):
            continue
        measures = numbers[index, slots.MEASURES :]
        pairs, of_positives, of_negatives = row.pairs2, row.squares_positive, row.squares_negative
        auc = pairs / (2.0 * n * p)
        if pairs > n * p:
            of_positives += 4 * n * (n * p - pairs)
            of_negatives += 4 * p * (n * p - pairs)
            pairs = 2 * n * p - pairs
        write_interval(auc, n, p, pairs, of_positives, of_negatives, z, measures, reasons[index])
        if with_h:
            measures[slots.H] = 1.0 - row.h_loss / row.h_loss_of_all
        measures[slots.KS], measures[slots.KS_THRESHOLD] = row.ks, row.ks_threshold
        measures[slots.TPR_AT_FPR], measures[slots.COST_THRESHOLD] = row.tpr_at_fpr, row.cost_threshold
        measures[slots.AUM] = row.aum


@allocating
def scan_window(
    scores: FloatArray,
    labels: Int8Array,
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
    curvature       the curvature of the cost density (`loss_in_fixed_point`).
    scale           the scale of the fixed point of the loss; 0: H is not written.
    numbers         float64[len(NUMBER_COLUMNS)], one row of `Rows`; NaN where nothing is written
    reasons         int8[len(MEASURES)]
    edge_...        room for one more than the window has events; filled from the lowest scores up
    """
    events = len(scores)
    p = total(labels)
    n = events - p
    if not write_masses(n, p, numbers, reasons):
        return 0
    measures = numbers[slots.MEASURES :]
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
    measures[slots.KS], measures[slots.KS_THRESHOLD] = kolmogorov_smirnov(
        keys, entry_negatives, entry_positives, n, p
    )
    measures[slots.TPR_AT_FPR] = tpr_at_fpr(entry_negatives, entry_positives, n, p, at_fpr)
    measures[slots.AUM] = area_of_entries(keys, entry_negatives, entry_positives)
    vertices = np.empty(entries + 1, np.int64)
    vertices = vertices[: lower_hull(entry_negatives, entry_positives, vertices)]
    edges = len(vertices) - 1
    for edge in range(edges):
        edge_negatives[edge] = total(entry_negatives[vertices[edge] : vertices[edge + 1]])
        edge_positives[edge] = total(entry_positives[vertices[edge] : vertices[edge + 1]])
    edge_negatives, edge_positives = edge_negatives[:edges], edge_positives[:edges]
    measures[slots.COST_THRESHOLD] = cost_threshold(keys, vertices, edge_negatives, edge_positives, cost)
    if scale > 0.0:
        loss = np.int64(0)
        for edge in range(edges):
            dx = edge_negatives[edge] + edge_positives[edge]
            loss += loss_in_fixed_point(dx, edge_positives[edge], curvature, scale)
        measures[slots.H] = 1.0 - loss / loss_in_fixed_point(np.int64(events), p, curvature, scale)
    return edges


@scanning
def scan_windows(
    scores: FloatArray,
    labels: Int8Array,
    ends: Int64Array,
    z: float,
    at_fpr: float,
    cost: float,
    curvature: float,
    scales: FloatArray,
    has_probabilities: int,
    numbers: FloatArray,
    reasons: Int8Array,
    edge_negatives: Int64Array,
    edge_positives: Int64Array,
) -> int:
    """Write masses and ranking measures of sorted windows, a row each.

    Return the number of hull edges of the last window.

    scores, labels     the windows, one after another; window i ends before `ends[i]`
    scales             of each window: see `scan_window`
    has_probabilities  1: scores are probabilities, whose losses are written too; else 0
    numbers, reasons   a row of `Rows` for each window
    edge_...           room for one more than the longest window has events; the edges of the last window

    The other arguments are those of `scan_window`.
    """
    start = np.int64(0)
    edges = 0
    for window in range(len(ends)):
        own, own_labels = scores[start : ends[window]], labels[start : ends[window]]
        edges = scan_window(
            own, own_labels, z, at_fpr, cost, curvature, scales[window],
            numbers[window], reasons[window], edge_negatives, edge_positives,
        )  # fmt: skip
        if has_probabilities and ends[window] > start:
            probability_losses(own, own_labels, numbers[window])
        start = ends[window]
    return edges
