"""Streams with one drift, as arXiv 2606.07789 makes them, and the predictions of learners on them.

A trial shuffles a data set, so that nothing drifts, and draws a place for the drift. A learner predicts every
event before it learns from it. What a learner predicts before the drift is the same for all kinds of drift,
so it learns this part once; then a copy of it goes on with each kind.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from rocsteady.core.prequential.named import MixedNaiveBayes

from ..papers.data import data_file, read_csv

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int8]
Positions = npt.NDArray[np.int64]

DRIFT_REGION = (0.5, 0.8)
"""The drift begins at a place between these shares of the stream."""

START, JUDGED = 0.25, 0.375
"""Detectors start at the first share of the stream; alarms count from the second share on."""

SKIPPED = 0.75
"""The chance that an event of the chosen class is left out after a drift of the class prior."""

STILL = "no drift"
KINDS = ("class prior", "label swap", "half of a label swap", "feature permutation", "feature filtering")
"""What changes. The third is not of the paper."""

MODES = ("abrupt", "gradual")


@dataclass(frozen=True)
class DataSet:
    """Features (n, m) and labels (n,) of a data set.

    delay  events after the end of a drift within which an alarm detects it; a gradual drift is as long
    """

    name: str
    features: Floats
    labels: Labels
    delay: int


@dataclass(frozen=True)
class Predictions:
    """Labels, scores in [0, 1], and places in the shuffled data set: an event left out has a place, too."""

    labels: Labels
    scores: Floats
    places: Positions

    def __len__(self) -> int:
        return len(self.labels)

    def part(self, begin: int, end: int) -> Predictions:
        """Return the events with places in [begin, end)."""
        first, last = np.searchsorted(self.places, (begin, end))
        return Predictions(self.labels[first:last], self.scores[first:last], self.places[first:last])

    def errors(self) -> npt.NDArray[np.bool_]:
        return (self.scores >= 0.5) != (self.labels == 1)


@dataclass(frozen=True)
class Trial:
    """The predictions from `START` to the drift, and on from there for each (kind, mode).

    judged   the place from which on alarms count
    onset    the place of the drift
    windows  of each mode, places after the onset within which an alarm detects the drift
    after    the predictions of each (kind, mode); (STILL, "") is the stream without a drift, to its end
    """

    judged: int
    onset: int
    windows: dict[str, int]
    before: Predictions
    after: dict[tuple[str, str], Predictions]


class Tree:
    """river's Hoeffding tree, which goes on learning: the learner of the paper."""

    def __init__(self) -> None:
        from river import tree

        self._model: Any = tree.HoeffdingTreeClassifier()

    def learn(self, features: Floats, labels: Labels) -> None:
        for values, label in zip(features.tolist(), (labels == 1).tolist(), strict=True):
            self._model.learn_one(dict(enumerate(values)), label)

    def follow(self, features: Floats, labels: Labels) -> Floats:
        """Predict each event, then learn from it."""
        model, scores = self._model, []
        for values, label in zip(features.tolist(), (labels == 1).tolist(), strict=True):
            instance = dict(enumerate(values))
            said = model.predict_proba_one(instance)
            scores.append(said.get(True, 0.0) if said else 0.5)
            model.learn_one(instance, label)
        return np.array(scores)


class Bayes(Tree):
    """A Gaussian naive Bayes, which goes on learning: river's, by the faster class of this package."""

    def __init__(self) -> None:
        from river import naive_bayes

        self._model = MixedNaiveBayes(naive_bayes.GaussianNB())


class Frozen:
    """scikit-learn's logistic regression, which learns until the detectors start and never again."""

    def learn(self, features: Floats, labels: Labels) -> None:
        from sklearn.linear_model import LogisticRegression

        self._mean, self._deviation = features.mean(0), features.std(0)
        self._deviation[self._deviation == 0] = 1
        self._model = LogisticRegression(max_iter=1_000).fit(self._scaled(features), labels)

    def follow(self, features: Floats, labels: Labels) -> Floats:  # noqa: ARG002
        return np.asarray(self._model.predict_proba(self._scaled(features))[:, 1])

    def _scaled(self, features: Floats) -> Floats:
        return (features - self._mean) / self._deviation


LEARNERS: dict[str, Callable[[], Any]] = {
    "Hoeffding tree, learns on": Tree,
    "naive Bayes, learns on": Bayes,
    "logistic regression, frozen": Frozen,
}


