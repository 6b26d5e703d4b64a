"""What the settings say of a ranking and of its rows: the base of `SortedRanking` and `TreeRanking`."""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy

from ..arrays import FloatArray, Int8Array, Int64Array
from ..measures.at_row import AtRow, curvature_of, made_at_row
from ..measures.sorted import place
from ..rows import slots
from ..rows.columns import NUMBER_COLUMNS
from ..rows.measure_table import MEASURES
from ..settings.evaluator import EvaluatorSettings

_STRIDE_OF_GRID = 100

_Z = 1.959963984540054
"""The normal quantile of the default confidence: `scipy.special` takes .1 s of processor time to import."""


def stride_of(settings: EvaluatorSettings) -> int:
    """Return the number of events between rows; for rows on a grid of times, a guess."""
    return settings.every.events or _STRIDE_OF_GRID


def z_of(settings: EvaluatorSettings) -> float:
    """Return the normal quantile of the AUC interval: its half-width in standard errors."""
    if settings.confidence == EvaluatorSettings.confidence:
        return _Z
    return float(scipy.special.ndtri(0.5 + settings.confidence / 2.0))


@functools.lru_cache(maxsize=64)
def asked_of_rows(settings: EvaluatorSettings) -> tuple[Int8Array, float, float | None]:
    """Return flags of the measures asked for, `z_of` and `curvature_of`; cached, for models to share."""
    asked = np.array([name in (settings.measures or ()) for name in MEASURES], np.int8)
    return asked, z_of(settings), curvature_of(settings)


class Ranked:
    """What the settings say of the rows of a ranking, and the placements of coming events."""

    _settings: EvaluatorSettings
    _at_row: AtRow
    _asked: Int8Array
    _z: float
    _curvature: float | None
    _with_values: Sequence[tuple[int, dict[str, Any]]]

    def __init__(self, settings: EvaluatorSettings) -> None:
        vars(self).update(self._under(settings))

    @classmethod
    @functools.lru_cache(maxsize=128)
    def _under(cls, settings: EvaluatorSettings) -> dict[str, Any]:
        """Return the attributes that the settings of rows decide; cached, for models to share."""
        asked, z, curvature = asked_of_rows(settings)
        return {
            "_settings": settings, "_at_row": made_at_row(settings), "_asked": asked, "_z": z,
            "_curvature": curvature,
            "_with_values": [
                (MEASURES.index(each.measure), cls._under(each.settings)) for each in settings.with_values
            ],
        }  # fmt: skip

    def _write_with_values(self, numbers: FloatArray, reasons: Int8Array) -> None:
        """Write the measures that are asked for with values of their own into one row."""
        for at, (slot, attributes) in enumerate(self._with_values, len(MEASURES)):
            other = copy.copy(self)
            vars(other).update(attributes)
            row, why = np.full(len(NUMBER_COLUMNS), np.nan), np.zeros(len(MEASURES), np.int8)
            other.write_row(row, why)
            numbers[slots.MEASURES + at], reasons[at] = row[slots.MEASURES + slot], why[slot]

    def write_row(self, numbers: FloatArray, reasons: Int8Array) -> None:
        """Write the window's measures now into one row; the window makes infinite measures null."""
        raise NotImplementedError

    def placements_ahead(self, labels: Int8Array, scores: FloatArray, chosen: Int64Array) -> FloatArray:
        """Return the placement values of the `chosen` events, if all events enter and no event leaves.

        docs/architecture/math.md, "Placement values", defines placement values. NaN for an event if the other
        class is empty. The cost of `_ranks` and of `place`.

        chosen  indices, ascending
        """
        placements = np.empty(len(chosen))
        place(labels, scores, chosen, *self._ranks(scores[chosen]), placements)
        return placements

    def _ranks(self, scores: FloatArray) -> tuple[Int64Array, int, int]:
        """Return the ranks of scores in the window (`ScoreTree.ranks`), and its negatives and positives."""
        raise NotImplementedError
