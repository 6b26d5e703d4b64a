"""A linear model that descends AUM: features, steps, and when to stop (Hocking & Hillman 2021).

Predictions are f = X w, of features that are centred and scaled. AUM does not change if a constant is added
to all predictions, so w has no intercept. Centring changes the results by rounding alone. The gradient is X'
times the mean of AUM's two derivatives by f.

Binary labels. FN(t) grows and FP(t) falls with t, so the integral of min(FP, FN) is the sum of two tails:

    AUM(f) = min over t of  sum over positives of (t - f)+  +  sum over negatives of (f - t)+

(The derivative by t is FN(t) - FP(t), and is 0 where both curves cross.) This is the perceptron's loss with a
free threshold, and is convex in f. If the positives' breakpoints are at a margin, AUM is the hinge loss of a
linear SVM. AUM of rates gives both classes the same weight. For error functions that are not monotone AUM is
not convex: a minimum may be local.

Without a margin AUM(c f) = c AUM(f), so the minimum f = 0 has no information. Then predictions have standard
deviation 1 after every step, and the descent minimises AUM(f) / sd(f). Weights of length 1 would not be
enough: if features nearly depend on each other, AUM and sd(f) are both small in some directions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from scipy import sparse

from ...arrays import FloatArray, Int8Array, Int64Array
from ..features import check_size, ranges_of, sparse_squares
from ..learner_settings import check_choice, check_number, check_whole
from .aum import Aum, aum_of_classes
from .error_functions import ErrorFunctions
from .error_roc import ErrorRoc
from .line_search import LineSearch, search_line

Line = Literal["backtracking", "exact"]
Criterion = Literal["aum", "auc"]

_LEAST_STEP = 1e-12
"""Smallest step, as a share of the first step: a smaller step changes predictions by rounding only."""


class Scaling(NamedTuple):
    """The mean and the divisor of each feature, float64[d] each; the divisor of a constant feature is 1."""

    mean: FloatArray
    scale: FloatArray

    def take(self, columns: Int64Array) -> Scaling:
        """Return the scaling of some features."""
        return Scaling(self.mean[columns], self.scale[columns])


def scaling_of(features: Any, weights: FloatArray | None = None) -> Scaling:
    """Return mean and standard deviation of each column, dense or sparse, weighted by row. O(values).

    Raises InputError for a feature whose squares are not finite.
    """
    n = features.shape[0]
    check_size(*ranges_of(features))
    w = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
    mean = np.asarray(features.T @ w).ravel()
    if sparse.issparse(features):
        variance = sparse_squares(features.tocsr(), w, mean, 1.0)  # type: ignore[attr-defined]
    else:
        variance = np.einsum("ij,ij,i->j", features - mean, features - mean, w)
    square = variance + mean**2
    scale = np.sqrt(variance)
    is_constant = scale <= 1e-10 * np.sqrt(square)  # up to rounding, in any unit
    return Scaling(mean, np.where(is_constant, np.inf, scale))


class Design:
    """Scaled features: computes predictions from weights, and gradients from derivatives.

    A sparse matrix stays sparse.

    matrix  the scaled features, float64[n, d]; a sparse matrix as it was given
    """

    def __init__(self, features: Any, scaling: Scaling) -> None:
        self.matrix, self._scaling = features, scaling
        if not sparse.issparse(features):
            self.matrix = (features - scaling.mean) / scaling.scale
            self._scaling = Scaling(np.zeros_like(scaling.mean), np.ones_like(scaling.scale))

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.matrix.shape[0])

    def predictions(self, weights: FloatArray) -> FloatArray:
        """Return X w, float64[n]. O(values)."""
        scaled = weights / self._scaling.scale
        return np.asarray(self.matrix @ scaled) - float(self._scaling.mean @ scaled)

    def gradient(self, derivatives: FloatArray) -> FloatArray:
        """Return X' g, float64[d]. O(values)."""
        plain = np.asarray(self.matrix.T @ derivatives) - self._scaling.mean * derivatives.sum()
        return np.asarray(plain / self._scaling.scale)


