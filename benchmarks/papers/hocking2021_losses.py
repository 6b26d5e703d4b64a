"""The losses that hocking2021 sets beside AUM, each with its gradient by predictions.

A loss with a threshold takes the best one (a few steps of Newton's): AUM's is free, too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from rocsteady.core.arrays import FloatArray, Int8Array
from rocsteady.core.learning.aum.aum import Aum
from rocsteady.core.learning.aum.descent import LabelLoss
from scipy.special import expit

Loss = Callable[[FloatArray, Int8Array], tuple[float, FloatArray]]
"""Predictions and labels to value and gradient."""


def logistic(f: FloatArray, y: Int8Array, weights: FloatArray | None = None) -> tuple[float, FloatArray]:
    """log(1 + exp(-s f)), s = 1 and -1. O(n)."""
    s = 2.0 * y - 1.0
    w = np.ones(len(f)) if weights is None else weights
    return float(w @ np.logaddexp(0.0, -s * f)), -s * w * expit(-s * f)


def squared_hinge(f: FloatArray, y: Int8Array) -> tuple[float, FloatArray]:
    """(1 - s f)+ squared, of each example. O(n)."""
    s = 2.0 * y - 1.0
    short = np.maximum(1.0 - s * f, 0.0)
    return float(short @ short), -2.0 * s * short


def squared_hinge_of_pairs(f: FloatArray, y: Int8Array) -> tuple[float, FloatArray]:
    """(1 - (f_p - f_n))+ squared, of all pairs of a positive and a negative. O(n^2)."""
    positive, negative = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    short = np.maximum(1.0 - f[positive, np.newaxis] + f[negative], 0.0)
    gradient = np.zeros(len(f))
    gradient[positive] = -2.0 * short.sum(axis=1)
    gradient[negative] = 2.0 * short.sum(axis=0)
    return float((short * short).sum()), gradient


class OtherLoss(LabelLoss):
    """A loss in the place of AUM, for the same descent."""

    def __init__(self, labels: Int8Array, loss: Loss, has_threshold: bool) -> None:
        super().__init__(labels, np.empty(0), rate=False)
        self.is_homogeneous = False
        self._own_labels = labels
        self._loss = loss
        self._has_threshold = has_threshold

    def aum(self, predictions: FloatArray) -> Aum:
        """Return the loss and its gradient."""
        t = 0.0
        if self._has_threshold:
            for _ in range(12):
                slope = self._loss(predictions - t, self._own_labels)[1].sum()
                curvature = self._loss(predictions - t - 1e-4, self._own_labels)[1].sum() - slope
                t += np.clip(slope / max(-curvature / 1e-4, 1e-9), -2.0, 2.0)
        value, gradient = self._loss(predictions - t, self._own_labels)
        return Aum(value, gradient, gradient)


def contenders(labels: Int8Array) -> dict[str, LabelLoss]:
    """Return every contender's loss of some labels."""
    by_class = np.array([(labels == 0).sum(), (labels == 1).sum()], float)
    balanced = 1.0 / by_class[labels]
    none = np.empty(0)
    return {
        "logistic": OtherLoss(labels, logistic, has_threshold=True),
        "logistic, balanced": OtherLoss(labels, lambda f, y: logistic(f, y, balanced), has_threshold=True),
        "squared hinge, all pairs": OtherLoss(labels, squared_hinge_of_pairs, has_threshold=False),
        "AUM.count": LabelLoss(labels, none, rate=False),
        "AUM.rate": LabelLoss(labels, none, rate=True),
        "AUM.rate, margin 1": LabelLoss(labels, none, rate=True, margin=1.0),
    }
