"""The sums over the data that a scan gathers for a PolynomialAucClassifier. Sums merge in any order.

A fit scans for FeatureSums, then for LineSums, then alternately for GradientSums and LineSums (Calders &
Jaroszewicz 2007: two scans an iteration). A distributed scan differs from a local scan by rounding alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ...arrays import FloatArray
from ...errors import InputError
from ...events.inputs import as_array, as_numbers
from ...measures.step_polynomials import nodes_and_transform
from ..features import check_size, ranges_of, sparse_squares
from .chebyshev import chebyshev_values, widen_ranges
from .standardised_rows import Slopes, Standardiser, blocks_of

Label = Any
Classes = tuple[Label, Label]
"""The two labels of a fit; the second label is the positive class."""

NOT_FINITE = "features are no finite numbers in this scan: every scan must give the same rows as the first"

_PIECE = 512
"""How many scores have their polynomials in memory at a time: at degree 30 they take 254 KB, which fit into
the cache.
"""

_SHARES = 2.0 ** np.array([-9, -7, -5, -3, -1])
"""Shares of the direction, scaled to the length of the weights, at which ranges of scores are measured."""


class ClassMoments(NamedTuple):
    """Moments of the rows of a class: weight, mean of each feature, and sum of squares around each mean."""

    weight: float
    mean: FloatArray
    squares: FloatArray

    def merged(self, other: ClassMoments) -> ClassMoments:
        """Return the moments of the rows of both (Chan, Golub & LeVeque 1979)."""
        weight = self.weight + other.weight
        share = other.weight / weight
        apart = other.mean - self.mean
        squares = self.squares + other.squares + apart * apart * (self.weight * share)
        return ClassMoments(weight, self.mean + apart * share, squares)


class FeatureSums:
    """The sums of the first scan: moments of every feature in every class, and the range of every feature."""

    def __init__(self) -> None:
        self.rows = 0
        self.classes: dict[Label, ClassMoments] = {}
        self.low = self.high = np.empty(0)

    def add(self, features: Any, labels: npt.NDArray[Any], weights: FloatArray | None) -> None:
        """Add rows (`checked_rows`). O(values).

        Raises InputError for a third class, or a value that is not finite.
        """
        try:
            distinct = np.unique(labels).tolist()
        except TypeError as problem:
            raise InputError(f"labels cannot be compared: {problem}; give two of one type") from None
        for label in distinct:
            for block in blocks_of(features, labels == label, weights):
                chosen = block.is_positive
                if chosen.any():
                    part = block.features[chosen]
                    self._include(*ranges_of(part))
                    self._merge_class(label, _moments(part, block.weights[chosen]))
        self.rows += len(labels)

    def _include(self, low: FloatArray, high: FloatArray) -> None:
        bad = np.flatnonzero(~(np.isfinite(low) & np.isfinite(high)))
        if len(bad):
            value = low[bad[0]] if not np.isfinite(low[bad[0]]) else high[bad[0]]
            raise InputError(
                f"feature {bad[0]} has the value {value}: a feature is a finite number; fill missing "
                "ones in before"
            )
        check_size(low, high)
        if not len(self.low):
            self.low, self.high = low, high
        elif len(low) != len(self.low):
            raise InputError(
                f"rows of {len(self.low)} features, and of {len(low)}: give all of them the same"
            )
        else:
            self.low, self.high = np.minimum(self.low, low), np.maximum(self.high, high)

    def _merge_class(self, label: Label, moments: ClassMoments) -> None:
        held = self.classes.get(label)
        if held is None and len(self.classes) == 2:
            names = ", ".join(repr(name) for name in [*self.classes, label])
            raise InputError(
                f"labels of three classes, {names}: AUC is of two; choose one as the positive class"
            )
        self.classes[label] = moments if held is None else held.merged(moments)

    def merge(self, other: FeatureSums) -> None:
        """Add the sums of another scan, of other rows."""
        if len(other.low):
            self._include(other.low, other.high)
        for label, moments in other.classes.items():
            self._merge_class(label, moments)
        self.rows += other.rows


def _moments(part: Any, weights: FloatArray) -> ClassMoments:
    """Return the moments of rows, dense or CSR. O(values)."""
    total = float(weights.sum())
    mean = weights @ part / total
    if sparse.issparse(part):
        return ClassMoments(total, mean, sparse_squares(part, weights, mean, total))
    apart = part - mean
    return ClassMoments(total, mean, weights @ (apart * apart))


@dataclass(frozen=True, eq=False)
class GradientTask:
    """The task of a gradient scan: the point at which GradientSums compute the gradient."""

    standardiser: Standardiser
    classes: Classes
    slopes: Slopes


class GradientSums:
    """The gradient of the objective by the weights, (m,), gathered in one scan. A row costs O(m + d)."""

    def __init__(self, task: GradientTask) -> None:
        self.task = task
        self.rows = 0
        self.gradient = np.zeros(len(task.slopes.weights))

    def add(self, features: Any, labels: npt.NDArray[Any], weights: FloatArray | None) -> None:
        """Add rows (`checked_rows`). Raises InputError for a label that is neither class."""
        task = self.task
        for block in blocks_of(features, positives_of(labels, task.classes, weights), weights):
            self.gradient += task.standardiser.of(block.features).gradient(task.slopes, block)
        self.rows += len(labels)

    def merge(self, other: GradientSums) -> None:
        """Add the sums of another scan, of other rows."""
        self.gradient += other.gradient
        self.rows += other.rows


class Span(NamedTuple):
    """An interval of scores that is scaled to [-1, 1]; a span of length 0 is scaled to 0."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """The score that is scaled to 0."""
        return self.low + (self.high - self.low) / 2

    @property
    def half(self) -> float:
        """The distance from the middle to the score that is scaled to 1."""
        return (self.high - self.low) / 2

    def united(self, other: Span) -> Span:
        """Return the smallest span that contains both."""
        return Span(min(self.low, other.low), max(self.high, other.high))


NO_SCORES = Span(np.inf, -np.inf)
"""The span of no scores: the union with another span is the other span."""


@dataclass(frozen=True, eq=False)
class LineTask:
    """The task of a line scan: the two score functions of LineSums.

    They are the scores by some weights, and the scores by a direction.

    shares  shares of the direction, ascending, above 0; the scan gathers the range of the scores by
            weights + share * direction, for each share
    """

    standardiser: Standardiser
    classes: Classes
    degree: int
    weights: FloatArray
    direction: FloatArray
    shares: FloatArray

    @staticmethod
    def along(
        standardiser: Standardiser, classes: Classes, degree: int, weights: FloatArray, direction: FloatArray
    ) -> LineTask:
        """Return the task with the shares in `_SHARES`."""
        shares = _SHARES * (np.linalg.norm(weights) / np.linalg.norm(direction))
        return LineTask(standardiser, classes, degree, weights, direction, shares)


class LineSums:
    """Sums of T_r(a) T_s(b), r + s <= d, over the rows of each class.

    A line search needs no other sums.

    a and b are scores by the weights and by the direction, scaled by the spans of the scores seen so far.
    When a span grows, the sums are converted to the new scale: T_r of the new scale is a series of T_0 ...
    T_r of the old scale, with no coefficient above 2, so that no digits are lost. So the scan needs no
    earlier scan for the range. A row costs O(m + d^2).

    sums    (2, d + 1, d + 1): of negatives and of positives
    ranges  ranges of a by class, which show whether the weights separate the classes
    lows, highs  least and greatest score by weights + share * direction, one for each share
    """

    def __init__(self, task: LineTask) -> None:
        self.task = task
        self.rows = 0
        self.sums = np.zeros((2, task.degree + 1, task.degree + 1))
        self.spans = NO_SCORES, NO_SCORES
        self.ranges = [NO_SCORES, NO_SCORES]
        self.lows = np.full(len(task.shares), np.inf)
        self.highs = np.full(len(task.shares), -np.inf)

    def add(self, features: Any, labels: npt.NDArray[Any], weights: FloatArray | None) -> None:
        """Add rows (`checked_rows`). Raises InputError for a label that is neither class."""
        task = self.task
        for block in blocks_of(features, positives_of(labels, task.classes, weights), weights):
            rows = task.standardiser.of(block.features)
            first, second = rows.scores(task.weights), rows.scores(task.direction)
            self._include(_span(first), _span(second))
            widen_ranges(first, second, task.shares, self.lows, self.highs)
            for positive in (0, 1):
                chosen = np.flatnonzero(block.is_positive == positive)
                if len(chosen):
                    self.ranges[positive] = self.ranges[positive].united(_span(first[chosen]))
                for begin in range(0, len(chosen), _PIECE):
                    part = chosen[begin : begin + _PIECE]
                    self._add_class(positive, first[part], second[part], block.weights[part])
        self.rows += len(labels)

    def _add_class(self, positive: int, first: FloatArray, second: FloatArray, weights: FloatArray) -> None:
        by_first, by_second = np.empty((2, self.task.degree + 1, len(first)))
        chebyshev_values(first, self.spans[0].middle, self.spans[0].half, weights, by_first)
        chebyshev_values(second, self.spans[1].middle, self.spans[1].half, np.ones(len(first)), by_second)
        self.sums[positive] += by_first @ by_second.T

    def _include(self, first: Span, second: Span) -> None:
        """Widen the spans until they hold the scores, and convert the sums to the new scale."""
        spans = self.spans[0].united(first), self.spans[1].united(second)
        if spans != self.spans:
            self.sums, self.spans = self._sums_in(spans), spans

    def _sums_in(self, spans: tuple[Span, Span]) -> FloatArray:
        """Return the sums in the scale of wider spans. O(d^3)."""
        by_first, by_second = (
            turned(old, new, self.task.degree) for old, new in zip(self.spans, spans, strict=True)
        )
        return np.asarray(by_first @ self.sums @ by_second.T)

    def merge(self, other: LineSums) -> None:
        """Add the sums of another scan, of other rows."""
        self._include(*other.spans)
        self.sums += other._sums_in(self.spans)
        self.ranges = [held.united(span) for held, span in zip(self.ranges, other.ranges, strict=True)]
        self.lows, self.highs = np.minimum(self.lows, other.lows), np.maximum(self.highs, other.highs)
        self.rows += other.rows


def turned(old: Span, new: Span, degree: int) -> FloatArray:
    """Return M, (d + 1, d + 1), that converts sums from the scale of one span to that of another.

    T_r(u) = sum of M[r, k] T_k(v), k <= r, where u is scaled by the new span and v by the old span.

    The old span lies within the new span, or is `NO_SCORES`, whose sums are 0. O(d^3).
    """
    if old in (new, NO_SCORES):
        return np.eye(degree + 1)
    nodes, transform = nodes_and_transform(degree + 1)
    values = np.empty((degree + 1, degree + 1))
    chebyshev_values(old.middle + old.half * nodes, new.middle, new.half, np.ones(degree + 1), values)
    return np.tril(values @ transform.T)


def _span(scores: FloatArray) -> Span:
    span = Span(float(scores.min()), float(scores.max()))
    if not np.isfinite(span.low + span.high):
        raise InputError(NOT_FINITE)
    return span


def positives_of(
    labels: npt.NDArray[Any], classes: Classes, weights: FloatArray | None = None
) -> npt.NDArray[np.bool_]:
    """Return which labels are the second class, bool[n].

    Raises InputError if a label of weight above 0 is neither class.
    """
    is_positive = np.asarray(labels == classes[1], np.bool_)
    neither = ~is_positive & (labels != classes[0])
    if weights is not None:
        neither &= weights > 0
    if neither.any():
        wrong = labels[neither][:1].tolist()[0]
        raise InputError(
            f"a label is {wrong!r}, and the first scan had {classes[0]!r} and {classes[1]!r} alone: every "
            "scan must give the same rows"
        )
    return is_positive


Sums = FeatureSums | GradientSums | LineSums


def checked_rows(features: Any, labels: npt.ArrayLike, weights: npt.ArrayLike | None) -> tuple[Any, Any, Any]:
    """Return features (n, m), dense or CSR, n labels, and n weights or None. Raises InputError.

    The function does not check that features are finite: FeatureSums does.
    """
    if sparse.issparse(features):
        features = features.tocsr()  # type: ignore[attr-defined]
    else:
        try:
            features = as_array("features", features)
            if features.dtype.kind not in "biuf":
                features = features.astype(np.float64)
        except (TypeError, ValueError) as problem:
            raise InputError(f"features are not numbers: {problem}; encode text as numbers before") from None
    label_array = as_array("labels", labels)
    if features.ndim != 2 or label_array.ndim != 1 or features.shape[0] != len(label_array):
        raise InputError(
            f"features of shape {features.shape} and labels of shape {label_array.shape}: give (n, m), (n,)"
        )
    if not features.shape[1]:
        raise InputError(f"features of shape {features.shape}: give at least 1 feature (0 feature(s) found)")
    if label_array.dtype.kind == "f" and np.isnan(label_array).any():
        raise InputError(
            f"labels[{int(np.isnan(label_array).argmax())}] is nan: leave rows without a label out"
        )
    if weights is None:
        return features, label_array, None
    weight_array = as_numbers("weights", weights)
    if weight_array.shape != label_array.shape:
        raise InputError(
            f"weights of shape {weight_array.shape}: give one for each of {len(label_array)} rows"
        )
    bad = np.flatnonzero(~((weight_array >= 0) & np.isfinite(weight_array)))
    if len(bad):
        raise InputError(
            f"weights[{bad[0]}] is {weight_array[bad[0]]}: a weight is a finite number, 0 or above"
        )
    return features, label_array, weight_array
