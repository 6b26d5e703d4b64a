"""The ranking measures of a weighted window: the counterpart of `ranking` for real weights.

The caller holds the events, and passes each event that enters or leaves, with its weight. Weights of fading
events are inflated (2^(i / half-life)); the scale of a row reduces its masses again.

With weights of 1 the rows are those of `scan_window`, to rounding (1e-12), thresholds equal.
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...arrays import FloatArray, Int8Array, Int64Array
from ...errors import InputError, MissingEventError
from ...measures.at_row import h_measure, write_polynomial_auc
from ...rows.columns import NUMBER_COLUMNS, OUT_OF_RANGE
from ...settings.costs import SeverityCost
from ...settings.evaluator import PRIORS_OF_WINDOW, EvaluatorSettings
from ...settings.measures import MEASURES
from ...weighted_tree.measures import (
    average_precision,
    calibration_error,
    hull_edges,
    partial_auc,
    probability_losses,
)
from ...weighted_tree.rows import RAREST, Batch, RowAsk, RowPlan
from ...weighted_tree.tree import WeightedTree
from ...weighted_tree.update import MISSING, NEEDS_REBUILD
from ..ranking import z_of

_MEASURE = len(NUMBER_COLUMNS) - len(MEASURES)
_AUC, _H = MEASURES.index("auc"), MEASURES.index("h")
_BRIER, _LOG_LOSS = MEASURES.index("brier"), MEASURES.index("log_loss")
_NO_FLOATS: FloatArray = np.empty(0)
_NO_EVENTS = Batch(np.empty(0, np.int8), np.empty(0), np.empty(0), np.empty(0, np.int8))
_AT_ENTRIES = frozenset(("average_precision", "calibration_error", "partial_auc", "partial_auc_mcclish"))
_POLYNOMIAL = frozenset(("polynomial_auc", "polynomial_auc_bound"))
BELOW_HALF = 0.5 - 2.0**-44
"""An AUC below this bound is below one half, and not one half after rounding."""
_OF_ENTRIES = _AT_ENTRIES | _POLYNOMIAL | {"brier", "log_loss"}


class Progress(NamedTuple):
    """The progress in a batch with rows: to its end, or to a row that needs all events summed anew."""

    events: int
    rows: int
    needs_rebuild: bool


class Scaled(NamedTuple):
    """Entries with the masses of both classes in one scale, that of the larger exponent."""

    scores: FloatArray
    negatives: FloatArray
    positives: FloatArray


class WeightedRanking:
    """A weighted window in score order, current after every event. O(log k) an event.

    A row costs O(hull), and the update of the parts of the tree that events since the last row changed
    (`WeightedTree`). It costs O(k) with the Brier score, log loss, average precision, calibration error, AUC
    over a part or by a polynomial, and H of flipped scores.

    >>> ranking = WeightedRanking(EvaluatorSettings(measures=("auc",)))
    >>> label, score, weight = np.array([0, 1], np.int8), np.array([0.2, 0.7]), np.array([3.0, 1.0])
    >>> ranking.take(label, score, weight, np.ones(2, np.int8))
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
        self._settings = settings
        self._asked = frozenset(settings.measures or ())
        self._compiled_h, curvature = _compiled_h(settings)
        self._ask = RowAsk(
            z=z_of(settings),
            h=int(self._compiled_h and "h" in self._asked),
            curvature=curvature,
            prior=-1.0 if settings.priors == PRIORS_OF_WINDOW else float(settings.priors),
            area=int("cost_curve_area" in self._asked),
            fpr=settings.at_fpr,
            cost=settings.false_positive_cost,
        )
        self._python = bool(self._asked & _OF_ENTRIES) or (
            "h" in self._asked and (settings.flip_if_below_half or not self._compiled_h)
        )
        self.tree = WeightedTree(labels, scores, weights)

    def take(self, labels: Int8Array, scores: FloatArray, weights: FloatArray, signs: Int8Array) -> None:
        """Let checked events enter (sign 1) and leave (-1), in order; see `WeightedTree.apply`.

        Contiguous int8 of 0 and 1, finite float64, finite float64 above 0, int8 of 1 and -1.
        """
        self._run(Batch(labels, scores, weights, signs), _NO_PLAN, _NO_FLOATS)

    def take_rows(
        self,
        labels: Int8Array,
        scores: FloatArray,
        weights: FloatArray,
        signs: Int8Array,
        ends: Int64Array,
        numbers: FloatArray,
        reasons: Int8Array,
        scales: FloatArray | None = None,
        exponents: Int64Array | None = None,
        placements: FloatArray = _NO_FLOATS,
    ) -> Progress:
        """Do as `take`, and write a row after each of `ends` events, ascending, of the batch.

        numbers, reasons   one row of NaN and 0 for each of `ends`, filled as `write_row` does
        scales, exponents  of each row, see `write_row`
        placements         empty, or one for each event: filled with the placement of each entering event
                           among the events before it, NaN if the other class is empty

        Stops early if a row needs all events summed anew: call `rebuild` with the events held by then, and
        continue with the rest of the batch. One compiled call, unless a measure needs Python at each row.
        """
        rows = len(ends)
        if not len(numbers) == len(reasons) == rows:
            raise InputError(
                f"take_rows: {len(numbers)} and {len(reasons)} rows for {rows} ends; give as many"
            )
        plan = RowPlan(
            ends,
            np.ones(rows) if scales is None else scales,
            np.zeros(rows, np.int64) if exponents is None else exponents,
            numbers,
            reasons,
        )
        batch = Batch(labels, scores, weights, signs)
        if not self._python:
            return self._run(batch, plan, placements)
        done = 0
        for row, end in enumerate(ends.tolist()):
            self._run(Batch(*(column[done:end] for column in batch)), _NO_PLAN, placements[done:end])
            done = end
            if not self.write_row(numbers[row], reasons[row], plan.scales[row], int(plan.exponents[row])):
                return Progress(done, row, True)
        self._run(Batch(*(column[done:] for column in batch)), _NO_PLAN, placements[done:])
        return Progress(len(scores), rows, False)

    def write_row(
        self, numbers: FloatArray, reasons: Int8Array, scale: float = 1.0, scale_exponent: int = 0
    ) -> bool:
        """Write masses and ranking measures into one row of NaN and 0; return whether they were written.

        A mass (weight, positives, negatives, aum) is that of the weights given * scale * 2^scale_exponent.
        False: call `rebuild` with the events held, then call `write_row` again.
        """
        plan = RowPlan(
            np.zeros(1, np.int64),
            np.array([scale], np.float64),
            np.array([scale_exponent], np.int64),
            numbers[np.newaxis],
            reasons[np.newaxis],
        )
        if self._run(_NO_EVENTS, plan, _NO_FLOATS).needs_rebuild:
            return False
        if self._python and len(self.tree):
            return self._write_in_python(numbers[_MEASURE:], reasons)
        return True

    @property
    def needs_rebuild(self) -> bool:
        """Whether `rebuild` must be called before the next row; see `WeightedTree.needs_rebuild`."""
        return self.tree.needs_rebuild

    def rebuild(self, labels: npt.ArrayLike, scores: npt.ArrayLike, weights: npt.ArrayLike) -> None:
        """Sum everything anew from the events held. O(k log k)."""
        self.tree.rebuild(labels, scores, weights)

    def to_entries(self) -> Scaled:
        """Return the distinct scores, ascending, with the masses of both classes in one scale. O(k)."""
        entries = self.tree.held_entries()
        masses = self.tree.in_one_scale(entries["mass"][:, 0], entries["mass"][:, 1])
        return Scaled(entries["key"].copy(), *masses)

    def live_bytes(self) -> int:
        """Estimate the ranking's memory in bytes."""
        return self.tree.nbytes

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

    def _write_in_python(self, measures: FloatArray, reasons: Int8Array) -> bool:
        """Write the measures that need every entry, and H for costs that are not polynomials.

        Return False, with nothing written, if rounding would decide whether scores are flipped.
        """
        flips = self._settings.flip_if_below_half and not self.tree.is_built
        if flips and abs(float(measures[_AUC]) - BELOW_HALF) < 2.0**-46:
            return False
        entries = self.to_entries() if self._asked & _OF_ENTRIES else Scaled(*[_NO_FLOATS] * 3)
        if self._asked & {"brier", "log_loss"}:
            measures[_BRIER], measures[_LOG_LOSS] = probability_losses(*entries)
        if math.isnan(measures[_AUC]):
            return True
        _, n, p = self.tree.held_hull()
        n, p = self.tree.in_one_scale(n, p)
        in_range = min(n.sum(), p.sum()) >= RAREST
        if "h" in self._asked and (n_and_p := self._edges_of_h(measures[_AUC] < BELOW_HALF)) is not None:
            self._write(measures, reasons, "h", h_measure(*n_and_p, self._settings))
        if "h" in self._asked and not in_range and self._ask.prior < 0.0:
            self._write(measures, reasons, "h", math.nan)
        values = dict.fromkeys(_AT_ENTRIES, math.nan)
        if in_range and self._asked & _AT_ENTRIES:
            n, p = entries.negatives, entries.positives
            values["average_precision"] = average_precision(n, p)
            values["calibration_error"] = calibration_error(*entries)
            values["partial_auc"], values["partial_auc_mcclish"] = partial_auc(
                n, p, *self._settings.partial_fpr
            )
        for name in self._asked & _AT_ENTRIES:
            self._write(measures, reasons, name, values[name])
        if in_range and self._asked & _POLYNOMIAL:
            write_polynomial_auc(*entries, measures, reasons)
        elif not in_range:
            for name in _POLYNOMIAL:
                self._write(measures, reasons, name, math.nan)
        return True

    def _edges_of_h(self, below_half: bool) -> tuple[FloatArray, FloatArray] | None:
        """Return the hull's edges (negatives, positives) to sum H over; None if H is written already."""
        if below_half and self._settings.flip_if_below_half:
            _, n, p = self.to_entries()
            edges = hull_edges(n[::-1].copy(), p[::-1].copy())
            return edges["mass"][:, 0].copy(), edges["mass"][:, 1].copy()
        if self._compiled_h:
            return None
        _, n, p = self.tree.held_hull()
        n, p = self.tree.in_one_scale(n, p)
        some = n + p > 0.0
        return n[some], p[some]

    @staticmethod
    def _write(measures: FloatArray, reasons: Int8Array, name: str, value: float) -> None:
        """Write one measure; if it is NaN or infinite, null with the reason."""
        column = MEASURES.index(name)
        measures[column] = value if math.isfinite(value) else math.nan
        reasons[column] = reasons[column] if math.isfinite(value) else OUT_OF_RANGE


