"""What of a window is a sum over its events, term by term: the terms, and what their exact sums say.

Scans and trees share these, so a sum has the same bits whichever made it (kernels/exact_sums.py): a term is a
double that follows from its event alone, and the sum of the terms is rounded once.
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
    """Return -ln of the probability given to what happened, clipped at 2^-52."""
    right = score if label != 0 else 1.0 - score
    return -np.log(max(right, 2.0**-52))


@kernel
def area_under_min(sums: Any, positives_below: Integer, negatives_above: Integer, crossing: float) -> float:
    """Return the area under min(FP, FN) over thresholds, AUM (Hocking & Hillman 2021), correctly rounded.

    FP and FN cross at the score of the N-th lowest of all events, N the number of negatives: below it every
    positive adds its distance, above it every negative.

    sums             scores of the negatives above the crossing, less those of the positives below it
    positives_below  how many of these there are,
    negatives_above  and how many of those
    """
    if np.isinf(crossing):
        return np.inf if positives_below + negatives_above > 0 else 0.0
    excess = positives_below - negatives_above
    add_times(sums, crossing, excess)
    area = rounded(sums)
    add_times(sums, crossing, -excess)
    return area
