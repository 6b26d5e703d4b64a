"""PolynomialAucLearner: a linear model that climbs AUC on a stream, one instance at a time, as in river.

Every instance is a gradient step against the other class, of which the learner keeps only sums. The mean over
the pairs of the instance with all faded scores of that class follows from d + 1 sums of Chebyshev polynomials
(Calders & Jaroszewicz 2007, for streams). No instance is kept, and no pair of instances is formed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...arrays import FloatArray
from ...encoding.fields import Reader, framed, packed_array, packed_text, unframed
from ...encoding.json import read_object, reading, whole
from ...errors import ConfigError, InputError
from ..features import Column, columns_head, columns_of, columns_of_head
from ..learner_settings import is_number
from .objectives import PairFit, PairObjective

MAGIC = b"RSPL"
VERSION = 1
_STATE = "the state of a PolynomialAucLearner"

DEFAULT_MAX_FEATURES = 1000

_SPAN = 4.0
"""The score of so many root mean squares of the scores is scaled to 1; greater scores are clipped to 1."""

_LEAST_SINE = 1e-3

_IN_HEAD = ("degree", "half_life", "step", "step_fit", "max_features", "ignored")
"""Attributes that the head of the wire form holds."""

_FROM_ZERO = ("_mean", "_variance", "_weights", "_squares")
"""Attributes that have a value for each column, which begins at 0."""


class PolynomialAucLearner:
    """Learns to rank: after each instance it makes a step up the gradient of a polynomial in place of AUC.

    degree        d of the polynomial
    half_life     number of instances that halve three weights: the weight of a score in the sums of its
                  class, of a value in the mean and deviation of its feature, and of a gradient in the size of
                  steps. So the learner follows drift
    step          size of a step, for weights of length 1
    step_fit      see `PolynomialAucClassifier`
    max_features  greatest number of columns; `ignored` counts further names, which are not learnt

    Features are numbers, scaled here to unit variance, or text. Each text value is a column of 0 and 1. A
    missing number counts as the mean of its feature. Labels are True and False, 1 and 0, or 1 and -1.

    Weights are scaled to length 1 after every step, which does not change AUC and keeps them from shrinking
    to 0. O(m + d^2) an instance, 40 (m + d) bytes; `to_bytes` and `from_bytes` store and load the learner.

    >>> learner = PolynomialAucLearner()
    >>> for i in range(200):
    ...     learner.learn_one({"a": i % 7, "b": i % 2}, i % 7 > 3)
    >>> learner.predict_proba_one({"a": 6, "b": 0})[True] > learner.predict_proba_one({"a": 1, "b": 0})[True]
    True
    """

    def __init__(
        self,
        degree: int = 30,
        *,
        half_life: float = 1000.0,
        step: float = 0.3,
        step_fit: PairFit = "damped",
        max_features: int = DEFAULT_MAX_FEATURES,
    ) -> None:
        self._pairs = PairObjective(degree, "polynomial", step_fit).pairs
        self.step_fit = step_fit
        if not is_number(half_life) or not 1.0 <= half_life < math.inf:
            raise ConfigError(
                f"half_life={half_life!r}: give a number of instances, 1 or more; 1000 is usual"
            )
        if not is_number(step) or not 0.0 < step <= 1000.0:
            raise ConfigError(f"step={step!r}: give a number above 0, up to 1000; 0.3 is usual")
        if isinstance(max_features, bool) or not isinstance(max_features, int) or max_features < 1:
            raise ConfigError(f"max_features={max_features!r}: give a whole number, 1 or more")
        self.degree, self.half_life, self.step = degree, float(half_life), float(step)
        self.max_features = max_features
        self.ignored = 0
        self._fade = 0.5 ** (1 / half_life)
        self._orders = np.arange(degree + 1)
        self._columns: dict[Column, int] = {}
        self._absent = np.empty(0)
        self._seen, self._mean, self._variance = np.empty(0), np.empty(0), np.empty(0)
        self._weights, self._squares = np.empty(0), np.empty(0)
        self._sums = np.zeros((2, degree + 1))
        self._instances = 0.0
        self._square = 0.0

    @property
    def weights(self) -> dict[str, float]:
        """Return the weight of each feature by name, for the feature scaled to unit variance.

        The key of a text value is "name=value".
        """
        names = (name if isinstance(name, str) else "=".join(name) for name in self._columns)
        return dict(zip(names, self._weights.tolist(), strict=True))

    def to_bytes(self) -> bytes:
        """Return the wire form of the learner: 40 bytes for each column, 16 for each degree."""
        head = {name: getattr(self, name) for name in _IN_HEAD}
        head["columns"] = columns_head(self._columns)
        of_columns = (self._seen, self._mean, self._variance, self._weights, self._squares)
        arrays = (*of_columns, self._sums.ravel(), np.array([self._instances, self._square]))
        body = b"".join(packed_array(each, "<f8") for each in arrays)
        return framed(MAGIC, VERSION, packed_text(json.dumps(head)) + body)

    @classmethod
    def from_bytes(cls, data: bytes) -> PolynomialAucLearner:
        """Read the wire form of a learner, `data`. Raises a `WireError` for any other bytes."""
        reader = Reader(unframed(data, MAGIC, VERSION, _STATE))
        with reading(_STATE):
            head = read_object(reader.text(), _STATE)
            columns = columns_of_head(head["columns"])
            arrays = [reader.counted_array("<f8") for _ in range(7)]
            reader.end()
            learner = cls(
                whole(head["degree"], 2, 128),
                half_life=head["half_life"],
                step=head["step"],
                step_fit=head["step_fit"],
                max_features=whole(head["max_features"], 1),
            )
            learner.ignored = whole(head["ignored"], 0)
            *of_columns, sums, both = arrays
            learner._instances, learner._square = both.tolist()
            if any(len(each) != len(columns) for each in of_columns):
                raise ValueError("its columns have different lengths")
            learner._sums = sums.reshape(2, learner.degree + 1)
            seen, _, variance, _, squares = of_columns
            masses = np.concatenate([seen, variance, squares, both, learner._sums[:, 0]])
            if not all(np.isfinite(each).all() for each in arrays) or (masses < 0).any():
                raise ValueError("a mass or a square is below 0, or no number")
        learner._columns = columns
        learner._absent = np.array([math.nan if isinstance(column, str) else 0.0 for column in columns])
        learner._seen, learner._mean, learner._variance, learner._weights, learner._squares = of_columns
        return learner

    def learn_one(self, x: Mapping[str, Any], y: Any) -> None:
        """Learn the features `x` of an instance whose label is `y`: 1/0, 1/-1 or a boolean.

        Raises InputError, and learns nothing, if a value cannot be used.
        """
        label = _label(y)
        values = self._values(x, learns=True)
        self._instances = self._instances * self._fade + 1.0
        self._scale_by(values)
        z = self._standardised(values)
        score = float(z @ self._weights)
        self._square = self._square * self._fade + score * score
        scale = self._scale()
        angle = math.acos(max(-1.0, min(1.0, score / scale))) if scale > 0 else math.pi / 2
        self._sums *= self._fade
        if self._sums[1 - label, 0] > 0:
            self._go_up(label, z, angle)
        self._sums[label] += np.cos(self._orders * angle)

    def predict_proba_one(self, x: Mapping[str, Any]) -> dict[bool, float]:
        """Return the probabilities of False and True for the features `x`.

        They follow from a model in which the scores of each class are normal, with equal variance.
        """
        negatives, positives = self._sums
        odds = math.log((positives[0] + 1) / (negatives[0] + 1))
        if negatives[0] > 0 and positives[0] > 0 and (scale := self._scale()) > 0:
            z = self._standardised(self._values(x, learns=False))
            u = float(z @ self._weights) / scale
            low, high = negatives[1] / negatives[0], positives[1] / positives[0]
            squares = (negatives[0] + negatives[2] + positives[0] + positives[2]) / 2
            total = negatives[0] + positives[0]
            within = squares - negatives[0] * low**2 - positives[0] * high**2
            # above 0: a higher score keeps a higher probability
            slope = max(high - low, 1e-3) / max(within / total, 1e-3)
            odds += slope * (u - (low + high) / 2)
        probability = 1 / (1 + math.exp(-odds)) if odds > -500 else 0.0
        return {False: 1 - probability, True: probability}

    def predict_one(self, x: Mapping[str, Any]) -> bool:
        """Return whether True has the higher probability for the features `x`."""
        return self.predict_proba_one(x)[True] > 0.5

    def _scale(self) -> float:
        """Return the score that is scaled to 1; 0 before the first score that is not 0."""
        return _SPAN * math.sqrt(self._square / self._instances) if self._instances else 0.0

    def _go_up(self, label: int, z: FloatArray, angle: float) -> None:
        """Step along the gradient of the mean over pairs of this instance with the other class."""
        others = self._sums[1 - label]
        series = (self._pairs @ others if label else others @ self._pairs) / others[0]
        sine = max(math.sin(angle), _LEAST_SINE)
        slope = float(series @ (self._orders * np.sin(self._orders * angle))) / sine
        share = self._sums[label, 0] / self._sums[:, 0].sum()
        gradient = z * (slope / max(share, 0.01))  # classes have equal weight, unless one is very rare
        gradient -= (gradient @ self._weights) * self._weights
        self._squares = self._squares * self._fade + gradient * gradient
        root = np.sqrt(self._squares)
        self._weights += self.step * np.divide(gradient, root, out=np.zeros_like(root), where=root > 0)
        length = math.sqrt(float(self._weights @ self._weights))
        if length > 0:
            self._weights /= length

    def _values(self, x: Mapping[str, Any], learns: bool) -> FloatArray:
        """Return the values of the columns, with NaN for a missing number.

        `learns`: make a column for a feature that is new.
        """
        found = columns_of(x)  # checks all values before it makes a column
        columns = [self._column(name, learns) for name, _ in found]
        values = self._absent.copy()
        for column, (_, number) in zip(columns, found, strict=True):
            if column is not None:
                values[column] = number
        return values

    def _column(self, name: Column, learns: bool) -> int | None:
        column = self._columns.get(name)
        if column is not None or not learns:
            return column
        if len(self._columns) >= self.max_features:
            self.ignored += 1
            return None
        self._columns[name] = len(self._columns)
        # A text value that was not seen before had the value 0 in all instances.
        absent, seen = (math.nan, 0.0) if isinstance(name, str) else (0.0, self._instances)
        for field, first in (("_absent", absent), ("_seen", seen), *((field, 0.0) for field in _FROM_ZERO)):
            setattr(self, field, np.append(getattr(self, field), first))
        return len(self._columns) - 1

    def _scale_by(self, values: FloatArray) -> None:
        """Update means and variances with the values of an instance.

        At first all instances have equal weight, later their weights fade.
        """
        here = ~np.isnan(values)
        self._seen = np.where(here, self._seen * self._fade + 1.0, self._seen)
        share = np.divide(1.0, self._seen, out=np.zeros_like(values), where=here)
        apart = np.where(here, values - self._mean, 0.0)
        self._mean += share * apart
        self._variance = (1 - share) * (self._variance + share * apart * apart)

    def _standardised(self, values: FloatArray) -> FloatArray:
        """Return the values scaled to mean 0 and variance 1.

        Values of a far instance move towards the mean, as in a fit with reach 1.
        """
        apart = np.where(np.isnan(values), 0.0, values - self._mean)
        varies = self._variance > 0
        z = np.divide(apart, np.sqrt(self._variance), out=np.zeros_like(apart), where=varies)
        square, limit = float(z @ z), float(np.count_nonzero(varies))
        if square > limit:
            z *= math.sqrt(limit / square)
        return z


def _label(y: Any) -> int:
    if np.ndim(y) == 0 and y in (0, 1, -1):
        return int(y == 1)
    raise InputError(f"the label is {y!r}: give True or False, 1 or 0, 1 or -1")
