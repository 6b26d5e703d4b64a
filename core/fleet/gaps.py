"""Gaps between slices: how far each slice is from the other slices of its group, for all groups of a page.

A group is a model and a column, or a model and columns that slices cross: the slices of a group share no
event. Slices of different columns share events, so they are never compared with each other. `formulas`
defines a gap, its error and Cochran's Q.

The correction
    For a single group, p-values and intervals are those of its roll-up row. But a page shows many groups, and
    names the worst slice of all. So the p-values of gaps are adjusted for all gaps, and the p-values of Q for
    all groups (Holm). The intervals of gaps have Bonferroni's level over all gaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays import FloatArray, Int64Array
from ..compare.significance import holm
from .formulas import Spread, corrected, gaps_of, spread_of


class Gap(NamedTuple):
    """The gap of a slice: its AUC less the inverse-variance mean of the other slices.

    low, high  the interval of the gap, corrected for all gaps
    p          the two-sided p-value of the gap, corrected for all gaps
    """

    gap: float
    low: float
    high: float
    p: float


class GroupSpread(NamedTuple):
    """The differences between the slices of a group.

    The record has the places of the slices, how many slices do not count, and Cochran's Q.

    p  the p-value of Q, corrected for all groups
    """

    places: list[int]
    without: int
    spread: Spread
    p: float


class Gaps(NamedTuple):
    """The gaps of a page.

    of      the gap of each slice, by the place of the slice; None if the slice does not count, or no other
            slice of its group counts
    groups  the groups in which two slices or more count
    """

    of: list[Gap | None]
    groups: dict[Any, GroupSpread]


def gaps_of_groups(auc: FloatArray, variance: FloatArray, groups: Sequence[Any], confidence: float) -> Gaps:
    """Return the gaps of n slices.

    auc, variance  float64[n]. A slice counts if its AUC is finite and its variance above 0
    groups         the group of each slice
    confidence     the confidence of all intervals together

    O(n log n).

    >>> found = gaps_of_groups(np.array([0.9, 0.8]), np.array([0.01, 0.01]), ["a", "a"], 0.95)
    >>> [round(gap.gap, 3) for gap in found.of], round(found.groups["a"].spread.q, 3)
    ([0.1, -0.1], 0.5)
    """
    members: dict[Any, list[int]] = {}
    for place, group in enumerate(groups):
        members.setdefault(group, []).append(place)
    counts = np.isfinite(auc) & (variance > 0)
    kept: list[Int64Array] = []
    parts: list[tuple[FloatArray, FloatArray]] = []
    found: dict[Any, GroupSpread] = {}
    for group, places in members.items():
        chosen = np.array(places, np.int64)[counts[places]]
        if len(chosen) < 2:
            continue
        kept.append(chosen)
        parts.append(gaps_of(auc[chosen], variance[chosen]))
        spread = spread_of(auc[chosen], variance[chosen])
        found[group] = GroupSpread(chosen.tolist(), len(places) - len(chosen), spread, spread.p)
    of: list[Gap | None] = [None] * len(groups)
    if not found:
        return Gaps(of, found)
    gap, error = (np.concatenate(column) for column in zip(*parts, strict=True))
    p, z = corrected(gap, error, confidence)
    low, high = np.maximum(gap - z * error, -1), np.minimum(gap + z * error, 1)
    for place, *numbers in zip(
        np.concatenate(kept).tolist(), *(x.tolist() for x in (gap, low, high, p)), strict=True
    ):
        of[place] = Gap(*numbers)
    of_groups = holm([one.spread.p for one in found.values()]).tolist()
    return Gaps(
        of, {group: one._replace(p=each) for (group, one), each in zip(found.items(), of_groups, strict=True)}
    )
