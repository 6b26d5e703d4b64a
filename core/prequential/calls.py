"""Calls models in two styles: river's (one dict at a time) and scikit-learn's (`partial_fit` on a matrix).

Both styles read a model's answer in the same way (`readers`): as a score in [0, 1] or as a class.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arrays import FloatArray
from ..errors import ConfigError
from ..events.numbers import is_held
from ..process.imports import optional_module
from ..settings.classes import class_text, named_classes
from .instances import Instances, Output, Task

_ROUNDING = 1e-9
"""How far outside [0, 1] rounding may bring a probability."""


class NoPrediction(Exception):  # noqa: N818  the end of a learner's sentence, not an error of ours
    """Raised if the answer of a model is no prediction; the message says why."""


class RiverCalls:
    """Calls a model in river's style: `learn_one`, and `predict_proba_one` or, without it, `predict_one`.

    Models that take tables are called by `predict_proba_many` and `learn_many`.
    """

    def __init__(self, model: Any, task: Task, has_learnt: bool) -> None:
        self.model = model
        self.takes_many = _takes_many(model)
        """Whether every step of the model takes tables."""
        self.has_learnt = has_learnt
        self._read, self._read_label = readers(task)
        self.learn: Callable[[Any, bool | str], None] = model.learn_one if has_learnt else self._learn_first
        has_probabilities = callable(getattr(model, "predict_proba_one", None))
        self.predict: Callable[[Any], Output] = self._first if has_probabilities else self._label

    def check(self, name: str, instances: Instances) -> None:
        """Accept any features: dicts hold numbers and text."""

    def inputs(self, instances: Instances) -> Sequence[Any]:
        """Return for every instance the input of `predict` and `learn`: a dict of its features."""
        return instances.records()

    def _learn_first(self, given: Any, answer: bool | str) -> None:
        self.model.learn_one(given, answer)
        self.has_learnt, self.learn = True, self.model.learn_one

    def _first(self, given: Any) -> Output:
        """Predict the first instance, and find out which method of the model predicts.

        Some models have a `predict_proba_one` that only raises NotImplementedError.
        """
        try:
            found = self.model.predict_proba_one(given)
        except NotImplementedError:
            self.predict = self._label
            return self._label(given)
        read, ask = self._read, self.model.predict_proba_one
        self.predict = lambda given: read(ask(given))
        return read(found)

    def _label(self, given: Any) -> Output:
        found = self.model.predict_one(given)
        if found is None and not self.has_learnt:
            return self._read({})
        return self._read_label(found)

    def predict_many(self, instances: Instances) -> list[Output]:
        """Predict all instances with one call on a table."""
        table = _table(instances)
        try:
            found = self.model.predict_proba_many(table)
        except NotImplementedError:
            labels = self.model.predict_many(table).tolist()
            return [self._read_label(label) for label in labels] or [self._read({})] * len(table)
        names = list(found.columns)
        if not names:
            return [self._read({})] * len(table)
        rows = found.to_numpy().tolist()
        return [self._read(dict(zip(names, row, strict=True))) for row in rows]

    def learn_many(self, instances: Instances) -> None:
        """Learn all instances with one call on a table."""
        self.has_learnt = True
        table = _table(instances)
        self.model.learn_many(table, pandas_module().Series(instances.answers(), index=table.index))


class SklearnCalls:
    """Calls a model in scikit-learn's style: `partial_fit`, and `predict_proba` if the model has it.

    Otherwise `decision_function` predicts (two classes, or scores of classes), otherwise `predict`.

    A decision d is no probability: its score is (1 + d / (1 + |d|)) / 2. The score keeps the order of
    decisions, lies in [0, 1], and is at least 1/2 exactly where the model itself would predict positive.
    Of several classes, the greatest decision keeps the greatest score.
    """

    takes_many = True

    def __init__(self, model: Any, task: Task, has_learnt: bool) -> None:
        self.model = model
        self.has_learnt = has_learnt or hasattr(model, "classes_")
        self._task = task
        self._read, self._read_label = readers(task)
        self._takes_classes = "classes" in inspect.signature(model.partial_fit).parameters

    def check(self, name: str, instances: Instances) -> None:
        """Raise ConfigError if any feature is text."""
        if instances.categories:
            names = ", ".join(repr(each) for each, _ in instances.categories[:3])
            raise ConfigError(
                f"learner {name!r} has partial_fit, which takes no text, as in {names}; leave it out "
                "with --feature, or wrap the learner so that it has learn_one"
            )

    def inputs(self, instances: Instances) -> Sequence[Any]:
        """Return for every instance the input of `predict` and `learn`: a matrix of one row."""
        matrix = instances.matrix()
        return [matrix[row : row + 1] for row in range(len(matrix))]

    def predict(self, given: Any) -> Output:
        """Predict the instance of a matrix of one row."""
        return self._predict(given)[0]

    def learn(self, given: Any, answer: bool | str) -> None:
        """Learn the instance of a matrix of one row."""
        self._learn(given, [answer])

    def predict_many(self, instances: Instances) -> list[Output]:
        """Predict all instances with one call on a matrix."""
        return self._predict(instances.matrix())

    def learn_many(self, instances: Instances) -> None:
        """Learn all instances with one call on a matrix."""
        self._learn(instances.matrix(), instances.answers())

    def _predict(self, matrix: FloatArray) -> list[Output]:
        model = self.model
        if not self.has_learnt:
            return [self._read({})] * len(matrix)
        if hasattr(model, "predict_proba"):
            names = model.classes_.tolist()
            rows = np.asarray(model.predict_proba(matrix)).tolist()
            return [self._read(dict(zip(names, row, strict=True))) for row in rows]
        if (self._task.is_binary or self._task.scores) and hasattr(model, "decision_function"):
            decisions = np.asarray(model.decision_function(matrix), np.float64)
            scores = (1.0 + decisions / (1.0 + np.abs(decisions))) / 2.0
            if self._task.is_binary:
                return [self._read({True: score}) for score in scores.tolist()]
            if scores.ndim == 1:  # for two classes, one number decides between both
                scores = np.column_stack([1.0 - scores, scores])
            names = model.classes_.tolist()
            return [self._read(dict(zip(names, row, strict=True))) for row in scores.tolist()]
        return [self._read_label(label) for label in np.asarray(model.predict(matrix)).tolist()]

    def _learn(self, matrix: FloatArray, answers: Sequence[bool | str]) -> None:
        labels = np.array(answers)
        if self._takes_classes and not self.has_learnt:
            classes = [False, True] if self._task.is_binary else list(self._task.classes)
            self.model.partial_fit(matrix, labels, classes=np.array(classes))
        else:
            self.model.partial_fit(matrix, labels)
        self.has_learnt = True


def calls_of(name: str, model: Any, task: Task, has_learnt: bool = False) -> RiverCalls | SklearnCalls:
    """Return the object that calls a model in its style.

    Raises ConfigError if the model is no learner, or cannot learn the task.
    """
    if callable(getattr(model, "learn_one", None)):
        return RiverCalls(model, task, has_learnt)
    if not callable(getattr(model, "partial_fit", None)):
        raise ConfigError(
            f"learner {name!r}: its factory returns {type(model).__name__}, which learns from no stream; "
            "return an object with learn_one (river) or partial_fit (scikit-learn)"
        )
    if not task.is_binary and not task.classes:
        raise ConfigError(
            f"learner {name!r} learns by partial_fit, which has to know all classes beforehand; name them, "
            "or take a learner with learn_one"
        )
    return SklearnCalls(model, task, has_learnt)


def readers(task: Task) -> tuple[Callable[[Any], Output], Callable[[Any], Output]]:
    """Return a function that reads probabilities by class, and a function that reads a predicted class."""
    if task.scores:
        of_classes = _ClassScores(task.classes)
        return of_classes.read, of_classes.read_label
    return (_score_of, _score_of_label) if task.is_binary else (_class_of, _class_of_label)


def _score_of(found: Any) -> float:
    """Return the probability of True (or 1); 0 if the model has no prediction yet."""
    try:
        score = found.get(True)
        if score is None:
            if not found:
                return 0.0
            if False not in found:
                raise NoPrediction(
                    f"it gave probabilities of {_shown(list(found))}, and classes are True and False"
                )
            score = 0.0 * found[False]
        return _probability(score, found)
    except (AttributeError, TypeError):
        raise _no_probabilities(found) from None


def _probability(score: Any, found: Any) -> float:
    """Return a probability, clipped to [0, 1].

    Raises NoPrediction if it lies outside by more than rounding, TypeError for a value that is no number.
    """
    if type(score) is not float and not is_held(score):
        raise NoPrediction(f"it gave {_shown(found)}; no float64 holds {score}: give a float")
    if 0.0 <= score <= 1.0:
        return score  # type: ignore[no-any-return]
    if -_ROUNDING <= score <= 1.0 + _ROUNDING:
        return min(max(float(score), 0.0), 1.0)
    raise NoPrediction(f"it gave {_shown(found)}; a probability lies between 0 and 1")


def _no_probabilities(found: Any) -> NoPrediction:
    return NoPrediction(f"it gave {_shown(found)}, which is not a probability for each class")


class _ClassScores:
    """Reads a model's answer as a list with the score of each class, in the order of the classes."""

    def __init__(self, classes: Sequence[str]) -> None:
        self._classes = list(classes)
        places = {name: place for place, name in enumerate(classes)}
        self._places = {text: places[name] for text, name in named_classes(classes).items()} | places

    def read(self, found: Any) -> list[float]:
        """Return the probabilities in a dict, in the order of the classes; a class that the dict lacks has 0.

        An empty dict says that the model has no prediction yet: each of C classes has 1/C. Zeros would rank
        the first events, which a learner predicts before it learns, below all later ones.
        """
        scores = [0.0] * len(self._classes)
        try:
            if not found and isinstance(found, dict):
                return [1.0 / len(scores)] * len(scores)
            for name, score in found.items():
                scores[self._place(name)] = _probability(score, found)
        except (AttributeError, TypeError):
            raise _no_probabilities(found) from None
        return scores

    def read_label(self, found: Any) -> list[float]:
        """Return 1 for the class that a model predicts, and 0 for the others."""
        place = self._place(found)
        return [float(place == other) for other in range(len(self._classes))]

    def _place(self, name: Any) -> int:
        place = self._places.get(name if isinstance(name, str) else class_text(name))
        if place is None:
            raise NoPrediction(
                f"it answered for {_shown(name)}, which is none of the classes {_shown(self._classes)}"
            )
        return place


