"""The ranking measures of a weighted window: the counterpart of `ranking` for weights that are real numbers.

The caller keeps the events, and passes each event that enters or leaves, with its weight. The weights of
fading events are inflated (times 2^(i / half-life)); the scale of a row makes its masses small again.

With weights of 1 the rows are equal to those of `scan_window`, up to rounding (1e-12); thresholds are equal.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...arrays import NO_FLOATS, FloatArray, Int8Array
from ...errors import InputError, MissingEventError
from ...measures.at_row import (
    OF_ENTRIES,
    curvature_of,
    h_measure,
    mcclish,
    write_polynomial_auc,
)
from ...rows import slots
from ...rows.columns import NUMBER_COLUMNS
from ...rows.measure_table import MEASURES
from ...rows.reasons import OUT_OF_RANGE
from ...settings.evaluator import PRIORS_OF_WINDOW, EvaluatorSettings
from ...weighted_tree.measures import (
    average_precision,
    calibration_error,
    hull_edges,
    partial_auc,
    probability_losses,
)
from ...weighted_tree.tree import WeightedTree
from ...weighted_tree.tree_rows import NO_EVENTS, NO_ROWS, RAREST, Batch, RowAsk, RowPlan, one_row
from ...weighted_tree.update import MISSING, NEEDS_REBUILD
from ..ranked import z_of

_POLYNOMIAL = frozenset(("polynomial_auc", "polynomial_auc_bound"))
_OF_ENTRIES = OF_ENTRIES | {"brier", "log_loss"}
BELOW_HALF = 0.5 - 2.0**-44
"""The bound below which an AUC is below one half: rounding alone cannot bring an AUC of one half below the
bound.
"""


class Progress(NamedTuple):
    """How far a batch with rows was applied.

    The batch was applied up to its end, or up to a row that needs a rebuild of the tree.
    """

    events: int
    rows: int
    needs_rebuild: bool


class WeightedRanking:
    """A weighted window in score order, current after every event. An event costs O(log k).

    A row costs O(hull), and the update of those parts of the tree that events since the last row changed
    (`WeightedTree`). A row costs O(k) if it has one of these measures: Brier score, log loss, average
    precision, calibration error, partial AUC, AUC by a polynomial, or the H-measure of flipped scores.

    >>> from rocsteady.core.rows.columns import NUMBER_COLUMNS
    >>> ranking = WeightedRanking(EvaluatorSettings(measures=("auc",)))
    >>> labels, scores, weights = np.array([0, 1], np.int8), np.array([0.2, 0.7]), np.array([3.0, 1.0])
    >>> ranking.take_rows(Batch(labels, scores, weights, np.ones(2, np.int8)))
    Progress(events=2, rows=0, needs_rebuild=False)
    >>> numbers, reasons = np.full(len(NUMBER_COLUMNS), np.nan), np.zeros(len(MEASURES), np.int8)
    >>> ranking.write_row(numbers, reasons)
    True
    >>> numbers[:5].tolist()
    [4.0, 1.0, 3.0, 0.25, 1.0]
    """

    def __init__(
        self,
        settings: EvaluatorSettings,
        labels: npt.ArrayLike = (),
        scores: npt.ArrayLike = (),
        weights: npt.ArrayLike = (),
    ) -> None:
        self._set(settings)
        self.tree = WeightedTree(labels, scores, weights)

    def _set(self, settings: EvaluatorSettings) -> None:
        """Set the attributes that the settings of rows decide."""
        self._settings = settings
        self._asked = frozenset(settings.measures or ())
        # with fixed priors, too, the H-measure is a polynomial in an edge
        curvature = curvature_of(dataclasses.replace(settings, priors=PRIORS_OF_WINDOW))
        self._compiled_h = curvature is not None
        self._ask = RowAsk(
            z=z_of(settings),
            h=int(self._compiled_h and "h" in self._asked),
            curvature=curvature or 0.0,
            prior=-1.0 if settings.priors == PRIORS_OF_WINDOW else float(settings.priors),
            area=int("cost_curve_area" in self._asked),
            **settings.points._asdict(),
        )
        self._with_values = settings.with_values
        self._python = bool(self._asked & _OF_ENTRIES or self._with_values) or (
            "h" in self._asked and (settings.flip_if_below_half or not self._compiled_h)
        )

    def take_rows(
        self, batch: Batch, plan: RowPlan = NO_ROWS, placements: FloatArray = NO_FLOATS
    ) -> Progress:
        """Let checked events enter and leave, in order (`WeightedTree.apply`), and write the rows of a plan.

        batch       four contiguous arrays: labels (int8 of 0 and 1), scores (finite float64), weights (finite
                    float64 above 0) and signs (int8 of 1 and -1)
        plan        rows of NaN and 0, filled as `write_row` does, and their scales
        placements  empty, or one for each event: filled with the placement of each entering event among the
                    events before it, NaN if the other class is empty

        The method stops early if a row needs a rebuild of the tree: then call `tree.rebuild` with the events
        that are in the window at that moment, and continue with the rest of the batch. This is one compiled
        call, unless a measure needs Python at each row.
        """
        rows = len(plan.ends)
        if not len(plan.numbers) == len(plan.reasons) == rows:  # a kernel does not check bounds
            raise InputError(
                f"take_rows: {len(plan.numbers)} and {len(plan.reasons)} rows for {rows} ends; give as many"
            )
        if not self._python:
            return self._run(batch, plan, placements)
        done = 0
        for row, end in enumerate(plan.ends.tolist()):
            part = slice(done, end)
            of_row = RowPlan(*(column[row : row + 1] for column in plan))._replace(
                ends=np.array([end - done])
            )
            progress = self._run(Batch(*(column[part] for column in batch)), of_row, placements[part])
            measures = plan.numbers[row, slots.MEASURES :]
            if progress.needs_rebuild or not self._write_in_python(measures, plan.reasons[row]):
                return Progress(end, row, True)
            if not self._write_with_values(of_row):
                return Progress(end, row, True)
            done = end
        self._run(Batch(*(column[done:] for column in batch)), NO_ROWS, placements[done:])
        return Progress(len(batch.scores), rows, False)

    def write_row(
        self, numbers: FloatArray, reasons: Int8Array, scale: float = 1.0, scale_exponent: int = 0
    ) -> bool:
        """Write masses and ranking measures into one row, which is NaN and 0 before.

        Return whether they were written.

        A mass (weight, positives, negatives, aum) is the given mass * scale * 2^scale_exponent. If the result
        is False, call `tree.rebuild` with the events in the window, and then call `write_row` again.
        """
        plan = one_row(numbers, reasons, scale, scale_exponent)
        return not self.take_rows(NO_EVENTS, plan).needs_rebuild

    def to_entries(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the distinct scores, ascending, and the masses of negatives and positives at each score.

        O(k).

        The masses of both classes are in one scale: the scale of the larger exponent.
        """
        entries = self.tree.held_entries()
        negatives, positives = self.tree.in_one_scale(entries["mass"][:, 0], entries["mass"][:, 1])
        return entries["key"].copy(), negatives, positives

    def _run(self, batch: Batch, plan: RowPlan, placements: FloatArray) -> Progress:
        course = np.zeros(2, np.int64)
        code = self.tree.run(batch, self._ask, plan, placements, course)
        done = int(course[0])
        if code == MISSING:
            raise MissingEventError(
                f"take: no event of label {batch.labels[done]} and score {batch.scores[done]} is there to "
                "leave"
            )
        return Progress(done, int(course[1]), code == NEEDS_REBUILD)

    def _write_with_values(self, plan: RowPlan) -> bool:
        """Write the measures that are asked for with values into the row of a plan, after all others.

        Return False if rounding would decide a value, and the tree must be built again.
        """
        for place, each in enumerate(self._with_values, len(MEASURES)):
            other = copy.copy(self)
            other._set(each.settings)
            row, why = np.full((1, len(NUMBER_COLUMNS)), np.nan), np.zeros((1, len(MEASURES)), np.int8)
            alone = plan._replace(ends=np.zeros(1, np.int64), numbers=row, reasons=why)
            if other.take_rows(NO_EVENTS, alone).needs_rebuild:
                return False
            slot = MEASURES.index(each.measure)
            plan.numbers[0, slots.MEASURES + place] = row[0, slots.MEASURES + slot]
            plan.reasons[0, place] = why[0, slot]
        return True

    def _write_in_python(self, measures: FloatArray, reasons: Int8Array) -> bool:
        """Write the measures that need every entry, and the H-measure for costs that are not polynomials.

        Return False, with nothing written, if rounding would decide whether scores are flipped.
        """
        if not len(self.tree):
            return True
        auc, flips = float(measures[slots.AUC]), self._settings.flip_if_below_half
        if flips and not self.tree.is_built and abs(auc - BELOW_HALF) < 2.0**-46:
            return False
        entries = self.to_entries() if self._asked & _OF_ENTRIES else (NO_FLOATS, NO_FLOATS, NO_FLOATS)
        if self._asked & {"brier", "log_loss"}:
            measures[slots.BRIER], measures[slots.LOG_LOSS] = probability_losses(*entries)
        if math.isnan(auc):
            return True
        _, n, p = self.tree.held_hull()
        n, p = self.tree.in_one_scale(n, p)
        in_range = min(n.sum(), p.sum()) >= RAREST
        values = {} if in_range else dict.fromkeys(OF_ENTRIES, math.nan)
        if "h" in self._asked and not in_range and self._ask.prior < 0.0:
            values["h"] = math.nan
        elif "h" in self._asked and flips and auc < BELOW_HALF:
            _, n, p = self.to_entries()
            edges = hull_edges(n[::-1].copy(), p[::-1].copy())["mass"]
            values["h"] = h_measure(edges[:, 0].copy(), edges[:, 1].copy(), self._settings)
        elif "h" in self._asked and not self._compiled_h:
            some = n + p > 0.0
            values["h"] = h_measure(n[some], p[some], self._settings)
        if in_range and self._asked & (OF_ENTRIES - _POLYNOMIAL):
            area = partial_auc(*entries[1:], *self._settings.partial_fpr)
            values |= {
                "average_precision": average_precision(*entries[1:]),
                "calibration_error": calibration_error(*entries),
                "partial_auc": area,
                "partial_auc_mcclish": mcclish(area, *self._settings.partial_fpr),
            }
        if in_range and self._asked & _POLYNOMIAL:
            write_polynomial_auc(*entries, measures, reasons)
        for name in values.keys() & self._asked:
            column, value = MEASURES.index(name), values[name]
            measures[column] = value if math.isfinite(value) else math.nan
            reasons[column] = reasons[column] if math.isfinite(value) else OUT_OF_RANGE
        return True
