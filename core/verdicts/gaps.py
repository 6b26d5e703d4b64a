"""Gaps: the AUC of a slice less that of the other events of its model, in the latest windows.

The other slices of the same columns hold the model's other events. Their AUCs are averaged with inverse
variances. The AUC of a slice and the mean of the others come from different events, so the variance of the
gap is the sum of their variances. Each model has a gap for every slice; the p-value is Holm's over all gaps
of a page (Holm 1979), which holds whatever the dependence between gaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from ..arrays import FloatArray
from ..compare.significance import holm
from ..settings.table import parse_slice


class Gap(NamedTuple):
    """The gap of a slice: its AUC less that of the other slices, the standard error, Holm's p-value."""

    gap: float
    error: float
    p: float


def columns_of(slice_text: str) -> tuple[str, ...]:
    """Return the names of the columns that a slice crosses; a text that names no slice is one column.

    >>> columns_of("country=NZ,device=phone"), columns_of("country=")
    (('country', 'device'), ('country',))
    """
    try:
        return tuple(name for name, _ in parse_slice(slice_text))
    except ValueError:
        return (slice_text,)


def gaps_of(auc: FloatArray, variance: FloatArray, groups: Sequence[object]) -> list[Gap | None]:
    """Return the gap of each slice to the others of its group; None for a slice without others.

    auc, variance  of the latest window of each slice, NaN = not to be compared
    groups         the model and columns of each slice, of any hashable type

    O(n log n).
    """
    numbers: dict[object, int] = {}
    group = np.array([numbers.setdefault(one, len(numbers)) for one in groups], np.int64)
    known = np.isfinite(auc) & (variance > 0)
    weight = np.where(known, 1 / np.where(known, variance, 1), 0.0)
    value = np.where(known, auc, 0.0)
    total = np.bincount(group, weight, len(numbers))[group] - weight
    others = np.bincount(group, weight * value, len(numbers))[group] - weight * value
    judged = known & (np.bincount(group, known, len(numbers))[group] > 1)
    mean = others / np.where(judged, total, 1)
    gap = np.where(judged, value - mean, np.nan)
    error = np.sqrt(np.where(judged, variance, 1) + 1 / np.where(judged, total, 1))
    p = np.full(len(gap), np.nan)
    p[judged] = holm(2 * ndtr(-np.abs(gap[judged]) / error[judged]))
    return [
        Gap(*found) if there else None
        for found, there in zip(
            zip(gap.tolist(), error.tolist(), p.tolist(), strict=True), judged, strict=True
        )
    ]