def _read(name: str, file: str, label: str, positive: object, delay: int, features: int) -> DataSet:
    table = read_csv(data_file(file))
    labels = np.array([value == positive for value in table[label].to_pylist()], np.int8)
    numbers = [table[column].to_numpy().astype(float) for column in table.column_names if column != label]
    return DataSet(name, np.column_stack(numbers[:features]), labels, delay)


def data_sets() -> Iterator[DataSet]:
    """Yield the data sets of the paper that are here. Delays are the paper's."""
    yield _read("Electricity", "electricity.csv.gz", "class", "UP", 2_500, 8)
    yield _read("NOAA", "noaa_weather.csv.gz", "target", 1, 1_500, 8)
    yield _read("Covertype", "covtype.csv.gz", "Cover_Type", 2, 2_500, 10)


def generated(events: int = 8_000) -> DataSet:
    """Return a data set of two normal classes, for a quick run without data."""
    rng = np.random.default_rng(3)
    labels = (rng.random(events) < 0.4).astype(np.int8)
    features = rng.normal(size=(events, 3)) + labels[:, np.newaxis] * np.array([1.5, 0.5, 0.0])
    return DataSet("generated", features, labels, 800)


@dataclass(frozen=True)
class _Change:
    """What is drawn once for all kinds of drift of a trial."""

    label: int
    order: Positions
    column: int
    median: float


def _changed(
    kind: str, width: int, features: Floats, labels: Labels, change: _Change, rng: np.random.Generator
) -> tuple[Floats, Labels, Positions]:
    """Return features and labels after the onset, and the places of the events that are not left out.

    An event i after the onset is of the new concept with chance i / width.
    """
    n = len(labels)
    is_new = rng.random(n) < np.arange(n) / width if width else np.ones(n, bool)
    chosen, coin = is_new & (labels == change.label), rng.random(n)
    kept = np.ones(n, bool)
    if kind == "class prior":
        kept = ~(chosen & (coin < SKIPPED))
    elif kind == "label swap":
        labels = np.where(chosen, 1 - labels, labels).astype(np.int8)
    elif kind == "half of a label swap":
        labels = np.where(chosen & (coin < 0.5), 1 - labels, labels).astype(np.int8)
    elif kind == "feature permutation":
        features = np.where(is_new[:, np.newaxis], features[:, change.order], features)
    elif kind == "feature filtering":
        kept = ~(is_new & (features[:, change.column] > change.median))
    else:
        raise ValueError(f"no kind of drift is called {kind!r}")
    places = np.flatnonzero(kept)
    return features[places], labels[places], places


def trials(
    data: DataSet, longest: int, seed: int, learners: Iterable[str] = (), modes: tuple[str, ...] = MODES
) -> Iterator[tuple[str, Trial]]:
    """Yield the name and the trial of each learner, all on one shuffle: that of the seed.

    longest   the shuffle takes so many events of the data set at most
    learners  names of learners, all if none is given
    """
    rng = np.random.default_rng([seed, len(data.labels)])
    taken = rng.permutation(len(data.labels))[:longest]
    onset = int(rng.uniform(*DRIFT_REGION) * len(taken))
    column = int(rng.integers(data.features.shape[1]))
    order = rng.permutation(data.features.shape[1])
    change = _Change(int(rng.integers(2)), order, column, float(np.median(data.features[:, column])))
    shuffled = DataSet(data.name, data.features[taken], data.labels[taken], data.delay)
    for name in learners or LEARNERS:
        yield name, _trial(LEARNERS[name](), shuffled, onset, change, seed, modes)


def _trial(
    model: Any, data: DataSet, onset: int, change: _Change, seed: int, modes: tuple[str, ...]
) -> Trial:
    features, labels, n = data.features, data.labels, len(data.labels)
    start = int(START * n)
    model.learn(features[:start], labels[:start])
    early = model.follow(features[start:onset], labels[start:onset])
    before = Predictions(labels[start:onset], early, np.arange(start, onset))
    still = copy.deepcopy(model).follow(features[onset:], labels[onset:])
    after = {(STILL, ""): Predictions(labels[onset:], still, np.arange(onset, n))}
    windows = {}
    for mode in modes:
        width = data.delay if mode == "gradual" else 0
        windows[mode] = width + data.delay
        end = min(n, onset + windows[mode])
        for number, kind in enumerate(KINDS):
            rng = np.random.default_rng([seed, n, number])
            new, true, places = _changed(kind, width, features[onset:end], labels[onset:end], change, rng)
            scores = copy.deepcopy(model).follow(new, true)
            after[kind, mode] = Predictions(true, scores, onset + places)
    return Trial(int(JUDGED * n), onset, windows, before, after)
