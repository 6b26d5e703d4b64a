"""The built-in learners, river's and this package's, made for the features of the first instances."""

from __future__ import annotations

import math
import numbers
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from ..errors import ConfigError
from ..learning.aum.learner import AumLearner
from ..learning.polynomial.learner import PolynomialAucLearner
from ..process.imports import optional_module
from .instances import Instances, Record, Task
from .models import Make

MODULES = {
    "logistic": "linear_model",
    "naive-bayes": "naive_bayes",
    "hoeffding": "tree",
    "adaptive-forest": "forest",
}
"""The module and the class of each river learner, by the name that a user writes."""

OWN: dict[str, Callable[[], Any]] = {"aum": AumLearner, "polynomial-auc": PolynomialAucLearner}
"""This package's learners by name: they need no other package."""

NAMED = (*MODULES, *OWN)


def named_learner(name: str, factory: str, task: Task, seed: int, batch: int) -> Make:
    """Return a function that makes the built-in learner `factory`. Raises MissingPackageError without river.

    logistic         numbers scaled to unit variance, text one-hot; softmax if there are classes
    naive-bayes      a normal distribution for each number, frequencies for each text
    hoeffding        a Hoeffding tree; text is nominal
    adaptive-forest  an adaptive random forest with the given seed; text is nominal
    aum              a linear model that lowers the area under min(FP, FN) of the last 1,000 instances;
                     numbers scaled to unit variance, text one-hot
    polynomial-auc   a linear model that climbs a polynomial in place of AUC, of two classes; features as
                     for aum
    """
    if factory == "polynomial-auc" and not task.is_binary:
        raise ConfigError(
            f"learner {name!r} learns AUC, which is of two classes; take another, or name a positive class"
        )
    if factory in OWN:
        model = OWN[factory]()
        return lambda _: model
    part = MODULES[factory]
    module = optional_module(f"river.{part}", f"learner {name!r}")
    makers: dict[str, Callable[[Instances], Any]] = {
        "logistic": lambda instances: _logistic(module, task, instances),
        "naive-bayes": lambda instances: _naive_bayes(module, batch, instances),
        "hoeffding": lambda _: module.HoeffdingTreeClassifier(),
        "adaptive-forest": lambda _: module.ARFClassifier(seed=seed),
    }
    maker = makers[factory]
    return lambda instances: None if instances is None else maker(instances)


def _logistic(module: Any, task: Task, instances: Instances) -> Any:
    preprocessing = optional_module("river.preprocessing", "logistic")
    model = module.LogisticRegression() if task.is_binary else module.SoftmaxRegression()
    if not instances.categories:
        return preprocessing.StandardScaler() | model
    compose = optional_module("river.compose", "logistic")
    scaled = compose.SelectType(numbers.Number) | preprocessing.StandardScaler()
    return scaled + (compose.SelectType(str) | preprocessing.OneHotEncoder(drop_zeros=True)) | model


def _naive_bayes(module: Any, batch: int, instances: Instances) -> Any:
    """Return river's Gaussian naive Bayes only for tables of numbers.

    One instance at a time it takes seven times as long as `MixedNaiveBayes`.
    """
    gaussian = module.GaussianNB()
    return gaussian if batch > 1 and not instances.categories else MixedNaiveBayes(gaussian)


class MixedNaiveBayes:
    """Naive Bayes for numbers and text: river's Gaussian naive Bayes for numbers, counts for text.

    A text value has the probability (n + 1) / (N + V) in a class: it was seen n times among N values of the
    class. V counts the values seen in all classes, and one more for a value that is yet to come (Laplace's
    rule).
    """

    def __init__(self, gaussian: Any) -> None:
        self._gaussian = gaussian
        self._values: dict[str, set[str]] = defaultdict(set)
        self._counts: dict[Any, dict[str, Counter[str]]] = {}

    def learn_one(self, x: Record, y: Any) -> None:
        """Count the feature values of an instance of class `y`."""
        amounts, texts = _parted(x)
        self._gaussian.learn_one(amounts, y)
        counts = self._counts.setdefault(y, defaultdict(Counter))
        for name, value in texts.items():
            self._values[name].add(value)
            counts[name][value] += 1

    def predict_proba_one(self, x: Record) -> dict[Any, float]:
        """Return the probability of every class seen so far, for the features `x`."""
        amounts, texts = _parted(x)
        logs = self._gaussian.joint_log_likelihood(amounts)
        if not logs:
            return {}
        for label in logs:
            counts = self._counts[label]
            for name, value in texts.items():
                seen = counts.get(name, _NONE)
                room = seen.total() + len(self._values.get(name, ())) + 1
                logs[label] += math.log((seen[value] + 1) / room)
        greatest = max(logs.values())
        weights = {label: math.exp(log - greatest) for label, log in logs.items()}
        total = sum(weights.values())
        return {label: weight / total for label, weight in weights.items()}


_NONE: Counter[str] = Counter()


def _parted(x: Record) -> tuple[dict[str, float], dict[str, str]]:
    """Return the features that are numbers, and those that are text."""
    texts = {name: value for name, value in x.items() if isinstance(value, str)}
    return {name: value for name, value in x.items() if not isinstance(value, str)}, texts
