"""Measures that are sums over the window's events: their terms, and the measures from exact sums of terms.

Scans and trees share these functions, so their sums have the same bits (kernels/exact_sums.py). A term is a
double that depends on its event alone, and the sum of the terms is rounded once.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.compile import Integer, inlined, kernel
from ..kernels.exact_sums import add_times, rounded

AREA, BRIER, LOG_LOSS = range(3)
WINDOW_SUMS = 3
"""The sums of a window, each a row of an array of this length: AREA for AUM, and two losses."""


@inlined
def brier_term(score: float, label: int) -> float:
    """Return an event's squared error."""
    error = score - label
    return error * error


@inlined
def log_loss_term(score: float, label: int) -> float:
    """Return -ln of the probability that the score gave to the label, clipped at 2^-52."""
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
