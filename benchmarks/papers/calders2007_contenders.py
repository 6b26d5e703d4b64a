"""Who learns to rank in calders2007, and on what: AUC on rows held out, and seconds of training."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from rocsteady.core.arrays import FloatArray, Int8Array
from rocsteady.core.learning.polynomial.classifier import PolynomialAucClassifier
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.svm import LinearSVC

from .data import examples

PAIRS = 200_000
_PAIR_BATCH = 1000
_LEAST = 5
"""Rows of a class."""

Scorer = Callable[[Any], FloatArray]
"""Rows to scores."""


@dataclass(frozen=True)
class Rows:
    """Some rows of a data set."""

    features: Any
    labels: Int8Array

    def take(self, index: np.ndarray) -> Rows:
        return Rows(self.features[index], self.labels[index])


def data_of(name: str, seed: int, most: int) -> tuple[Rows, Rows]:
    """Return two random halves of a data set, by class, of so many rows at most; constant columns are out."""
    given = _all(name)
    rng = np.random.default_rng(seed)
    halves: list[list[np.ndarray]] = [[], []]
    for label in (0, 1):
        rows = rng.permutation(np.flatnonzero(given.labels == label))
        share = len(rows) / len(given.labels)
        count = min(max(_LEAST, round(most * share)), len(rows) // 2)
        halves[0].append(rows[:count])
        halves[1].append(rows[-count:])
    train, test = (given.take(np.sort(np.concatenate(half))) for half in halves)
    if sparse.issparse(given.features):
        varies = np.asarray(abs(train.features).sum(axis=0)).ravel() > 0
    else:
        varies = train.features.min(axis=0) < train.features.max(axis=0)
    return Rows(train.features[:, varies], train.labels), Rows(test.features[:, varies], test.labels)


_READ: dict[str, Rows] = {}


def _all(name: str) -> Rows:
    """Return all rows; dense where half of the entries or more are there, or columns are few."""
    if name not in _READ:
        given = examples(name)
        features = given.features
        few = features.shape[1] <= 64 or features.nnz > features.shape[0] * features.shape[1] / 2
        _READ[name] = Rows(features.toarray() if few else features.tocsr(), given.labels)
    return _READ[name]


def pair_sampling(rows: Rows, seed: int = 1) -> FloatArray:
    """Return weights after PAIRS random pairs of a positive and a negative: steps down their logistic loss.

    Adagrad in batches: what sampling costs does not depend on the number of rows.
    """
    rng = np.random.default_rng(seed)
    positives, negatives = (np.flatnonzero(rows.labels == label) for label in (1, 0))
    weights = np.zeros(rows.features.shape[1])
    squares = np.full(len(weights), 1e-12)
    for _ in range(PAIRS // _PAIR_BATCH):
        up = rows.features[rng.choice(positives, _PAIR_BATCH)]
        down = rows.features[rng.choice(negatives, _PAIR_BATCH)]
        pull = expit(-(up @ weights - down @ weights))
        gradient = (up.T @ pull - down.T @ pull) / _PAIR_BATCH
        squares += gradient**2
        weights += 0.1 * gradient / np.sqrt(squares)
    return weights


def _polynomial(**settings: Any) -> Callable[[Rows], Scorer]:
    def train(rows: Rows) -> Scorer:
        model = PolynomialAucClassifier(**settings).fit(rows.features, rows.labels)
        return model.decision_function  # type: ignore[no-any-return]

    return train


def _estimator(make: Callable[[], Any]) -> Callable[[Rows], Scorer]:
    def train(rows: Rows) -> Scorer:
        return make().fit(rows.features, rows.labels).decision_function  # type: ignore[no-any-return]

    return train


def _pairs(rows: Rows) -> Scorer:
    weights = pair_sampling(rows)
    return lambda features: np.asarray(features @ weights)


OURS = "polynomial, damped"
PAPER = "polynomial, as in the paper"
SOFT = "sigmoid"
LOGISTIC = "logistic regression"
SVM = "linear SVM"
SAMPLING = "pair sampling"

CONTENDERS: dict[str, Callable[[Rows], Scorer]] = {
    OURS: _polynomial(),
    PAPER: _polynomial(step_fit="least_squares", direction="gradient", reach=None),
    SOFT: _polynomial(objective="sigmoid"),
    LOGISTIC: _estimator(lambda: LogisticRegression(max_iter=1000)),
    SVM: _estimator(lambda: LinearSVC(dual=False, max_iter=5000)),
    SAMPLING: _pairs,
}


class Result(NamedTuple):
    """Of one contender on one split."""

    auc: float
    seconds: float


def trained(name: str, train: Rows, test: Rows) -> Result:
    """Train one of CONTENDERS; the time is the processor's."""
    start = time.process_time()
    scorer = CONTENDERS[name](train)
    seconds = time.process_time() - start
    return Result(float(roc_auc_score(test.labels, scorer(test.features))), seconds)


def contest(name: str, seeds: Sequence[int], most: int) -> dict[str, list[Result]]:
    """Return the results of all contenders over random halves of a data set."""
    results: dict[str, list[Result]] = {contender: [] for contender in CONTENDERS}
    for seed in seeds:
        train, test = data_of(name, seed, most)
        for contender in CONTENDERS:
            results[contender].append(trained(contender, train, test))
    return results
