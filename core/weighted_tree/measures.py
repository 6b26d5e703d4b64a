"""Measures of a weighted window that need its entries one by one: O(k) for each row that asks.

Entries are distinct scores, ascending, with the masses of negatives and of positives, in one scale. Each
function divides by masses of the same kind, so that the scale cancels. The definitions are those of
`measures.scan`, whose functions count whole events.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import FloatArray
from ..kernels.compile import scanning
from ..kernels.records import empty_records, whole
from .layout import EDGE
from .sums import push_edge


@scanning
def average_precision(negatives: FloatArray, positives: FloatArray) -> float:
    """Return the sum over thresholds of (rise in recall) * precision; tied scores are one threshold."""
    area = true_positives = predicted = 0.0
    for entry in range(len(negatives) - 1, -1, -1):
        true_positives += positives[entry]
        predicted += positives[entry] + negatives[entry]
        if positives[entry] > 0.0:
            area += positives[entry] * (true_positives / predicted)
    return area / true_positives


@scanning
def pooled_edges(negatives: FloatArray, positives: FloatArray, edges: Any) -> int:
    """Fill records of EDGE with the hull of entries; return the number of edges.

    The key of an edge is the number of its first entry.
    """
    count = whole(0)
    for entry in range(len(negatives)):
        count = push_edge(edges, count, float(entry), negatives[entry], positives[entry])
    return count


@scanning
def error_of_blocks(
    scores: FloatArray, negatives: FloatArray, positives: FloatArray, edges: Any, count: int
) -> float:
    """Return the sum over blocks of (share of mass) * |mean score - share of positives|."""
    error = total = 0.0
    for block in range(count):
        begin = int(edges[block].key)
        end = int(edges[block + 1].key) if block + 1 < count else len(scores)
        difference = 0.0
        for entry in range(begin, end):
            difference += scores[entry] * negatives[entry] + (scores[entry] - 1.0) * positives[entry]
            total += negatives[entry] + positives[entry]
        error += abs(difference)
    return error / total


def hull_edges(negatives: FloatArray, positives: FloatArray) -> Any:
    """Return the hull's edges as records of EDGE, whose keys are the entries' numbers. O(k)."""
    edges = empty_records(len(negatives), EDGE)
    return edges[: pooled_edges(negatives, positives, edges)]


def calibration_error(scores: FloatArray, negatives: FloatArray, positives: FloatArray) -> float:
    """Return the expected calibration error over the blocks of the isotonic calibration. O(k).

    >>> calibration_error(np.array([0.2, 0.9]), np.array([3.0, 1.0]), np.array([1.0, 3.0]))
    0.1
    """
    edges = hull_edges(negatives, positives)
    return float(error_of_blocks(scores, negatives, positives, edges, len(edges)))


@scanning
def probability_losses(
    scores: FloatArray, negatives: FloatArray, positives: FloatArray
) -> tuple[float, float]:
    """Return the Brier score and the log loss (clipped at 2^-52), as means over the mass."""
    brier = log_loss = total = 0.0
    for entry in range(len(scores)):
        score, n, p = scores[entry], negatives[entry], positives[entry]
        brier += n * (score * score) + p * ((1.0 - score) * (1.0 - score))
        log_loss -= n * np.log(max(1.0 - score, 2.0**-52)) + p * np.log(max(score, 2.0**-52))
        total += n + p
    return brier / total, log_loss / total


@scanning
def partial_auc(negatives: FloatArray, positives: FloatArray, low: float, high: float) -> float:
    """Return the area under the ROC curve between two FPRs, in [0, high - low].

    The curve is linear between ROC points. O(k). 0 <= low < high <= 1.
    """
    n, p = negatives.sum(), positives.sum()
    area = false_positives = true_positives = 0.0
    for entry in range(len(negatives) - 1, -1, -1):
        if negatives[entry] > 0.0:
            width = negatives[entry] / n
            left = false_positives / n
            begin, end = max(low, left), min(high, left + width)
            if begin < end:
                middle = ((begin + end) / 2.0 - left) / width
                area += (end - begin) * ((true_positives + middle * positives[entry]) / p)
        false_positives += negatives[entry]
        true_positives += positives[entry]
    return area