class ErrorLoss:
    """AUM of error functions, as a loss that a descent lowers."""

    is_homogeneous = False

    def __init__(self, errors: ErrorFunctions, rate: bool) -> None:
        self._errors = errors
        self._rate = rate

    def aum(self, predictions: FloatArray) -> Aum:
        """Return AUM and its derivatives. O(B log B)."""
        return self._errors.aum(predictions, self._rate)

    def line(self, predictions: FloatArray, direction: FloatArray) -> LineSearch:
        """Return AUM along a line of predictions, up to its first B crossings. O(B log B)."""
        return search_line(self._errors.breakpoints(predictions, self._rate), direction)

    def roc(self, predictions: FloatArray) -> ErrorRoc:
        """Return the ROC curve of the predictions, whose breakpoints have no margin.

        The curve is of rates if AUM is of rates. O(B log B).
        """
        return self._errors.roc(predictions).with_rates(self._rate)

    def objective(self, predictions: FloatArray) -> float:
        """Return the objective of a descent: AUM, divided by the standard deviation if AUM is homogeneous."""
        value = self.aum(predictions).value
        return value / (self.spread(predictions)[1] or np.inf) if self.is_homogeneous else value

    def spread(self, values: FloatArray) -> tuple[FloatArray, float]:
        """Return (values - mean) * mass of each example, and the standard deviation of the values."""
        centred = values - values.mean()
        return centred / len(values), float(np.sqrt(centred @ centred / len(values)))


class LabelLoss(ErrorLoss):
    """AUM of binary labels, int8[n] of 0 and 1, with weights, float64[n] (float64[0]: all weigh 1).

    margin  where the positives' breakpoints are; 0: AUM is homogeneous, and predictions are normalised
    """

    def __init__(self, labels: Int8Array, weights: FloatArray, rate: bool, margin: float = 0.0) -> None:
        errors = ErrorFunctions.of_labels(labels, weights if len(weights) else None)
        super().__init__(errors, rate)
        self._shift = np.asarray(margin * labels, np.float64)
        self.is_homogeneous = not margin
        self._labels = labels
        self._weights = weights

    def aum(self, predictions: FloatArray) -> Aum:
        """Return AUM and its derivatives; tied examples of one class move together. O(n)."""
        return aum_of_classes(
            self._labels, predictions - self._shift + 0.0, self._weights, self._rate, together=True
        )

    def line(self, predictions: FloatArray, direction: FloatArray) -> LineSearch:
        """Return AUM along a line of predictions, up to its first n crossings. O(n log n)."""
        return super().line(predictions - self._shift, direction)

    def spread(self, values: FloatArray) -> tuple[FloatArray, float]:
        """Return (values - mean) * mass of each example, and the standard deviation of the values."""
        if not len(self._weights):
            return super().spread(values)
        share = self._weights / self._weights.sum()
        centred = values - share @ values
        return share * centred, float(np.sqrt(share @ centred**2))


class Examples(NamedTuple):
    """Features, float64[n, d], and the loss of these n examples."""

    design: Design
    loss: ErrorLoss


@dataclass(kw_only=True, eq=False, repr=False)
class DescentSettings:
    """Settings of AUM and of its descent, which both estimators have.

    rate, margin      see `AumLinearClassifier`; in `Examples` the loss already has both.
    line_search       choice of the length of a step: "exact" takes the best of the first B crossings of
                      thresholds, "backtracking" tries twice the step before and halves it until AUM falls.
    max_iter          greatest number of steps.
    tol               stop when a step lowers AUM by less than this share of AUM.
    early_stopping    criterion of the validation examples, by which the kept weights are chosen.
    n_iter_no_change  stop after this many steps without a better criterion.
    """

    rate: bool = True
    margin: float = 1.0
    line_search: Line = "backtracking"
    max_iter: int = 100
    tol: float = 1e-4
    early_stopping: Criterion | None = "auc"
    n_iter_no_change: int = 10

    def _check(self) -> None:
        """Raise ConfigError for a setting that cannot be used."""
        check_choice("rate", self.rate, (True, False))
        check_choice("line_search", self.line_search, get_args(Line))
        check_choice("early_stopping", self.early_stopping, (None, *get_args(Criterion)))
        check_whole("max_iter", self.max_iter, 0)
        check_whole("n_iter_no_change", self.n_iter_no_change, 1)
        check_number("tol", self.tol, 0.0, 1.0)
        check_number("margin", self.margin, 0.0, 1e100)


@dataclass
class Descent:
    """The result of a descent.

    weights   float64[d], the weights of the best validation criterion, or the last without validation.
    best      the number of the step with these weights, from 0.
    n_iter    number of steps made.
    reason    reason for the end of the descent, in words.
    aum       of the training examples, after every step and before the first.
    valid_aum, valid_auc   AUM and AUC of the validation examples likewise; empty without such examples.
    """

    weights: FloatArray
    best: int = 0
    n_iter: int = 0
    reason: str = ""
    aum: list[float] = field(default_factory=list)
    valid_aum: list[float] = field(default_factory=list)
    valid_auc: list[float] = field(default_factory=list)


