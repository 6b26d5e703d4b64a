"""Which members are surely below their bound now: e-BH over the evidence in the members' rows.

A member's evidence is log M, and E[M] <= n after n blocks while its AUC is the bound or more
(evidence/below.py). So M / n is an e-value: its mean is 1 or less. A row does not say n, but the events of a
full block in the mean and all events, `seq`. n is at most seq / block_events, so M block_events / seq is an
e-value, too.

e-BH (Wang & Ramdas 2022) names the k members with the greatest e-values, k the greatest number for which the
k-th of them is K / (alpha k) or more, K the number of members with an e-value. Then at most a share alpha of
those named is named wrongly, in the mean, whatever the members have in common. Each grid point is a choice
of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays import FloatArray

SURELY = ("members_surely_below", "surely_below")


def log_e_values(evidence: FloatArray, block_events: FloatArray, events: FloatArray) -> FloatArray:
    """Return the logarithm of each member's e-value; NaN without evidence. O(n)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        values: FloatArray = evidence + np.log(block_events / events)
    return np.where(np.isfinite(values), values, math.nan)


def surely_columns(names: Sequence[str], log_e: FloatArray, confidence: float) -> dict[str, Any]:
    """Return `SURELY` of a group; null if no member has evidence. O(K log K).

    names       the members
    log_e       float64[n] of `log_e_values`
    confidence  1 less the greatest share of wrong names, in the mean

    >>> surely_columns(["a", "b", "c"], np.array([0.0, 9.0, 4.2]), 0.95)
    {'members_surely_below': 2, 'surely_below': 'b, c'}
    """
    known = np.flatnonzero(~np.isnan(log_e))
    if not len(known):
        return dict.fromkeys(SURELY)
    order = known[np.argsort(-log_e[known], kind="stable")]
    needed = math.log(len(known)) - math.log(1 - confidence) - np.log(np.arange(1, len(known) + 1))
    enough = np.flatnonzero(log_e[order] >= needed)
    count = int(enough[-1]) + 1 if len(enough) else 0
    return dict(zip(SURELY, (count, ", ".join(names[place] for place in order[:count])), strict=True))