_NO_PLAN = RowPlan(
    np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64), np.empty((0, 0)), np.empty((0, 0), np.int8)
)


def _compiled_h(settings: EvaluatorSettings) -> tuple[bool, float]:
    """Return whether H is a polynomial in an edge, also with fixed priors, and its curvature."""
    if isinstance(settings.cost, SeverityCost):
        return False, 0.0
    curvature = {(2.0, 2.0): 1.0, (1.0, 1.0): 0.0}.get(settings.cost.beta(0.5))
    return curvature is not None, curvature or 0.0


def warm_up() -> float:
    """Compile every kernel of weighted windows, or load it from the cache; return the seconds taken.

    Some 20 seconds the first time, a fraction of a second afterwards.
    """
    start = time.perf_counter()
    settings = EvaluatorSettings(measures="all", probabilities=True)  # type: ignore[arg-type]
    label, one = np.array([0, 1, 1], np.int8), np.ones(3)
    score = np.array([0.0, 0.5, 0.75])
    ranking = WeightedRanking(settings, label, score, one)
    ranking.take(label, score, one, np.ones(3, np.int8))
    numbers, reasons = np.full(len(NUMBER_COLUMNS), np.nan), np.zeros(len(MEASURES), np.int8)
    ranking.write_row(numbers, reasons)
    tree = ranking.tree
    tree.auc()
    tree.placement(label, score)
    tree.masses_below(0.5)
    tree.score_at_positive_mass(1.0)
    tree.to_sorted()
    partial_auc(one, one, 0.0, 1.0)
    tree.make_room()
    return time.perf_counter() - start
