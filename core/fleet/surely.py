"""Names the members whose AUC is surely below their bound now.

The names come from e-BH over the evidence in the members' rows.

A member's evidence is log M. While the member's AUC is the bound or more, E[M] <= n after n blocks
(evidence/below.py). So M / n is an e-value: the mean of M / n is 1 or less. A row does not give n, but the
mean number of events of a full block, `block_events`, and the number of all events, `seq`. n is at most seq /
block_events, so M block_events / seq is an e-value, too.

e-BH (Wang & Ramdas 2022) names the k members with the greatest e-values. Let K be the number of members with
an e-value; then k is the greatest number for which the k-th greatest e-value is K / (alpha k) or more. Then
at most a share alpha of the named members is named wrongly, in the mean, for any dependence between members.
This holds for each grid point alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays import FloatArray

SURELY = ("members_surely_below", "surely_below")


def log_e_values(evidence: FloatArray, block_events: FloatArray, events: FloatArray) -> FloatArray:
    """Return the logarithm of each member's e-value; NaN if a member has no evidence. O(n)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        values: FloatArray = evidence + np.log(block_events / events)
    return np.where(np.isfinite(values), values, math.nan)


def surely_columns(names: Sequence[str], log_e: FloatArray, confidence: float) -> dict[str, Any]:
    """Return the columns `SURELY` of a group; null if no member has evidence. O(K log K).

    names       the names of the members
    log_e       float64[n], of `log_e_values`
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
