"""Learners around models: instance by instance, or in steps of several instances.

Invariant
    A learner's answers do not depend on how its instances were cut into calls of `run`. A step is
    `batch` instances of the stream, learnt or not. The model as it was before the step predicts all of them,
    and learns them at the step's end. Instances that wait for the end of a step are a part of the state. A
    table of predictions always has as many rows as a step, each instance at its place in the step. So sums
    inside a model are the same bit for bit.

`NoisyLearner` wraps any learner in a noise filter, which flips predictions to another class with probability
p (Bifet et al. 2015, section 4.1). The filter makes a learner worse by a known amount, to see which test
detects the difference. With c classes and accuracy p0, flipping evenly to another class costs p (c p0 - 1) /
(c - 1) of accuracy. (The paper divides by c, because there a flip may return the same class.) The random
draws are hashes of the learner's seed and the instance's id: so the draws are the same however a stream is
cut.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ..arrays import BoolArray, FloatArray, Int64Array
from ..events.columns import TextColumn
from ..ids.chances import uniform_of_hashes
from .calls import NoPrediction, RiverCalls, SklearnCalls, calls_of, pandas_module
from .instances import Instances, Learner, Outcome, Output, Task, outcome_of
from .wire import (
    contradiction,
    error_text,
    model_bytes,
    model_of_bytes,
    pack_learner,
    unpack_learner,
)

_Result = TypeVar("_Result")

Make = Callable[[Instances | None], Any]
"""A function that makes the model. For some learners it returns None until the first instances show the
features.
"""


class _ModelLearner:
    """The base class of both kinds of learners.

    It makes the model once the features are known, and holds its state.
    """

    def __init__(self, name: str, task: Task, batch: int, make: Make) -> None:
        self._name = name
        self._task = task
        self._batch = batch
        self._make = make
        self._calls: RiverCalls | SklearnCalls | None = None
        model = make(None)
        if model is not None:
            self._use(model)

    def _use(self, model: Any, has_learnt: bool = False) -> RiverCalls | SklearnCalls:
        self._calls = calls = calls_of(self._name, model, self._task, has_learnt)
        if self._batch > 1 and isinstance(calls, RiverCalls) and calls.takes_many:
            pandas_module()
        return calls

    def _ready(self, instances: Instances) -> RiverCalls | SklearnCalls:
        calls = self._calls or self._use(self._make(instances))
        calls.check(self._name, instances)
        return calls

    def _settings(self) -> dict[str, Any]:
        return {"batch": self._batch, "is_binary": self._task.is_binary}

    def to_bytes(self) -> bytes:
        """See `Learner`."""
        model = b"" if self._calls is None else model_bytes(self._name, self._calls.model)
        head = self._settings() | {
            "model": None if self._calls is None else len(model),
            "has_learnt": self._calls is not None and self._calls.has_learnt,
        }
        return pack_learner(self._name, head, model + self._waiting_bytes())

    def restore(self, data: bytes) -> None:
        """See `Learner`."""
        head, body = unpack_learner(self._name, data, self._settings())
        size = head.get("model")
        if not (size is None or isinstance(size, int)) or (size or 0) > len(body):
            raise contradiction(f"a model of {size} bytes")
        if size is not None:
            made = None if self._calls is None else self._calls.model
            self._use(model_of_bytes(self._name, made, body[:size]), bool(head.get("has_learnt")))
        self._wait_for(body[size or 0 :])

    def _waiting_bytes(self) -> bytes:
        return b""

    def _wait_for(self, data: bytes) -> None:
        if data:
            raise contradiction(f"{len(data)} bytes too many")

    def _could_not(self, what: str, error: Exception) -> str:
        why = str(error) if isinstance(error, NoPrediction) else error_text(error)
        return f"learner {self._name!r} could not {what}: {why}"


class OneByOne(_ModelLearner):
    """A learner that predicts an instance, learns it, and goes on to the next instance."""

    def __init__(self, name: str, task: Task, make: Make) -> None:
        super().__init__(name, task, 1, make)

    def run(self, instances: Instances, weights: Int64Array, tests: BoolArray) -> Outcome:
        """See `Learner`. An instance that the model fails to learn gets no prediction either."""
        calls = self._ready(instances)
        given = calls.inputs(instances)
        answers: Sequence[bool | str] = instances.answers()
        outputs: list[Output | None] = [None] * len(given)
        failures: list[tuple[int, str]] = []
        for row, (features, answer, weight, is_tested) in enumerate(
            zip(given, answers, weights.tolist(), tests.tolist(), strict=True)
        ):
            failure = None
            if is_tested:
                try:
                    outputs[row] = calls.predict(features)
                except MemoryError:
                    raise
                except Exception as error:
                    failure = self._could_not("predict it", error)
            try:
                for _ in range(weight):
                    calls.learn(features, answer)
            except MemoryError:
                raise
            except Exception as error:
                outputs[row] = None
                failure = failure or self._could_not("learn it", error)
            if failure is not None:
                failures.append((row, failure))
        return outcome_of(self._task, outputs, failures)


class BySteps(_ModelLearner):
    """A learner that predicts and learns `batch` instances at a time, by tables if the model takes tables.

    An instance that lacks a feature is predicted and learnt by itself: a table cannot leave a feature out. A
    failure to learn counts as a failure of the instance that ends the step.
    """

    def __init__(self, name: str, task: Task, batch: int, make: Make) -> None:
        self._waiting: list[Instances] = []
        self._place = 0
        super().__init__(name, task, batch, make)

    def run(self, instances: Instances, weights: Int64Array, tests: BoolArray) -> Outcome:
        """See `Learner`."""
        calls = self._ready(instances)
        outputs: list[Output | None] = [None] * len(instances)
        failures: dict[int, str] = {}
        start = 0
        while start < len(instances):
            end = min(len(instances), start + self._batch - self._place)
            part = instances.part(start, end)
            for row, output in self._predicted(calls, part, np.flatnonzero(tests[start:end])):
                if isinstance(output, Exception):
                    failures[start + row] = self._could_not("predict it", output)
                else:
                    outputs[start + row] = output
            rows = np.repeat(np.arange(end - start), weights[start:end])
            if len(rows):
                self._waiting.append(part.take(rows))
            self._place += end - start
            if self._place == self._batch:
                if (failure := self._learn(calls)) is not None:
                    outputs[end - 1] = None
                    failures.setdefault(end - 1, failure)
                self._place = 0
            start = end
        return outcome_of(self._task, outputs, sorted(failures.items()))

    def _predicted(
        self, calls: RiverCalls | SklearnCalls, part: Instances, rows: Int64Array
    ) -> list[tuple[int, Output | Exception]]:
        """Return (row, prediction or error) for some rows of a part, in any order."""
        found: list[tuple[int, Output | Exception]] = []
        singles = rows
        if calls.takes_many:
            whole, singles = _by_completeness(part, rows)

            def predict_whole(table: Instances) -> list[tuple[int, Output | Exception]]:
                outputs = calls.predict_many(table)
                return [(row, outputs[self._place + row]) for row in whole.tolist()]

            if len(whole):
                table = np.full(self._batch, whole[0])
                table[self._place + whole] = whole
                predicted = _tried(predict_whole, part.take(table))
                if isinstance(predicted, Exception):
                    singles = rows  # predict the rows one by one, to find the failing row
                else:
                    found = predicted
        inputs = calls.inputs(part.take(singles)) if len(singles) else ()
        for row, features in zip(singles.tolist(), inputs, strict=True):
            found.append((row, _tried(calls.predict, features)))
        return found

    def _learn(self, calls: RiverCalls | SklearnCalls) -> str | None:
        """Learn the instances that wait for the end of the step.

        Return a sentence about the first failure, or None.
        """
        if not self._waiting:
            return None
        step, self._waiting = Instances.concat(self._waiting), []
        errors: list[Exception] = []
        whole, singles = np.arange(0), np.arange(len(step))
        if calls.takes_many:
            whole, singles = _by_completeness(step, singles)
        if len(whole) and (error := _tried(calls.learn_many, step.take(whole))) is not None:
            errors += [error] * len(whole)
        lone = step.take(singles)
        answers: Sequence[bool | str] = lone.answers()
        for features, answer in zip(calls.inputs(lone), answers, strict=True):
            if (error := _tried(calls.learn, features, answer)) is not None:
                errors.append(error)
        if not errors:
            return None
        what = f"learn {len(errors)} of the {len(step)} instances of a step that ends here"
        return self._could_not(what, errors[0])

    def _waiting_bytes(self) -> bytes:
        return pickle.dumps((self._place, self._waiting), pickle.HIGHEST_PROTOCOL)

    def _wait_for(self, data: bytes) -> None:
        try:
            self._place, self._waiting = pickle.loads(data)
        except MemoryError:
            raise
        except Exception as damage:
            raise contradiction(error_text(damage)) from damage


def _tried(call: Callable[..., _Result], *given: Any) -> _Result | Exception:
    """Return the result of a call, or the error that the call raised.

    A MemoryError is not returned but raised.
    """
    try:
        return call(*given)
    except MemoryError:
        raise
    except Exception as error:
        return error


def _by_completeness(instances: Instances, rows: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the rows that lack no feature, and the rows that lack one."""
    lacking = instances.incomplete()[rows]
    return rows[~lacking], rows[lacking]


