"""`AumPenaltyLearner`: learns penalties of changepoint problems from features, by AUM.

The descent starts from max-margin interval regression with an L1 penalty (Hocking, Rigaill, Bach & Vert, ICML
2013). Every example has an interval of predictions with the fewest errors. A prediction costs nothing if it
lies in the interval, at least a margin away from both ends. Any other prediction costs the square of its
distance from that range:

    mean over examples of [(low + margin - f)+]^2 + [(f - high + margin)+]^2  +  penalty * |w|_1,  f = X w + b

This objective is convex, and smooth apart from the L1 term. Accelerated proximal gradients minimise the
objective, and begin anew where it rises (FISTA; O'Donoghue & Candes). The learner fits a path of penalties,
where each fit starts from the fit before, and cross-validation chooses a penalty of the path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ...arrays import FloatArray
from ...errors import InputError
from ...process.imports import missing_package
from ..learner_settings import check_choice, check_whole
from .descent import Criterion, DescentSettings, Design, ErrorLoss, Examples, Line, descend, scaling_of
from .error_functions import ErrorFunctions, as_indices


class IntervalFit(NamedTuple):
    """A linear model of intervals: weights of the features, float64[d], the intercept and the penalty."""

    weights: FloatArray
    intercept: float
    penalty: float


def margin_loss(
    predictions: FloatArray, low: FloatArray, high: FloatArray, margin: float
) -> tuple[float, FloatArray]:
    """Return the mean loss, and its derivative by every prediction. O(n)."""
    below = np.maximum(low + margin - predictions, 0.0)
    above = np.maximum(predictions - high + margin, 0.0)
    n = len(predictions)
    return float((below @ below + above @ above) / n), 2.0 * (above - below) / n


def fit_path(
    features: FloatArray,
    low: FloatArray,
    high: FloatArray,
    penalties: FloatArray,
    margin: float,
    max_iter: int = 300,
    tol: float = 1e-5,
) -> list[IntervalFit]:
    """Return a fit for each penalty, the greatest penalty first. O(n d) a step.

    tol  steps end when a step lowers the objective by less than this share of the objective
    """
    design = np.column_stack([features, np.ones(len(features))])
    penalised = np.append(np.ones(features.shape[1]), 0.0)
    rate = 1.0 / (4.0 * _greatest_eigenvalue(design) + 1e-12)
    weights = np.zeros(design.shape[1])
    fits = []
    for penalty in penalties:
        ahead, momentum = weights, 1.0
        before = np.inf
        for _ in range(max_iter):
            _, derivative = margin_loss(design @ ahead, low, high, margin)
            step = ahead - rate * (design.T @ derivative)
            moved = np.sign(step) * np.maximum(np.abs(step) - rate * penalty * penalised, 0.0)
            now = margin_loss(design @ moved, low, high, margin)[0] + penalty * np.abs(moved) @ penalised
            if now > before:  # the objective rises: restart the momentum
                ahead, momentum, before = weights, 1.0, np.inf
                continue
            further = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
            ahead = moved + (momentum - 1.0) / further * (moved - weights)
            weights, momentum = moved, further
            if before - now <= tol * now:
                break
            before = now
        fits.append(IntervalFit(weights[:-1], float(weights[-1]), float(penalty)))
    return fits


def penalty_path(
    features: FloatArray, low: FloatArray, high: FloatArray, margin: float, count: int
) -> FloatArray:
    """Return `count` penalties, the last of them a thousandth of the first.

    The first is the least penalty that leaves no feature in the model.
    """
    constant = fit_path(features[:, :0], low, high, np.zeros(1), margin, tol=1e-12)[0].intercept
    _, derivative = margin_loss(np.full(len(features), constant), low, high, margin)
    greatest = float(np.abs(features.T @ derivative).max(initial=0.0)) or 1.0
    return np.geomspace(greatest, greatest / 1000.0, count)


def fit_by_cross_validation(
    features: FloatArray, low: FloatArray, high: FloatArray, folds: np.ndarray, margin: float = 1.0
) -> IntervalFit:
    """Return the fit of the penalty, of 12, that has the least loss on the examples left out.

    features   float64[n, d], scaled
    low, high  float64[n]: -inf or inf where the interval has no end; an example without both ends has no loss
    folds      int64[n]: the number of the fold in which each example is left out
    """
    says = np.isfinite(low) | np.isfinite(high)
    features, low, high, folds = features[says], low[says], high[says], folds[says]
    penalties = penalty_path(features, low, high, margin, 12)
    losses = np.zeros(len(penalties))
    for fold in np.unique(folds):
        out = folds == fold
        if out.all():
            continue
        for i, fit in enumerate(fit_path(features[~out], low[~out], high[~out], penalties, margin)):
            predictions = features[out] @ fit.weights + fit.intercept
            losses[i] += out.sum() * margin_loss(predictions, low[out], high[out], margin)[0]
    best = int(np.argmin(losses))
    return fit_path(features, low, high, penalties[: best + 1], margin)[-1]


def _greatest_eigenvalue(design: FloatArray) -> float:
    """Return the greatest eigenvalue of X' X / n. O(n d min(n, d)).

    A power iteration is not used: from a start orthogonal to the eigenvector its value is too low, and steps
    diverge.
    """
    rows, columns = design.shape
    products = design.T @ design if columns <= rows else design @ design.T
    return float(np.linalg.eigvalsh(products)[-1] / rows)


try:
    from sklearn.base import BaseEstimator
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise missing_package("scikit-learn", "AumPenaltyLearner", "learn") from None


@dataclass(kw_only=True, eq=False, repr=False)
class AumPenaltyLearner(DescentSettings, BaseEstimator):  # type: ignore[misc]
    """A linear model of f = -log(lambda) with a small AUM of the examples' error functions.

    It starts from an L1-regularised max-margin interval regression on the intervals with the fewest errors.
    Cross-validation chooses the penalty (Hocking et al. 2013). From that model it descends AUM until a
    held-out part of the examples gains no more (Hocking & Hillman 2021). If errors are rare, one held-out
    part is too small to judge by. So several descents hold out a fold each, and their models are averaged.
    Features that the regression leaves out stay out.

    rate                AUM of rates (AUM.rate) or of counts (AUM.count)
    line_search         "backtracking", or "exact": to the best of the first B crossings of thresholds
    max_iter, tol       greatest number of steps; stop when a step lowers AUM by less than this share of AUM
    early_stopping      None, or "aum" or "auc": keep the weights that are best on the fold held out
    n_splits            number of folds, and so of descents; without early stopping there is one descent, on
                        all examples
    n_iter_no_change    stop after this many steps without a better criterion
    init                "intervals": the interval regression; or "random": normal weights of the same size
    margin              of the interval regression, in the unit of f
    cv                  number of folds of the interval regression
    random_state        seed of all folds, and of random weights

    coef_, intercept_   of the features in their own units: shapes (d,) and a float. AUM does not depend on a
                        constant: the intercept gives the fewest errors in the training examples
    initial_coef_       coefficients before the first step: the mean of the starts of the descents
    descents_           a `Descent` for each fold: AUM after every step, the validation measures
    n_iter_             number of steps of the longest descent
    converged_reason_   why the descents ended, in words

    AUM of changepoint problems is not homogeneous (breakpoints are not all at 0), so weights are free.
    """

    rate: bool = False
    line_search: Line = "exact"
    max_iter: int = 300
    tol: float = 1e-6
    early_stopping: Criterion | None = "aum"
    n_splits: int = 3
    n_iter_no_change: int = 50
    init: Literal["intervals", "random"] = "intervals"
    cv: int = 4
    random_state: Any = None

    def fit(
        self,
        X: Any,  # noqa: N803  scikit-learn's name
        errors: ErrorFunctions,
        validation: npt.ArrayLike | None = None,
    ) -> AumPenaltyLearner:
        """Train the model on examples.

        X           features, (n, d), finite, dense
        errors      the error functions of the n examples
        validation  indices of the examples that one descent holds out; by default folds are drawn at random

        Raises InputError for the examples, ConfigError for the settings.
        """
        self._check()
        if not isinstance(errors, ErrorFunctions):
            raise InputError(
                f"errors is of type {type(errors).__name__}; make ErrorFunctions.of_penalties(...) of them"
            )
        features = np.asarray(validate_data(self, X, dtype=np.float64))
        if len(features) != len(errors):
            raise InputError(f"X has {len(features):,} rows and there are {len(errors):,} error functions")
        random = check_random_state(self.random_state)
        self.descents_, starts, ends = [], [], []
        for held in self._held_out(len(features), random, validation):
            train = np.setdiff1d(np.arange(len(features)), held)
            scaling = scaling_of(features[train])
            start = self._start(Design(features[train], scaling).matrix, errors.take(train), random)
            kept = np.flatnonzero(start) if start.any() else np.arange(len(start))
            own = scaling.take(kept)
            trained, valid = (
                Examples(Design(features[rows][:, kept], own), ErrorLoss(errors.take(rows), self.rate))
                for rows in (train, held)
            )
            found = descend(trained, start[kept], self, valid if len(held) else None)
            self.descents_.append(found)
            starts.append(start / scaling.scale)
            ends.append(np.zeros(len(start)))
            ends[-1][kept] = found.weights / own.scale
        self.n_iter_ = max(each.n_iter for each in self.descents_)
        self.converged_reason_ = "; ".join(dict.fromkeys(each.reason for each in self.descents_))
        self.initial_coef_, self.coef_ = np.mean(starts, axis=0), np.mean(ends, axis=0)
        curve = ErrorLoss(errors, self.rate).roc(features @ self.coef_)
        self.intercept_ = curve.best_constant
        return self

    def predict(self, X: Any) -> FloatArray:  # noqa: N803
        """Return f = -log(lambda) of each example, float64[n], from its features `X`, (n, d)."""
        check_is_fitted(self)
        features = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(features @ self.coef_ + self.intercept_)

    def predict_penalty(self, X: Any) -> FloatArray:  # noqa: N803
        """Return lambda of each example, float64[n], from its features `X`, (n, d)."""
        return np.asarray(np.exp(-self.predict(X)))

    def score(self, X: Any, errors: ErrorFunctions) -> float:  # noqa: N803
        """Return the AUC of the predictions for `X`, with the error functions `errors`.

        NaN if there is no FP or no FN.
        """
        auc = errors.roc(self.predict(X)).auc
        return float("nan") if auc is None else auc

    def _start(self, matrix: FloatArray, errors: ErrorFunctions, random: Any) -> FloatArray:
        """Return the weights of the scaled features at which the descent begins."""
        if self.init == "random":
            return np.asarray(random.normal(size=matrix.shape[1]) / np.sqrt(matrix.shape[1]))
        low, high = errors.target_intervals()
        if not (np.isfinite(low) | np.isfinite(high)).any():
            raise InputError("no example has a breakpoint: the errors do not depend on the predictions")
        folds = random.permutation(np.arange(len(matrix)) % self.cv)
        return fit_by_cross_validation(matrix, low, high, folds, self.margin).weights

    def _held_out(self, n: int, random: Any, validation: npt.ArrayLike | None) -> list[npt.NDArray[np.int64]]:
        """Return the indices of the examples that each descent holds out.

        Empty if no descent holds out examples.
        """
        if self.early_stopping is None:
            return [np.empty(0, np.int64)]
        if validation is not None:
            held = as_indices("validation", validation, n)
            if not 0 < len(held) < n:
                raise InputError(
                    f"validation holds out {len(held)} of {n} examples; give indices from 0 to {n - 1}, some "
                    "and not all, or early_stopping=None"
                )
            return [held]
        if n < 2 * self.n_splits:
            raise InputError(
                f"there are {n} examples for n_splits={self.n_splits}; give at least {2 * self.n_splits}, or "
                "early_stopping=None"
            )
        folds = random.permutation(np.arange(n) % self.n_splits)
        return [np.flatnonzero(folds == fold) for fold in range(self.n_splits)]

    def _check(self) -> None:
        check_choice("init", self.init, ("intervals", "random"))
        check_whole("cv", self.cv, 2)
        check_whole("n_splits", self.n_splits, 2)
        super()._check()
