"""The inputs and outputs of a learner: instances in columns, the task, the outcome of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..arrays import BoolArray, FloatArray, Int8Array, Int64Array, UInt64Array
from ..events.columns import ColumnBatch, TextColumn

Record = dict[str, float | str]


@dataclass(frozen=True, eq=False)
class Instances(ColumnBatch):
    """Features and labels of n instances, in the order of the stream.

    numbers     numeric features: (name, float64[n]); NaN is a missing value
    categories  text features: (name, column); code -1 stands for a missing value
    labels      1 and 0, or classes; no label is missing
    hashes      uint64[n], the hashes of the ids (`hash64_of_ids`)

    >>> ages = ("age", np.array([3.0, np.nan]))
    >>> given = Instances((ages,), (), np.array([1, 0], np.int8), np.zeros(2, np.uint64))
    >>> given.records(), given.answers()
    ([{'age': 3.0}, {}], [True, False])
    """

    numbers: tuple[tuple[str, FloatArray], ...]
    categories: tuple[tuple[str, TextColumn], ...]
    labels: Int8Array | TextColumn
    hashes: UInt64Array

    def __len__(self) -> int:
        return len(self.hashes)

    def records(self) -> list[Record]:
        """Return a dict of each instance's features by name, without missing values. O(values)."""
        names = [name for name, _ in (*self.numbers, *self.categories)]
        if not names:
            return [{} for _ in range(len(self))]
        columns: list[list[Any]] = [column.tolist() for _, column in self.numbers]
        columns += [column.to_list() for _, column in self.categories]
        # a loop: it is a quarter faster than a comprehension, and making these dicts takes half of the
        # harness's time
        records: list[Record] = list(map(dict, map(zip, repeat(names), zip(*columns, strict=True))))
        for row in np.flatnonzero(self.incomplete()).tolist():
            records[row] = {
                name: value for name, value in records[row].items() if value is not None and value == value
            }
        return records

    def matrix(self) -> FloatArray:
        """Return the numeric features, float64[n, d]."""
        if not self.numbers:
            return np.empty((len(self), 0))
        return np.column_stack([column for _, column in self.numbers])

    def answers(self) -> list[bool] | list[str]:
        """Return the labels in the form that a learner learns: whether each is positive, or its class."""
        if isinstance(self.labels, TextColumn):
            return [text or "" for text in self.labels.to_list()]
        answers: list[bool] = (self.labels == 1).tolist()
        return answers

    def incomplete(self) -> BoolArray:
        """Return for each instance whether it lacks a feature."""
        lacking: BoolArray = np.asarray(np.isnan(self.matrix()).any(axis=1))
        for _, column in self.categories:
            lacking |= column.codes < 0
        return lacking

    def __reduce__(self) -> tuple[Any, ...]:
        return Instances, (self.numbers, self.categories, self.labels, self.hashes)


class Task(NamedTuple):
    """What a learner must predict.

    is_binary  labels are 1 and 0, and scores are probabilities of 1; otherwise labels are classes
    threshold  the least score that is predicted positive: above 0, up to 1
    classes    all classes, if they are known beforehand: scikit-learn's learners ask for them
    scores     whether a learner gives a score for each of `classes`
    """

    is_binary: bool
    threshold: float = 0.5
    classes: tuple[str, ...] = ()
    scores: bool = False


Output = float | str | list[float]
"""The answer of a learner for an instance: the score of label 1, a class, or a list of scores by class."""


class Outcome(NamedTuple):
    """The predictions of a learner for n instances.

    scores     float64[n]: NaN for an instance that was not tested or failed; 0 if the task has classes.
    predicted  int8[n] of 1 and 0, with 0 for an instance that was not tested or failed. With classes: a list,
               with None for such an instance. A learner that has no prediction yet gives the negative class,
               or the class "", which no instance has. If it must give scores of classes, it gives each of C
               classes 1/C. The predicted class is the class with the greatest score, the first if several are
               equal.
    failures   (row, one sentence) of the instances at which the learner raised an error or gave an answer
               that is no prediction, each once, in order.
    class_scores
               float64[n, C]: the score of each class, NaN for an instance that was not tested or failed.
               None: the task does not ask for these scores.
    """

    scores: FloatArray
    predicted: Int8Array | list[str | None]
    failures: list[tuple[int, str]]
    class_scores: FloatArray | None = None


class Learner(Protocol):
    """A classifier that learns from a stream, in one fold."""

    def run(self, instances: Instances, weights: Int64Array, tests: BoolArray) -> Outcome:
        """Predict each instance that is tested, then learn it `weights` times, in the order of the stream.

        A learner that fails at an instance goes on with the next. KeyboardInterrupt, SystemExit and
        MemoryError are no failures of the learner: they propagate.
        """

    def to_bytes(self) -> bytes:
        """Return the learner's state, for `LearnerSpec.make`.

        Raises InputError if the state is too long, or cannot be written.
        """

    def restore(self, data: bytes) -> None:
        """Set the state that `to_bytes` returned."""


def outcome_of(
    task: Task, outputs: Sequence[Output | None] | FloatArray, failures: list[tuple[int, str]]
) -> Outcome:
    """Return the outcome made of the learner's outputs; None stands for an instance without a prediction."""
    if task.scores:
        none = [np.nan] * len(task.classes)
        found = np.array([none if output is None else output for output in outputs], np.float64)
        found = found.reshape(len(outputs), len(task.classes))
        missing = np.isnan(found[:, 0])
        decided = [task.classes[place] for place in found.argmax(axis=1).tolist()]
        predicted = [None if gone else name for gone, name in zip(missing.tolist(), decided, strict=True)]
        return Outcome(np.where(missing, np.nan, 0.0), predicted, failures, found)
    if not task.is_binary:
        scores = np.array([np.nan if output is None else 0.0 for output in outputs])
        return Outcome(scores, [None if output is None else str(output) for output in outputs], failures)
    scores = np.array(outputs, np.float64)  # None becomes NaN
    return Outcome(scores, (scores >= task.threshold).astype(np.int8), failures)
