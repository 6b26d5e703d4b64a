"""Measures that are computed again at every row that needs them, from the window's entries and its hull.

All forms of a window use these functions, so that their rows are equal. Entries are distinct scores,
ascending, with their negatives and positives. The hull is given by the (negatives, positives) of its edges,
from the lowest scores up (`lower_hull`). Measures of the hull take O(hull), measures of the entries O(k). The
module separates the two: a tree keeps its hull, but must walk through all its nodes for the entries.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from ..arrays import FloatArray, Int8Array, Int64Array
from ..kernels.compile import Integer, scanning
from ..kernels.exact_sums import SUM_CHUNKS, add, add_times, clear, rounded
from ..rows import slots
from ..rows.measure_table import MEASURE_TABLE
from ..rows.reasons import CONSTANT_SCORES
from ..settings.costs import SeverityCost
from ..settings.evaluator import PRIORS_OF_WINDOW, EvaluatorSettings
from .polynomial_estimate import polynomial_auc_of
from .scan import lower_hull

OF_ENTRIES = frozenset(measure.name for measure in MEASURE_TABLE if "entries" in measure.reads)
"""The names of the measures that need the window's entries, O(k) a row."""

OF_HULL = frozenset(measure.name for measure in MEASURE_TABLE if "hull" in measure.reads)
"""The names of the measures that need the window's hull. The hull has about 1.3 k^(1/3) edges for k events on
smooth curves.
"""

Entries = tuple[FloatArray, Int64Array, Int64Array]
"""Distinct scores, ascending, with their negatives and positives."""

Edges = tuple[Int64Array, Int64Array]
"""Negatives and positives of the hull's edges, from the lowest scores up."""

_NO_ENTRIES: Entries = (np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))


class AtRow(NamedTuple):
    """The measures that are computed at the row, because a tree does not keep them current, as flags.

    h        H is asked for and must be summed over hull edges, because its cost density is not kept in fixed
             point or changes with the window.
    flips    H is asked for, and is a sum over hull edges of the flipped scores if the AUC is below one half.
    hull     A measure of `OF_HULL`, or H by `h`, is asked for.
    entries  A measure of `OF_ENTRIES` is asked for.
    """

    h: bool
    flips: bool
    hull: bool
    entries: bool

    @property
    def anything(self) -> bool:
        """Whether any measure must be computed at the row."""
        return self.flips or self.hull or self.entries


def made_at_row(settings: EvaluatorSettings) -> AtRow:
    """Return which of the measures in these settings are computed at the row. A pure function."""
    asked = settings.measures or ()
    h = "h" in asked and curvature_of(settings) is None
    return AtRow(
        h=h,
        flips="h" in asked and settings.flip_if_below_half,
        hull=h or not OF_HULL.isdisjoint(asked),
        entries=not OF_ENTRIES.isdisjoint(asked),
    )


def curvature_of(settings: EvaluatorSettings) -> float | None:
    """Return the curvature of a cost density whose loss is kept in fixed point; None for other densities.

    The densities with a curvature are Beta(2, 2) and Beta(1, 1) with the window's own priors. Their loss is a
    sum over hull edges, and the term of an edge does not depend on the rest of the window.
    """
    if settings.priors != PRIORS_OF_WINDOW or isinstance(settings.cost, SeverityCost):
        return None
    return {(2.0, 2.0): 1.0, (1.0, 1.0): 0.0}.get(settings.cost.beta(0.5))


def write_at_row(
    settings: EvaluatorSettings,
    wanted: AtRow,
    asked: Int8Array,
    edges: Edges,
    entries: Callable[[], Entries],
    numbers: FloatArray,
    reasons: Int8Array,
) -> None:
    """Write the measures that are computed at the row into a row of `Rows.numbers` that has its AUC.

    The window must have both classes. `edges` may be empty if `wanted` needs no hull. `entries` is called at
    most once, if entries are needed.
    """
    measures = numbers[slots.MEASURES :]
    flips = wanted.flips and bool(measures[slots.AUC] < 0.5)
    held = entries() if wanted.entries or flips else _NO_ENTRIES
    if flips or wanted.h:
        measures[slots.H] = h_measure(*(edges_of_flipped(held) if flips else edges), settings)
    if wanted.entries or asked[slots.COST_CURVE_AREA]:
        n, p = numbers[2], numbers[1]
        write_measures(*held, *edges, int(n), int(p), *settings.partial_fpr, asked, measures)
    if asked[slots.POLYNOMIAL_AUC] or asked[slots.POLYNOMIAL_AUC_BOUND]:
        write_polynomial_auc(held[0], held[1].astype(float), held[2].astype(float), measures, reasons)


def write_polynomial_auc(
    scores: FloatArray,
    negatives: FloatArray,
    positives: FloatArray,
    measures: FloatArray,
    reasons: Int8Array,
) -> None:
    """Write AUC by a polynomial, and its bound, of entries with both classes; null for a single entry."""
    found = polynomial_auc_of(scores, negatives, positives)
    if found.auc is None or found.bound is None:
        reasons[[slots.POLYNOMIAL_AUC, slots.POLYNOMIAL_AUC_BOUND]] = CONSTANT_SCORES
        return
    measures[slots.POLYNOMIAL_AUC], measures[slots.POLYNOMIAL_AUC_BOUND] = found.auc, found.bound


