"""A linear model that maximises a polynomial in place of AUC, as a state machine.

    state = begin(settings)
    while state.is_running:
        sums = state.new_sums()        # for every part of the data; sums merge
        sums.add(features, labels, weights)
        state = state.after(sums)
    model = state.model()

The state receives only sums over the data. So a scan can be a loop over an array, over batches from a disk,
or a Beam job.

AUC does not change when scores are scaled or moved. A polynomial is near the step on an interval only. So
scores are scaled to [-1, 1] at the start of every line search. In the following, a are the scores of the
model, b the scores of the direction. The search runs over u = (1 - alpha) a + alpha b, 0 <= alpha <= 1. The
range of u is widened as far as is safe, and stays within [-1, 1] (line.py).
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from ...arrays import FloatArray
from ...errors import ConfigError, InputError
from ...events.inputs import as_numbers
from ...measures.step_polynomials import nodes_and_transform
from ..learner_settings import is_number
from .line import Iteration, Line
from .objectives import Objective, PairFit, PairObjective
from .passes import NO_SCORES, NOT_FINITE, FeatureSums, GradientSums, GradientTask, LineSums, LineTask, Sums
from .standardised_rows import Slopes, Standardiser

Direction = Literal["conjugate", "gradient"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
StopReason = Literal["tolerance", "iterations", "separated"]


@dataclass(eq=False, repr=False)
class FitSettings:
    """The settings of a fit.

    degree, objective, step_fit, steepness  see `PairObjective`
    max_iter    greatest number of iterations, each of two scans.
    tol         the fit ends after two consecutive iterations that raise the objective by less than `tol`.
    direction   "conjugate" (Polak & Ribiere, restarted) or "gradient", as in the paper
    reach       see `Standardiser`: 1 moves about half of the rows inwards; None: no row, as in the paper
    """

    degree: int = 30
    _: KW_ONLY
    objective: Objective = "polynomial"
    step_fit: PairFit = "damped"
    steepness: float | None = None
    max_iter: int = 30
    tol: float = 1e-6
    direction: Direction = "conjugate"
    reach: float | None = 1.0

    def _check(self) -> None:
        """Raise ConfigError for a setting that cannot be used."""
        _ = self.pairs
        if isinstance(self.max_iter, bool) or not isinstance(self.max_iter, int) or self.max_iter < 0:
            raise ConfigError(f"max_iter={self.max_iter!r}: give a whole number, 0 or above")
        if not is_number(self.tol) or not 0.0 <= self.tol < math.inf:
            raise ConfigError(f"tol={self.tol!r}: give a finite number, 0 or above; 1e-6 is usual")
        if self.direction not in DIRECTIONS:
            raise ConfigError(f"direction={self.direction!r}: give one of {', '.join(DIRECTIONS)}")
        if self.reach is not None and not (is_number(self.reach) and 0.0 < self.reach < 1e100):
            raise ConfigError(f"reach={self.reach!r}: give a number above 0, or None; 1 is usual")

    @property
    def pairs(self) -> PairObjective:
        """The objective over pairs that the settings describe."""
        return PairObjective(self.degree, self.objective, self.step_fit, self.steepness)


@dataclass(frozen=True, eq=False)
class PolynomialAucModel:
    """The fitted model: the score of a row is coef . row + intercept, the log odds of the second class.

    classes             the two labels; the second is the positive one
    coef, intercept     (m,) and a number
    auc                 the objective of the scores in the fit: near AUC (soft AUC for "sigmoid")
    history             one entry for the start, one for each iteration
    stop_reason         "tolerance", "iterations", or "separated": AUC of the rows in the fit is 1
    scans               number of times the data were read
    rows                number of rows
    """

    classes: tuple[Any, Any]
    coef: FloatArray
    intercept: float
    auc: float
    history: tuple[Iteration, ...]
    stop_reason: StopReason
    scans: int
    rows: int

    @property
    def iterations(self) -> int:
        """Number of line searches after the start."""
        return len(self.history) - 1

    def scores(self, features: Any) -> FloatArray:
        """Return the score of each row, (n, m), dense or sparse, or of a row, (m,); NaN if a feature is NaN.

        Raises InputError if rows have a different number of features.
        """
        if not sparse.issparse(features):
            features = as_numbers("features", features)
        if features.shape[-1] != len(self.coef):
            raise InputError(
                f"features of shape {features.shape} for a model of {len(self.coef)}: give as many"
            )
        scores: FloatArray = features @ self.coef + self.intercept
        return scores


@dataclass(frozen=True, eq=False)
class _Point:
    """A model within the fit: u = weights . row + offset in [-1, 1], and sums of T_0 ... T_d(u) by class."""

    weights: FloatArray
    offset: float
    negatives: FloatArray
    positives: FloatArray


@dataclass(frozen=True, eq=False)
class FitState:
    """The state of a fit between two scans. It is small and immutable: `after` returns a new state.

    point   the model after the last line search; None before the first line search
    task    the task of the next scan; None for the first scan; at the end, the task of the last scan
    ascent  the gradient of the last gradient scan, and the direction computed from it
    """

    settings: FitSettings
    start: FloatArray | None = None
    rows: int = 0
    scans: int = 0
    point: _Point | None = None
    task: GradientTask | LineTask | None = None
    ascent: tuple[FloatArray, FloatArray] | None = None
    history: tuple[Iteration, ...] = ()
    stop_reason: StopReason | None = None

    @property
    def is_running(self) -> bool:
        """Whether the fit needs another scan."""
        return self.stop_reason is None

    def new_sums(self) -> Sums:
        """Return empty sums for the next scan."""
        if self.task is None:
            return FeatureSums()
        return GradientSums(self.task) if isinstance(self.task, GradientTask) else LineSums(self.task)

    def after(self, sums: Sums) -> FitState:
        """Return the state after a scan of all the data. O(m + d^4). Raises InputError."""
        state = replace(self, scans=self.scans + 1)
        if isinstance(sums, FeatureSums):
            return state._after_features(sums)
        if sums.rows != self.rows:
            raise InputError(
                f"scan {state.scans} gave {sums.rows:,} rows, and the first one {self.rows:,}: every scan "
                "must give the same rows, from the beginning"
            )
        return state._after_gradient(sums) if isinstance(sums, GradientSums) else state._after_line(sums)

    def model(self) -> PolynomialAucModel:
        """Return the model of a fit that has ended. O(m + d^2)."""
        assert self.point is not None
        assert self.task is not None
        assert self.stop_reason is not None
        point, standardiser = self.point, self.task.standardiser
        slope, constant = _log_odds(point.negatives, point.positives)
        coef = slope * point.weights * standardiser.inverse
        return PolynomialAucModel(
            self.task.classes,
            coef,
            float(slope * point.offset + constant - coef @ standardiser.mean),
            float(self.settings.pairs.value(point.positives, point.negatives)),
            self.history,
            self.stop_reason,
            self.scans,
            self.rows,
        )

    def _after_features(self, sums: FeatureSums) -> FitState:
        if not sums.rows:
            raise InputError("there are no rows: AUC needs at least one of each class")
        if len(sums.classes) < 2:
            only = ", ".join(repr(label) for label in sums.classes) or "none of a weight above 0"
            raise InputError(f"labels of one class ({only}): AUC is of pairs of a positive and a negative")
        try:
            negative, positive = sorted(sums.classes)
        except TypeError as problem:
            raise InputError(f"labels cannot be compared: {problem}; give two of one type") from None
        negatives, positives = sums.classes[negative], sums.classes[positive]
        whole = negatives.merged(positives)
        deviation = np.sqrt(whole.squares / whole.weight)
        varies = (sums.low < sums.high) & (deviation > 0)
        if not varies.any():
            raise InputError(
                f"every feature is constant, all {len(varies)} of them, or varies by less than 1e-150: no "
                "linear score tells rows apart"
            )
        inverse = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=varies)
        reach = math.inf if self.settings.reach is None else self.settings.reach
        standardiser = Standardiser(whole.mean, inverse, reach)
        apart = (positives.mean - negatives.mean) * inverse
        if not apart.any():
            # class means are equal: start in any direction
            apart = (inverse > 0).astype(np.float64)
        weights, direction = apart, apart * np.abs(apart)
        if self.start is not None:
            if len(self.start) != len(inverse):
                raise InputError(
                    f"rows of {len(inverse)} features, and a model of {len(self.start)} to start from: give "
                    "as many"
                )
            given = np.divide(self.start, inverse, out=np.zeros_like(inverse), where=varies)
            if given.any():
                weights, direction = given, apart
        degree = self.settings.degree
        task = LineTask.along(standardiser, (negative, positive), degree, weights, direction)
        return replace(self, rows=sums.rows, task=task)

    def _after_line(self, sums: LineSums) -> FitState:
        task = sums.task
        first, second = sums.spans
        if not first.half and not second.half:
            raise InputError("every row has the same score: no linear score tells the rows apart")
        line = Line(sums)
        if NO_SCORES in sums.ranges:
            raise InputError("a class has no row in a later scan: every scan must give the same rows")
        of_negatives, of_positives = sums.ranges
        are_apart = of_negatives.high < of_positives.low
        search = line.search(self.settings.pairs, stays=are_apart)
        alpha = np.array([search.alpha])
        of_first, of_second, offset = (float(each[0]) for each in line.mixtures(alpha))
        weights = np.zeros_like(task.weights)
        for span, share, vector in ((first, of_first, task.weights), (second, of_second, task.direction)):
            if span.half:
                weights = weights + vector * (share / span.half)
                offset -= span.middle * (share / span.half)
        negatives, positives = line.moments(alpha)
        point = _Point(weights, offset, negatives[0], positives[0])
        state = replace(self, point=point, history=(*self.history, search))
        gains = [step.after - step.before for step in state.history[1:]]
        if are_apart:
            return replace(state, stop_reason="separated")
        if len(gains) >= 2 and max(gains[-2:]) < self.settings.tol:
            return replace(state, stop_reason="tolerance")
        if len(gains) >= self.settings.max_iter:
            return replace(state, stop_reason="iterations")
        by_positive, by_negative = self.settings.pairs.slopes(point.positives, point.negatives)
        slopes = Slopes(weights, offset, by_positive, by_negative)
        return replace(state, task=GradientTask(task.standardiser, task.classes, slopes))

    def _after_gradient(self, sums: GradientSums) -> FitState:
        task = sums.task
        weights = task.slopes.weights
        length = float(np.linalg.norm(weights))
        axis = weights / length
        gradient = sums.gradient * length  # the gradient at weights of length 1
        # without the part along the weights: a change of scale keeps the order of scores
        gradient = gradient - (gradient @ axis) * axis
        if not np.isfinite(gradient).all():
            raise InputError(NOT_FINITE)
        if not np.linalg.norm(gradient) > 1e-14:
            return replace(self, stop_reason="tolerance")
        direction = gradient
        last = self.history[-1]
        has_gained = last.after - last.before >= self.settings.tol
        if self.settings.direction == "conjugate" and self.ascent is not None and has_gained:
            old_gradient, old_direction = self.ascent
            share = max(0.0, float(gradient @ (gradient - old_gradient) / (old_gradient @ old_gradient)))
            conjugate = gradient + share * old_direction
            conjugate = conjugate - (conjugate @ axis) * axis
            if conjugate @ gradient > 0:
                direction = conjugate
        degree = self.settings.degree
        line = LineTask.along(task.standardiser, task.classes, degree, weights, direction)
        return replace(self, ascent=(gradient, direction), task=line)


def begin(settings: FitSettings, start: FloatArray | None = None) -> FitState:
    """Return the state before the first scan. Raises ConfigError for a setting that cannot be used.

    start  coefficients of an earlier model to start from
    """
    settings._check()
    return FitState(settings, start)


def _log_odds(negatives: FloatArray, positives: FloatArray) -> tuple[float, float]:
    """Return slope and constant of the log odds over u that fit best: Platt's sigmoid, from sums alone.

    A sum over rows of a smooth function of u equals a weighted sum over d + 1 nodes, with weights from the
    sums of T_0 ... T_d. So log loss is summed without the rows. Targets are moved inwards from 1 and 0 as in
    Platt 1999, so that the slope is finite if the classes are separated. The slope is above 0, so that it
    never reverses the order of scores.
    """
    nodes, transform = nodes_and_transform(len(positives))
    total = negatives[0] + positives[0]
    by_negative, by_positive = transform.T @ negatives / total, transform.T @ positives / total
    high, low = (positives[0] + 1) / (positives[0] + 2), 1 / (negatives[0] + 2)
    ones, zeros = by_positive * high + by_negative * low, by_positive * (1 - high) + by_negative * (1 - low)

    def loss(point: FloatArray) -> tuple[float, FloatArray]:
        odds = point[0] * nodes + point[1]
        residual = expit(odds) * (ones + zeros) - ones
        value = -(ones @ log_expit(odds) + zeros @ log_expit(-odds))
        return float(value), np.array([residual @ nodes, residual.sum()])

    steepest = float(len(nodes))  # a polynomial of this degree is never steeper
    start = np.array([1.0, math.log(positives[0] / negatives[0])])
    bounds = [(1e-3, steepest), (-50.0, 50.0)]
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-10}
    )
    point = found.x
    for _ in range(3):  # Newton steps give more digits than a search by values
        probability = expit(point[0] * nodes + point[1])
        curve = probability * (1 - probability) * (ones + zeros)
        mixed = curve @ nodes
        hessian = np.array([[curve @ nodes**2, mixed], [mixed, curve.sum()]])
        if not np.linalg.eigvalsh(hessian)[0] > 1e-9:
            break
        nearer = point - np.linalg.solve(hessian, loss(point)[1])
        if not (bounds[0][0] < nearer[0] < bounds[0][1] and np.abs(nearer - point).max() < 1e-3):
            break  # the best slope is at a bound
        point = nearer
    return float(point[0]), float(point[1])
