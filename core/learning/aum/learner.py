"""`AumLearner`: AUM learnt online, with the methods of river's learners.

AUM is no sum over events: the term of an event depends on the order of all other events. So one event has no
loss that a learner could lower; only a window of events has. The learner keeps the last `window` instances.
After every `every` instances it makes one step along the gradient of the window's AUM. A step takes O(k log
k) time at most, and O(k) by selection; the `every` instances share this cost. The loss is AUM of rates with a
margin, which is convex, and has no minimum at constant scores (`descent`). An instance that comes twice
counts twice.

Probabilities follow from scores. The model of the scores in the window is a normal distribution for each
class, with one variance (linear discriminant analysis of a single number).

With several classes there is one model for each class against the others, and the probabilities are divided
by their sum.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Hashable, Mapping
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ...arrays import FloatArray, Int64Array
from ...encoding.fields import Reader, framed, packed_array, packed_text, unframed
from ...encoding.json import read_object, reading, whole
from ...errors import ConfigError, InputError
from ..features import Column, columns_head, columns_of, columns_of_head
from ..learner_settings import check_number, check_whole
from .aum import NO_WEIGHTS, aum_of_classes

MAGIC = b"RSAM"
VERSION = 1
_STATE = "the state of an AumLearner"

_ROOM = 256
_LEAST_SLOPE = 1e-6
MARGIN = 1.0
"""The wanted distance between the scores of both classes."""


class _Model:
    """The model of one class.

    It has weights of the scaled columns, and the parameters of the probability of a score.
    """

    def __init__(self) -> None:
        self.weights = np.zeros(0)
        self.coefficients: list[float] = []
        self.slope = 0.0
        self.offset = 0.0

    def probability(self, score: float) -> float:
        odds = self.slope * score + self.offset
        return 1.0 / (1.0 + math.exp(-odds)) if odds > -700.0 else 0.0


class _Chunk(NamedTuple):
    """The instances between two steps, as arrays.

    The arrays are the columns and the values of all instances one after another, the number of values of each
    instance, and the labels.
    """

    columns: Any
    values: FloatArray
    sizes: Any
    labels: list[Hashable]


def _chunk_of(rows: list[list[tuple[int, float]]], labels: list[Hashable]) -> _Chunk:
    cells = list(chain.from_iterable(rows))
    columns = np.fromiter((column for column, _ in cells), np.int64, len(cells))
    values = np.fromiter((value for _, value in cells), np.float64, len(cells))
    return _Chunk(columns, values, np.fromiter(map(len, rows), np.int64, len(rows)), labels)


def _rows_of(chunk: _Chunk) -> list[list[tuple[int, float]]]:
    cells = list(zip(chunk.columns.tolist(), chunk.values.tolist(), strict=True))
    ends = np.cumsum(chunk.sizes).tolist()
    return [cells[start:end] for start, end in pairwise([0, *ends])]


def _read_chunk(reader: Reader, labels: list[Hashable], columns: int) -> _Chunk:
    """Read the next chunk of a stored state. Raises ValueError for a chunk that contradicts itself."""
    places, values = reader.counted_array("<i8"), reader.counted_array("<f8")
    sizes, classes = reader.counted_array("<i8"), reader.counted_array("<i8")
    if len(places) != len(values) or len(sizes) != len(classes) or not np.isfinite(values).all():
        raise ValueError("a step has parts of different lengths, or values that are no numbers")
    if (sizes < 0).any() or (sizes > len(values)).any() or sizes.sum() != len(values):
        raise ValueError("a step has instances of impossible sizes")
    for each, end in ((places, columns), (classes, len(labels))):
        if len(each) and not 0 <= each.min() <= each.max() < end:
            raise ValueError("a step names a column or a class that is not there")
    return _Chunk(places, values, sizes, [labels[place] for place in classes.tolist()])


def _stored_label(label: object) -> Any:
    """Return a class in the form in which JSON stores it."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, bool | int | str) or (isinstance(label, float) and math.isfinite(label)):
        return label
    raise InputError(f"the class {label!r} cannot be kept in a state: give text, a number or a bool")