@scanning
def write_measures(
    keys: FloatArray,
    negatives: Int64Array,
    positives: Int64Array,
    edge_negatives: Int64Array,
    edge_positives: Int64Array,
    n: Integer,
    p: Integer,
    low: float,
    high: float,
    asked: Int8Array,
    measures: FloatArray,
) -> None:
    """Write the measures that `asked` names, for a window with n negatives and p positives.

    low, high: the range of FPR of the partial AUC.
    """
    if asked[slots.COST_CURVE_AREA]:
        measures[slots.COST_CURVE_AREA] = cost_curve_area(edge_negatives, edge_positives, n, p)
    if asked[slots.AVERAGE_PRECISION]:
        measures[slots.AVERAGE_PRECISION] = average_precision(negatives, positives, p)
    if asked[slots.CALIBRATION_ERROR]:
        measures[slots.CALIBRATION_ERROR] = calibration_error(
            keys, negatives, positives, edge_negatives, edge_positives
        )
    if asked[slots.PARTIAL_AUC] or asked[slots.PARTIAL_AUC_MCCLISH]:
        area = partial_auc(negatives, positives, n, p, low, high)
        measures[slots.PARTIAL_AUC] = area
        measures[slots.PARTIAL_AUC_MCCLISH] = mcclish(area, low, high)


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
    edge_negatives: Int64Array,
    edge_positives: Int64Array,
) -> float:
    """Return the sum over PAV blocks of share of events * |mean score - share of positives|.

    A block is an edge of the hull. It adds |sum of its scores - positives| / events. Each such difference is
    rounded once, and so is the sum of all blocks.
    """
    block_sum, error = np.zeros(SUM_CHUNKS, np.int64), np.zeros(SUM_CHUNKS, np.int64)
    events = np.int64(0)
    entry = 0
    for edge in range(len(edge_negatives)):
        clear(block_sum)
        add_times(block_sum, 1.0, -edge_positives[edge])
        rest = edge_negatives[edge] + edge_positives[edge]
        events += rest
        while rest > 0:
            tied = negatives[entry] + positives[entry]
            add_times(block_sum, keys[entry], tied)
            rest -= tied
            entry += 1
        add(error, abs(rounded(block_sum)), 1)
    return rounded(error) / events


@scanning
def partial_auc(
    negatives: Int64Array, positives: Int64Array, n: Integer, p: Integer, low: float, high: float
) -> float:
    """Return the area under the ROC curve between two FPRs, ties as one segment, in [0, high - low].

    Segments within the range are counted in whole pairs. A segment cut by an end of the range adds the
    trapezoid of its part inside.
    """
    start, end = low * n, high * n
    pairs2 = true_positives = false_positives = np.int64(0)
    ends = 0.0
    for entry in range(len(negatives) - 1, -1, -1):
        width, rise = negatives[entry], positives[entry]
        if width > 0 and false_positives < end and false_positives + width > start:
            if false_positives >= start and false_positives + width <= end:
                pairs2 += width * (2 * true_positives + rise)
            else:
                left = max(start - false_positives, 0.0)
                right = min(end - false_positives, float(width))
                ends += (right - left) * (true_positives + rise * ((left + right) / (2.0 * width)))
        false_positives += width
        true_positives += rise
    return float((pairs2 / 2.0 + ends) / (float(n) * float(p)))


@scanning
def mcclish(area: float, low: float, high: float) -> float:
    """Return a partial AUC on the scale where chance is 1/2 and the greatest area 1 (McClish 1989)."""
    chance = (high - low) * (high + low) / 2.0
    return 0.5 * (1.0 + (area - chance) / (high - low - chance))


def edges_of_flipped(entries: Entries) -> Edges:
    """Return the hull edges of the window with all scores negated."""
    negatives, positives = (counts[::-1].copy() for counts in entries[1:])
    vertices = np.empty(len(negatives) + 1, np.int64)
    starts = vertices[: lower_hull(negatives, positives, vertices) - 1]
    return np.add.reduceat(negatives, starts), np.add.reduceat(positives, starts)


def h_measure(
    edge_negatives: Int64Array | FloatArray,
    edge_positives: Int64Array | FloatArray,
    settings: EvaluatorSettings,
) -> float:
    """Return the H-measure of a hull, given by the (negatives, positives) of its edges.

    Every edge adds h(n, p) = n G0(c) + p G1(c), c = p / (n + p). H = 1 - (sum of h(n, p) over edges) / h(N,
    P). If the settings have fixed priors, these weigh the classes. O(edges). Hand 2009; Hand &
    Anagnostopoulos 2014; Tatti 2021.
    """
    n, p = edge_negatives.astype(np.float64), edge_positives.astype(np.float64)
    prevalence = p.sum() / (n.sum() + p.sum())
    if settings.priors != PRIORS_OF_WINDOW:
        prevalence = settings.priors
        n, p = n * ((1.0 - prevalence) / n.sum()), p * (prevalence / p.sum())
    if isinstance(settings.cost, SeverityCost) and not 0.0 < prevalence < 1.0:
        return math.nan
    a, b = settings.cost.beta(float(prevalence))
    with np.errstate(all="ignore"):  # extreme costs make NaN, which becomes null with a reason
        losses = minimum_loss(n, p, a, b)
        whole = float(minimum_loss(np.array([n.sum()]), np.array([p.sum()]), a, b)[0])
    return 1.0 - math.fsum(losses) / whole if whole > 0.0 else math.nan


def minimum_loss(n: FloatArray, p: FloatArray, a: float, b: float) -> FloatArray:
    """Return h(n, p) of every edge under Beta(a, b) costs: the edge's part of the least possible loss."""
    c = p / (n + p)
    if a == b == 2.0:
        return np.asarray(n * c * (1.0 + c * (1.0 - c)) / 2.0)
    if a == b == 1.0:
        return np.asarray(n * c / 2.0)
    betainc = scipy.special.betainc  # imported by this first use
    return np.asarray(
        n * (a / (a + b) * betainc(a + 1.0, b, c)) + p * (b / (a + b) * betainc(b + 1.0, a, 1.0 - c))
    )
