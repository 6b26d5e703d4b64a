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

from ..arrays import FloatArray, Int8Array, Int64Array
from ..kernels.compile import Integer, scanning
from ..kernels.exact_sums import SUM_CHUNKS, add, add_times, rounded
from ..kernels.rings import move_on
from ..rows.columns import DEGENERATE, NUMBER_COLUMNS, ONE_CLASS, TOO_FEW
from ..settings.measures import MEASURES, RANKING_MEASURES
from .loss import loss_in_fixed_point
from .sums import area_under_min, brier_term, log_loss_term

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
def insert_shifted(
    ring_scores: FloatArray,
    ring_labels: Int8Array,
    head: int,
    held: int,
    scores: FloatArray,
    labels: Int8Array,
    shifts: Int64Array,
) -> None:
    """Put events into a ring, each before so many of the youngest as its shift says."""
    capacity = len(ring_scores)
    for event in range(len(scores)):
        place = (head + held) % capacity
        move_on(ring_scores, place, shifts[event])
        move_on(ring_labels, place, shifts[event])
        place = (place - shifts[event]) % capacity
        ring_scores[place], ring_labels[place] = scores[event], labels[event]
        held += 1


@scanning
def place(
    labels: Int8Array,
    scores: FloatArray,
    chosen: Int64Array,
    ranks: Int64Array,
    negatives: int,
    positives: int,
    placements: FloatArray,
) -> None:
    """Write the placements of chosen events among those of a window and those that come before them.

    The share of the other class on the right side of which an event is, ties half; NaN of none.

    labels, scores       the events that come, in order
    chosen               indices of those to be placed, ascending
    ranks                of each, in the window: events below, positives below, tied, positives tied
    negatives, positives of the window

    O(m^2) moves of neighbours for m events, fast up to some thousands.
    """
    coming = np.empty((2, len(scores)))
    counts = np.zeros(2, np.int64)
    held = np.array([negatives, positives])
    next_chosen = 0
    for event in range(len(scores)):
        if next_chosen == len(chosen):
            return
        label, score = np.int64(labels[event]), scores[event]
        if event == chosen[next_chosen]:
            other = 1 - label
            below, positives_below, tied, positives_tied = ranks[next_chosen]
            others = held[other] + counts[other]
            came = coming[other, : counts[other]]
            first, last = np.searchsorted(came, score), np.searchsorted(came, score, "right")
            if label:
                doubled = 2 * (below - positives_below + first) + tied - positives_tied + last - first
            else:
                above = positives - positives_below - positives_tied + counts[other] - last
                doubled = 2 * above + positives_tied + last - first
            placements[next_chosen] = doubled / (2.0 * others) if others > 0 else np.nan
            next_chosen += 1
        count = counts[label]
        slot = np.searchsorted(coming[label, :count], score)
        for after in range(count, slot, -1):
            coming[label, after] = coming[label, after - 1]
        coming[label, slot] = score
        counts[label] += 1


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
    """Return doubled pairs and both sums of squared doubled ranks (docs/math.md, "AUC and its sums").

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
def lower_hull(negatives: Any, positives: Any, vertices: Int64Array) -> int:
    """Fill vertices with the hull's, as numbers of entries below; return how many there are.

    Vertex v lies at (X, Y) = (events, positives) of the first v entries; 0 and all are always vertices.
    Graham's scan; of counts by integer cross products, so that collinear points are told exactly.
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
def area_of_entries(keys: FloatArray, negatives: Int64Array, positives: Int64Array) -> float:
    """Return AUM (`area_under_min`), in units of score.

    FP and FN cross at the smallest score c with positives <= c at least as many as negatives > c.
    """
    crossing = keys[-1]
    below, above = np.int64(0), negatives.sum()
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
def probability_losses(scores: FloatArray, labels: Int8Array, numbers: FloatArray) -> None:
    """Write the Brier score and the log loss (clipped at 2^-52) of a window of probabilities."""
    brier, log_loss = np.zeros(SUM_CHUNKS, np.int64), np.zeros(SUM_CHUNKS, np.int64)
    for event in range(len(scores)):
        add(brier, brier_term(scores[event], labels[event]), 1)
        add(log_loss, log_loss_term(scores[event], labels[event]), 1)
    numbers[_MEASURE + _BRIER] = rounded(brier) / len(scores)
    numbers[_MEASURE + _LOG_LOSS] = rounded(log_loss) / len(scores)


@scanning
def write_masses(n: Integer, p: Integer, numbers: FloatArray, reasons: Int8Array) -> bool:
    """Write the masses of a window; return whether it has both classes, and say so where it has not."""
    numbers[_WEIGHT] = n + p
    numbers[_POSITIVES] = p
    numbers[_NEGATIVES] = n
    if n + p > 0:
        numbers[_PREVALENCE] = p / (n + p)
        if n == 0 or p == 0:
            for measure in range(RANKING_MEASURES):
                if measure not in (_BRIER, _LOG_LOSS):
                    reasons[measure] = ONE_CLASS
    return bool(n > 0 and p > 0)


@scanning
def write_tree_rows(rows: Any, with_h: int, z: float, numbers: FloatArray, reasons: Int8Array) -> None:
    """Write masses and ranking measures from records of ROW (score_tree/rows.py), one row each.

    The same bits as `scan_window` of the same window: both divide the same whole numbers.
    """
    for index in range(len(rows)):
        row = rows[index]
        n, p = row.negatives, row.positives
        numbers[index, _MEASURE + _BRIER] = row.brier
        numbers[index, _MEASURE + _LOG_LOSS] = row.log_loss
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
    measures[_AUM] = area_of_entries(keys, entry_negatives, entry_positives)
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
    return edges
