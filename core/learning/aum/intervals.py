"""Max-margin interval regression with an L1 penalty (Hocking, Rigaill, Bach & Vert, ICML 2013).

Every example has an interval of predictions with the fewest errors. A prediction costs nothing if it lies in
the interval, at least a margin away from both ends. Any other prediction costs the square of its distance
from there:

    mean over examples of [(low + margin - f)+]^2 + [(f - high + margin)+]^2  +  penalty * |w|_1,  f = X w + b

This objective is convex, and smooth apart from the L1 term. Accelerated proximal gradients minimise the
objective, and begin anew where it rises (FISTA; O'Donoghue & Candes). A path of penalties is fitted, each
starting from the fit before, and cross-validation chooses a penalty of the path.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...arrays import FloatArray


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
    """Return a fit for each penalty, the greatest first. O(n d) a step.

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
    """Return penalties from the least that leaves no feature in the model, down to a thousandth of it."""
    constant = fit_path(features[:, :0], low, high, np.zeros(1), margin, tol=1e-12)[0].intercept
    _, derivative = margin_loss(np.full(len(features), constant), low, high, margin)
    greatest = float(np.abs(features.T @ derivative).max(initial=0.0)) or 1.0
    return np.geomspace(greatest, greatest / 1000.0, count)


def fit_by_cross_validation(
    features: FloatArray,
    low: FloatArray,
    high: FloatArray,
    folds: np.ndarray,
    margin: float = 1.0,
    count: int = 12,
) -> IntervalFit:
    """Return the fit whose penalty has the least loss on examples left out.

    features   float64[n, d], scaled
    low, high  float64[n]: -inf and inf where there is no end; an example with neither end has no loss
    folds      int64[n]: which examples are left out together
    """
    says = np.isfinite(low) | np.isfinite(high)
    features, low, high, folds = features[says], low[says], high[says], folds[says]
    penalties = penalty_path(features, low, high, margin, count)
    losses = np.zeros(count)
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

    Not by power iterations: from a start orthogonal to the eigenvector the value is too low; steps diverge.
    """
    rows, columns = design.shape
    products = design.T @ design if columns <= rows else design @ design.T
    return float(np.linalg.eigvalsh(products)[-1] / rows)