def _score_of_label(found: Any) -> float:
    try:
        if found in (True, False):
            return float(found)
    except (TypeError, ValueError):
        pass
    raise NoPrediction(f"it predicted {_shown(found)}; a prediction is True or False")


def _class_of(found: Any) -> str:
    """Return the most probable class, the first of equally probable classes.

    "" if the model has no prediction yet.
    """
    if not found and isinstance(found, dict):
        return ""
    try:
        if math.isfinite(sum(found.values())):
            return _class_of_label(max(found, key=found.get))
    except (AttributeError, TypeError):
        raise _no_probabilities(found) from None
    raise NoPrediction(f"it gave {_shown(found)}; a probability lies between 0 and 1")


def _class_of_label(found: Any) -> str:
    if isinstance(found, str):
        return found
    raise NoPrediction(f"it predicted {_shown(found)}; a class is text")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _takes_many(model: Any) -> bool:
    """Return whether a model takes tables; a pipeline takes tables if all of its steps do."""
    steps = getattr(model, "steps", None)
    if isinstance(steps, dict) and steps:
        *before, last = steps.values()
        return all(_transforms_many(step) for step in before) and _takes_many(last)
    return all(callable(getattr(model, name, None)) for name in ("learn_many", "predict_proba_many"))


def _transforms_many(step: Any) -> bool:
    for name in ("transformers", "steps"):
        inner = getattr(step, name, None)
        if isinstance(inner, dict):
            return all(_transforms_many(each) for each in inner.values())
    return all(callable(getattr(step, name, None)) for name in ("learn_many", "transform_many"))


def _table(instances: Instances) -> Any:
    """Return a pandas DataFrame of the features."""
    columns: dict[str, Any] = dict(instances.numbers)
    columns |= {name: column.to_list() for name, column in instances.categories}
    return pandas_module().DataFrame(columns, index=range(len(instances)))


def pandas_module() -> Any:
    """Import pandas and return the module. Raises MissingPackageError if pandas is missing."""
    return optional_module("pandas", "a step of several instances")
