"""Measures that are sums over the window's events or hull edges: the terms, and the measures from exact sums.

Scans and trees share these functions, so their sums have the same bits. The term of an event is a double that
depends on the event alone, and the sum of the terms is rounded once (kernels/exact_sums.py). The term of a
hull edge is its loss in fixed point, a whole number.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.compile import Integer, inlined, kernel
from ..kernels.exact_sums import add_times, rounded
from ..kernels.records import whole

AREA, BRIER, LOG_LOSS = range(3)
WINDOW_SUMS = 3
"""The sums of a window are the rows of an array of this length: AREA for AUM, and two losses."""


@inlined
def brier_term(score: float, label: int) -> float:
    """Return an event's squared error, its part of the Brier score."""
    error = score - label
    return error * error


@inlined
def log_loss_term(score: float, label: int) -> float:
    """Return -ln of the probability that the score gives to the label, clipped at 2^-52."""
    right = score if label != 0 else 1.0 - score
    return -np.log(max(right, 2.0**-52))


@kernel
def area_under_min(sums: Any, positives_below: Integer, negatives_above: Integer, crossing: float) -> float:
    """Return the area under min(FP, FN) over thresholds, AUM (Hocking & Hillman 2021), correctly rounded.

    FP and FN cross at the N-th lowest score of all events, N the number of negatives. Every positive below
    the crossing, and every negative above it, adds its distance from the crossing.

    sums             exact sum of the scores of negatives above the crossing, less those of positives below
    positives_below  number of positives below the crossing
    negatives_above  number of negatives above the crossing
    """
    if np.isinf(crossing):
        return np.inf if positives_below + negatives_above > 0 else 0.0
    excess = positives_below - negatives_above
    add_times(sums, crossing, excess)
    area = rounded(sums)
    add_times(sums, crossing, -excess)
    return area


def fixed_point_scale(capacity: int) -> float:
    """Return the greatest power of two up to 2^61 / capacity: the sum of all losses stays below 2^59."""
    return float(2 ** (61 - max(1, int(capacity - 1).bit_length())))


LEAST_CAPACITY = 1024
"""The capacity with which a tree without a window size starts; it doubles when the tree is full."""


@inlined
def scale_of_weight(weight: int) -> float:
    """Return the fixed-point scale of a tree that never held more than `weight` events."""
    scale = 2.0**61 / LEAST_CAPACITY
    room = whole(LEAST_CAPACITY)
    while room < weight:
        room *= 2
        scale *= 0.5
    return scale


@inlined
def loss_in_fixed_point(dx: Integer, dy: Integer, curvature: float, scale: float) -> int:
    """Return the loss of a hull edge in fixed point: h(n, p) of Hand's measure, n = dx - dy, p = dy.

    With t = n + p and w = n p / t, h is w / 2 for the cost density Beta(1, 1) (curvature 0), and
    w (1 + w / t) / 2 for Beta(2, 2) (curvature 1).
    """
    inverse = 1.0 / dx
    w = dy * (dx - dy) * inverse
    return whole(0.5 * w * (1.0 + curvature * w * inverse) * scale)