class AumLearner:
    """A linear classifier that lowers AUM of the last instances, with the methods of river's learners.

    window  number of instances that a step looks at: a multiple of `every`
    every   number of instances between two steps
    step    length of a step, as a multiple of the gradient

    Numbers are scaled by the mean and variance of all instances so far; a missing number counts as the mean.
    A text value is a column of 0 and 1. Memory is proportional to the window: the learner forgets a text that
    has left the window.

    Raises ConfigError for a setting, InputError for a feature that is neither a finite number nor text.

    >>> learner = AumLearner(window=70, every=7)
    >>> for i in range(700):
    ...     learner.learn_one({"x": float(i % 7)}, i % 7 > 3)
    >>> learner.predict_proba_one({"x": 6.0})[True] > 0.9 > 0.1 > learner.predict_proba_one({"x": 0.0})[True]
    True
    """

    def __init__(self, window: int = 1000, every: int = 20, step: float = 0.3) -> None:
        check_whole("every", every, 1)
        check_whole("window", window, 2)
        check_number("step", step, 0.0, 1000.0)
        if window % every:
            raise ConfigError(f"window={window} is no multiple of every={every}; give one that is")
        self.window = window
        self.every = every
        self.step = step
        self._columns: dict[Column, int] = {}
        self._rows: list[list[tuple[int, float]]] = []
        self._labels: list[Hashable] = []
        self._chunks: deque[_Chunk] = deque(maxlen=window // every)
        self._classes: dict[Hashable, None] = {}
        self._models: dict[Hashable, _Model] = {}
        # for numbers; a column of a text counts 0 values
        self._count, self._mean, self._square = np.zeros((3, 0))
        self._means: list[float] = []

    def to_bytes(self) -> bytes:
        """Return the wire form: 16 bytes for each value in the window, 24 for each column, 8 for each weight.

        Raises InputError for a class that is neither a bool, a number nor text.
        """
        classes = list(self._classes)
        known = {(type(label), label): place for place, label in enumerate(classes)}

        def places(labels: list[Hashable]) -> Int64Array:
            keys = ((type(label), label) for label in labels)
            return np.array([known.setdefault(key, len(known)) for key in keys], np.int64)

        windows = []
        for chunk in (*self._chunks, _chunk_of(self._rows, self._labels)):
            windows += [packed_array(chunk.columns, "<i8"), packed_array(chunk.values, "<f8")]
            windows += [packed_array(each, "<i8") for each in (chunk.sizes, places(chunk.labels))]
        floats = [self._count, self._mean, self._square, np.array(self._means)]
        for model in self._models.values():
            floats += [model.weights, np.array(model.coefficients), np.array([model.slope, model.offset])]
        head = {
            "window": self.window,
            "every": self.every,
            "step": self.step,
            "columns": columns_head(self._columns),
            "labels": [_stored_label(label) for _, label in known],
            "classes": len(classes),
            "chunks": len(self._chunks),
            "models": [_stored_label(label) for label in self._models],
        }
        parts = [packed_text(json.dumps(head)), *windows, *(packed_array(each, "<f8") for each in floats)]
        return framed(MAGIC, VERSION, b"".join(parts))

    @classmethod
    def from_bytes(cls, data: bytes) -> AumLearner:
        """Return the learner whose `to_bytes` gave `data`. Raises a `WireError` for any other bytes."""
        reader = Reader(unframed(data, MAGIC, VERSION, _STATE))
        with reading(_STATE):
            head = read_object(reader.text(), _STATE)
            learner = cls(whole(head["window"]), whole(head["every"]), head["step"])
            learner._columns = columns_of_head(head["columns"])
            labels = [_stored_label(label) for label in head["labels"]]
            steps = whole(head["chunks"], 0, learner.window // learner.every)
            *learned, waiting = (_read_chunk(reader, labels, len(learner._columns)) for _ in range(steps + 1))
            if len(waiting.labels) >= learner.every or any(
                len(chunk.labels) != learner.every for chunk in learned
            ):
                raise ValueError("a step is of another size")
            learner._chunks.extend(learned)
            learner._rows, learner._labels = _rows_of(waiting), waiting.labels
            learner._classes = dict.fromkeys(labels[: whole(head["classes"], 0, len(labels))])
            moments = [reader.counted_array("<f8") for _ in range(4)]
            learner._count, learner._mean, learner._square = moments[:3]
            learner._means = moments[3].tolist()
            sizes = {len(each) for each in moments}
            for label in head["models"]:
                model = learner._models[_stored_label(label)] = _Model()
                model.weights, coefficients = reader.counted_array("<f8"), reader.counted_array("<f8")
                model.coefficients = coefficients.tolist()
                model.slope, model.offset = reader.counted_array("<f8").tolist()
                sizes |= {len(model.weights), len(coefficients)}
            reader.end()
            if len(sizes) > 1 or max(sizes) > len(learner._columns):
                raise ValueError("its columns have different lengths")
        return learner

    def learn_one(self, x: Mapping[str, Any], y: Hashable) -> None:
        """Learn the features `x` of an instance of class `y`; make a step after every `every` instances."""
        if y is None or y != y:
            raise InputError(f"the label is {y!r}: every instance needs a class; leave it out")
        known = self._columns
        self._rows.append([(known.setdefault(name, len(known)), value) for name, value in columns_of(x)])
        self._labels.append(y)
        if len(self._rows) == self.every:
            self._chunks.append(_chunk_of(self._rows, self._labels))
            self._rows, self._labels = [], []
            self._step()

    def predict_proba_one(self, x: Mapping[str, Any]) -> dict[Any, float]:
        """Return the probability of every class seen, for the features `x`. O(features).

        Empty before the first step.
        """
        if not self._models:
            return {}
        means, found = self._means, []
        for name, value in columns_of(x):
            column = self._columns.get(name)
            if column is not None and column < len(means):  # otherwise the column has no weight yet
                found.append((column, value - means[column]))
        odds = {}
        for label, model in self._models.items():
            coefficients = model.coefficients
            score = 0.0
            for column, value in found:
                score += coefficients[column] * value
            odds[label] = model.probability(score)
        if len(odds) == 1:
            ((label, p),) = odds.items()
            return {False: 1.0 - p, True: p} if label == 1 else {label: 1.0}
        total = sum(odds.values())
        return {label: p / total if total else 1.0 / len(odds) for label, p in odds.items()}

    def predict_one(self, x: Mapping[str, Any]) -> Any:
        """Return the most probable class of the features `x`; None before the first step."""
        probabilities = self.predict_proba_one(x)
        return max(probabilities, key=lambda label: probabilities[label]) if probabilities else None

    def _step(self) -> None:
        """Update the moments with the new instances, and make a step of every model."""
        self._forget()
        self._learn_moments(self._chunks[-1])
        size = len(self._columns)
        deviation = np.sqrt(self._square / np.maximum(self._count, 1.0))
        inverse = np.where(self._count == 0.0, 1.0, 1.0 / np.where(deviation > 0.0, deviation, np.inf))
        columns, values, sizes = (np.concatenate(part) for part in list(zip(*self._chunks, strict=True))[:3])
        ends = np.concatenate([[0], np.cumsum(sizes)])
        scaled = (values - self._mean[columns]) * inverse[columns]
        matrix = sparse.csr_matrix((scaled, columns, ends), (len(sizes), size))
        labels = [y for chunk in self._chunks for y in chunk.labels]
        self._means = self._mean.tolist()
        self._classes.update(dict.fromkeys(labels))
        are_two = all(label in (0, 1) for label in self._classes)
        for label in [True] if are_two else self._classes:
            self._models.setdefault(label, _Model())
        for label, model in self._models.items():
            model.weights = np.append(model.weights, np.zeros(size - len(model.weights)))
            positive = np.fromiter((y == label for y in labels), np.int8, len(labels))
            self._move(model, matrix, positive)
            model.coefficients = (model.weights * inverse).tolist()

    def _move(self, model: _Model, matrix: Any, positive: Any) -> None:
        """Make one step along the gradient, and compute the parameters of the probabilities again."""
        mass = int(positive.sum())
        scores = np.asarray(matrix @ model.weights)
        # one class: AUM is 0 and gives no gradient, but the class counts are kept
        if not 0 < mass < len(positive):
            odds = math.log((mass + 1) / (len(positive) - mass + 1))
            model.offset = odds - model.slope * float(scores.mean())
            return
        shifted = scores - positive * MARGIN + 0.0
        loss = aum_of_classes(positive, shifted, NO_WEIGHTS, rate=True, together=True)
        model.weights = model.weights - self.step * np.asarray(matrix.T @ loss.gradient)
        scores = np.asarray(matrix @ model.weights)
        above, below = scores[positive == 1], scores[positive == 0]
        variance = float(mass * above.var() + (len(scores) - mass) * below.var()) / len(scores)
        gap = float(above.mean() - below.mean())
        # above 0: higher scores keep higher probabilities
        model.slope = max(gap / max(variance, 1e-3), _LEAST_SLOPE)
        middle = float(above.mean() + below.mean()) / 2.0
        model.offset = math.log(mass / (len(scores) - mass)) - model.slope * middle

    def _learn_moments(self, new: _Chunk) -> None:
        """Update count, mean and sum of squared deviations of each number with new rows (Chan et al.)."""
        size = len(self._columns)
        moments = (self._count, self._mean, self._square)
        old_count, old_mean, old_square = (np.append(each, np.zeros(size - len(each))) for each in moments)
        is_number = np.fromiter((isinstance(name, str) for name in self._columns), bool, size)
        count = np.bincount(new.columns, minlength=size) * is_number
        sums = np.bincount(new.columns, new.values, size)
        mean = np.where(count > 0, sums / np.maximum(count, 1), old_mean)
        apart = (new.values - mean[new.columns]) ** 2
        total = old_count + count
        share = count / np.maximum(total, 1.0)
        square = np.bincount(new.columns, apart, size) * is_number
        self._count = total
        self._mean = old_mean + (mean - old_mean) * share
        self._square = old_square + square + (mean - old_mean) ** 2 * old_count * share

    def _forget(self) -> None:
        """Drop the columns of texts that no instance of the window has, once there are many such columns."""
        live = np.unique(np.concatenate([chunk.columns for chunk in self._chunks]))
        if len(self._columns) <= 2 * len(live) + _ROOM:
            return
        alive = set(live.tolist())
        kept = [i for name, i in self._columns.items() if isinstance(name, str) or i in alive]
        place = np.full(len(self._columns), -1)
        place[kept] = np.arange(len(kept))
        self._columns = {name: int(place[i]) for name, i in self._columns.items() if place[i] >= 0}
        moved = [chunk._replace(columns=place[chunk.columns]) for chunk in self._chunks]
        self._chunks = deque(moved, self._chunks.maxlen)
        held = np.array([i for i in kept if i < len(self._count)], np.int64)
        moments = (self._count, self._mean, self._square)
        self._count, self._mean, self._square = (moment[held] for moment in moments)
        for model in self._models.values():
            model.weights = model.weights[held]