def descend(
    train: Examples, start: FloatArray, settings: DescentSettings, valid: Examples | None = None
) -> Descent:
    """Lower AUM step by step, from the weights `start`; return the weights found.

    O((B log B + values) steps); a line search multiplies the time by some factor.
    """
    design, loss = train
    weights = start
    found = Descent(weights)
    best, reach = -np.inf, 0.0
    while True:
        predictions = design.predictions(weights)
        centred, deviation = loss.spread(predictions)
        if loss.is_homogeneous and deviation:
            weights, predictions, centred = weights / deviation, predictions / deviation, centred / deviation
            deviation = 1.0
        here = loss.aum(predictions)
        found.aum.append(here.value)
        criterion = np.inf if valid is None else _validate(valid, weights, settings, found)
        if valid is None or criterion > best:
            best, found.best, found.weights = criterion, found.n_iter, weights
        found.reason = _reason_to_stop(here, deviation, settings, found)
        if found.reason:
            return found
        by_prediction = here.gradient - here.value * centred if loss.is_homogeneous else here.gradient
        direction = -design.gradient(by_prediction)
        change = design.predictions(direction)
        _, change_deviation = loss.spread(change)
        if not change_deviation:
            found.reason = "stationary: the gradient is 0"
            return found
        if settings.line_search == "exact":
            step = _best_crossing(loss, predictions, change)
            value = loss.objective(predictions + step * change)
        else:
            first = 2.0 * reach or 0.1 * deviation / change_deviation or 1.0
            step, value = _backtracked(loss, predictions, change, here.value, first)
        if not value < here.value * (1.0 - settings.tol):
            found.reason = (
                f"converged: no step along the gradient lowers AUM by more than {settings.tol:g} of it"
            )
            return found
        reach = step
        weights = weights + step * direction
        found.n_iter += 1


def _reason_to_stop(here: Aum, deviation: float, settings: DescentSettings, found: Descent) -> str:
    """Return why no further step is made; "" if another step is made."""
    if not deviation:
        if here.value == 0.0 and not here.gradient.any():
            return "degenerate: one class only, so that AUM is 0 and says nothing"
        if found.n_iter or not found.weights.any():
            return "degenerate: all predictions are equal, so that AUM is 0 and says nothing"
    if here.value <= 1e-14 * deviation:
        return (
            "separable: AUM is 0 on the training examples and so is its gradient, nothing is left to descend"
        )
    if found.n_iter == settings.max_iter:
        return f"max_iter: {settings.max_iter} steps were made"
    if found.n_iter - found.best >= settings.n_iter_no_change:
        return (
            f"early stopping: the validation {str(settings.early_stopping).upper()} has not improved for "
            f"{settings.n_iter_no_change} steps"
        )
    return ""


def _best_crossing(loss: ErrorLoss, predictions: FloatArray, change: FloatArray) -> float:
    """Return the step to the best crossing.

    If AUM is 0 on an interval, return the step to the middle of the interval.

    AUM is linear between crossings. AUM / sd(f) has no minimum between crossings either: where the ratio of a
    line that is not negative and sd(f + s d) is stationary, it is greatest.
    """
    search = loss.line(predictions, change)
    if search.best_aum <= 1e-14 * loss.spread(predictions)[1]:
        return search.best_step
    values = search.aum
    if loss.is_homogeneous:
        own, deviation = loss.spread(predictions)
        _, rate = loss.spread(change)
        variance = deviation**2 + 2.0 * search.steps * float(own @ change) + search.steps**2 * rate**2
        values = values / np.sqrt(np.maximum(variance, 1e-300))
    return float(search.steps[np.argmin(values)])


def _backtracked(
    loss: ErrorLoss, predictions: FloatArray, change: FloatArray, here: float, first: float
) -> tuple[float, float]:
    """Return a step that lowers the objective, and the objective after the step.

    The step is `first`, halved until the objective falls.

    here  the objective of `predictions`

    The step need not be the best: a path of small steps gives early stopping more weights to choose from.
    """
    step, value = first, loss.objective(predictions + first * change)
    while not value < here and step > _LEAST_STEP * first:
        step /= 2.0
        value = loss.objective(predictions + step * change)
    return step, value


def _validate(valid: Examples, weights: FloatArray, settings: DescentSettings, found: Descent) -> float:
    """Record AUM and AUC of the validation examples.

    Return the criterion, for which a higher value is better.
    """
    predictions = valid.design.predictions(weights)
    aum, auc = valid.loss.aum(predictions).value, valid.loss.roc(predictions).auc
    found.valid_aum.append(aum)
    found.valid_auc.append(np.nan if auc is None else auc)
    if settings.early_stopping == "aum":
        return -aum
    return -1.0 if auc is None else auc
