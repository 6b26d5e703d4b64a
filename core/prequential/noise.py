"""A noise filter: flips predictions to another class with probability p (Bifet et al. 2015, section 4.1).

It makes a learner worse by design, to see which test detects the difference. With c classes and accuracy p0,
flipping evenly to another class costs p (c p0 - 1) / (c - 1) of accuracy. (The paper divides by c, because
there a flip may return the same class.)

The random draws are hashes of the learner's seed and the instance's id: the same however a stream is cut.
"""

from __future__ import annotations

import math

import numpy as np

from ..arrays import BoolArray, FloatArray, Int64Array
from ..events.columns import TextColumn
from ..ids.chances import uniform_of_hashes
from .instances import Instances, Learner, Outcome, Task, outcome_of
from .wire import contradiction, pack_learner, unpack_learner

_WHETHER, _WHICH = 1 << 32, (1 << 32) + 1
"""Numbers of the streams of random draws, different from those of folds."""


class NoisyLearner:
    """A learner whose predictions are flipped with probability `chance`; its training does not change.

    Two classes: a flip mirrors the score about the threshold t, [0, t) onto [t, 1] and back, order reversed.
    More classes: a flip draws evenly from the classes that this fold has learnt so far, without the predicted
    class. Before the fold knows another class, no prediction is flipped.
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
                predicted[row] = others[int(draws[row] * len(others))]
        return outcome._replace(predicted=predicted)

    def to_bytes(self) -> bytes:
        """See `Learner`."""
        head = self._settings() | {"seen": self._seen}
        return pack_learner(self._name, head, self._learner.to_bytes())

    def restore(self, data: bytes) -> None:
        """Set the state that `to_bytes` returned, also of the learner inside."""
        head, body = unpack_learner(self._name, data, self._settings())
        seen = head.get("seen")
        if not isinstance(seen, list) or not all(isinstance(name, str) for name in seen):
            raise contradiction("its classes are no text")
        self._seen = seen
        self._learner.restore(body)

    def _settings(self) -> dict[str, object]:
        return {"noise": self._chance, "seed": self._seed}

    def _learnt_from(self, instances: Instances, weights: Int64Array) -> Int64Array:
        """Add new classes to those seen; return the row that first had each class, -1 = seen before."""
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
    """Return scores mirrored about a threshold in (0, 1], each on the other side of the threshold.

    >>> mirrored(np.array([0.0, 0.25, 0.5, 0.75, 1.0]), 0.5).tolist()
    [1.0, 0.75, 0.49999999999999994, 0.25, 0.0]
    """
    above = scores >= threshold
    with np.errstate(divide="ignore", invalid="ignore"):
        down = threshold * ((1.0 - scores) / (1.0 - threshold)) if threshold < 1.0 else 0.0 * scores
    up = 1.0 - scores * ((1.0 - threshold) / threshold)
    below = math.nextafter(threshold, 0.0)
    return np.where(above, np.minimum(down, below), np.maximum(up, threshold))