_WHETHER, _WHICH = 1 << 32, (1 << 32) + 1
"""The streams of random draws have these numbers, which differ from those of folds."""


class NoisyLearner:
    """A learner whose predictions are flipped with probability `chance`; its training does not change.

    Two classes: a flip mirrors the score about the threshold t, [0, t) onto [t, 1] and back, order reversed.
    More classes: a flip draws evenly from the classes that this fold has learnt so far, without the predicted
    class. Before the fold knows another class, no prediction is flipped. Scores of classes: the scores of the
    predicted and of the drawn class change places.
    """

    def __init__(self, name: str, learner: Learner, task: Task, chance: float, seed: int) -> None:
        self._name = name
        self._learner = learner
        self._task = task
        self._chance = chance
        self._seed = seed
        self._seen: list[str] = []

    def run(self, instances: Instances, weights: Int64Array, tests: BoolArray) -> Outcome:
        """See `Learner`."""
        outcome = self._learner.run(instances, weights, tests)
        flips = uniform_of_hashes(instances.hashes, self._seed, _WHETHER) < self._chance
        flips &= ~np.isnan(outcome.scores)
        if self._task.is_binary:
            scores = outcome.scores.copy()
            scores[flips] = mirrored(scores[flips], self._task.threshold)
            return outcome_of(self._task, scores, outcome.failures)
        known_from = self._learnt_from(instances, weights)
        draws = uniform_of_hashes(instances.hashes, self._seed, _WHICH)
        predicted = list(outcome.predicted)
        for row in np.flatnonzero(flips).tolist():
            known = int(np.searchsorted(known_from, row))
            others = [name for name in self._seen[:known] if name != predicted[row]]
            if others:
                flipped = others[int(draws[row] * len(others))]
                if outcome.class_scores is not None:
                    pair = [self._task.classes.index(name) for name in (predicted[row], flipped)]
                    outcome.class_scores[row, pair] = outcome.class_scores[row, pair[::-1]]
                predicted[row] = flipped
        return outcome._replace(predicted=predicted)

    def to_bytes(self) -> bytes:
        """See `Learner`."""
        head = self._settings() | {"seen": self._seen}
        return pack_learner(self._name, head, self._learner.to_bytes())

    def restore(self, data: bytes) -> None:
        """See `Learner`; also restores the learner inside."""
        head, body = unpack_learner(self._name, data, self._settings())
        seen = head.get("seen")
        if not isinstance(seen, list) or not all(isinstance(name, str) for name in seen):
            raise contradiction("its classes are no text")
        self._seen = seen
        self._learner.restore(body)

    def _settings(self) -> dict[str, object]:
        return {"noise": self._chance, "seed": self._seed}

    def _learnt_from(self, instances: Instances, weights: Int64Array) -> Int64Array:
        """Add new classes to the classes seen before.

        Return for each class the row that first had it, -1 = seen before.
        """
        labels = instances.labels
        assert isinstance(labels, TextColumn)  # the task has classes
        rows = np.flatnonzero(weights)
        codes, first = np.unique(labels.codes[rows], return_index=True)
        known_from = [-1] * len(self._seen)
        for place in np.argsort(first).tolist():
            name = labels.values[codes[place]]
            if name not in self._seen:
                self._seen.append(name)
                known_from.append(int(rows[first[place]]))
        return np.array(known_from, np.int64)


def mirrored(scores: FloatArray, threshold: float) -> FloatArray:
    """Return the scores mirrored about a threshold in (0, 1]: each goes to the other side of the threshold.

    >>> mirrored(np.array([0.0, 0.25, 0.5, 0.75, 1.0]), 0.5).tolist()
    [1.0, 0.75, 0.49999999999999994, 0.25, 0.0]
    """
    above = scores >= threshold
    with np.errstate(divide="ignore", invalid="ignore"):
        down = threshold * ((1.0 - scores) / (1.0 - threshold)) if threshold < 1.0 else 0.0 * scores
    up = 1.0 - scores * ((1.0 - threshold) / threshold)
    below = math.nextafter(threshold, 0.0)
    return np.where(above, np.minimum(down, below), np.maximum(up, threshold))
