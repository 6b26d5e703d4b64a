"""What a learner is given and what it answers: instances in columns, the task, the outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..arrays import BoolArray, FloatArray, Int8Array, Int64Array, UInt64Array
from ..events.columns import TextColumn

Record = dict[str, float | str]


@dataclass(frozen=True, eq=False)
class Instances:
    """Features and labels of n instances, in the order of the stream.

    numbers     features that are numbers: (name, float64[n]); NaN is a missing one
    categories  features that are text: (name, column); code -1 is a missing one
    labels      1 and 0; or classes, none missing
    hashes      uint64[n] of their ids (`hash64_of_ids`)

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
        """Return the features of each by name, without those that are missing; made once. O(values)."""
        return self._records

    def matrix(self) -> FloatArray:
        """Return the numbers, float64[n, d]; made once."""
        return self._matrix

    def answers(self) -> list[bool] | list[str]:
        """Return what a learner learns: whether each is positive, or its class."""
        if isinstance(self.labels, TextColumn):
            return [text or "" for text in self.labels.to_list()]
        answers: list[bool] = (self.labels == 1).tolist()
        return answers

    def incomplete(self) -> BoolArray:
        """Return which of them lack a feature."""
        lacking: BoolArray = np.asarray(np.isnan(self._matrix).any(axis=1))
        for _, column in self.categories:
            lacking |= column.codes < 0
        return lacking

    def take(self, rows: Int64Array) -> Instances:
        """Return the chosen ones, in the order given."""
        labels = self.labels
        return Instances(
            tuple((name, column[rows]) for name, column in self.numbers),
            tuple((name, column.take(rows)) for name, column in self.categories),
            labels.take(rows) if isinstance(labels, TextColumn) else labels[rows],
            self.hashes[rows],
        )

    def part(self, start: int, end: int) -> Instances:
        """Return the instances [start, end); numbers are views of these."""
        if start == 0 and end == len(self):
            return self
        labels = self.labels
        return Instances(
            tuple((name, column[start:end]) for name, column in self.numbers),
            tuple((name, column.part(start, end)) for name, column in self.categories),
            labels.part(start, end) if isinstance(labels, TextColumn) else labels[start:end],
            self.hashes[start:end],
        )

    @classmethod
    def concat(cls, parts: Sequence[Instances]) -> Instances:
        """Put parts with the same features, one at least, one after another."""
        first = parts[0]
        if len(parts) == 1:
            return first
        labels: Any = [part.labels for part in parts]
        is_text = isinstance(first.labels, TextColumn)
        return cls(
            tuple(
                (name, np.concatenate([dict(part.numbers)[name] for part in parts]))
                for name, _ in first.numbers
            ),
            tuple(
                (name, TextColumn.concat([dict(part.categories)[name] for part in parts]))
                for name, _ in first.categories
            ),
            TextColumn.concat(labels) if is_text else np.concatenate(labels),
            np.concatenate([part.hashes for part in parts]),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Instances, (self.numbers, self.categories, self.labels, self.hashes)

    @cached_property
    def _matrix(self) -> FloatArray:
        if not self.numbers:
            return np.empty((len(self), 0))
        return np.column_stack([column for _, column in self.numbers])

    @cached_property
    def _records(self) -> list[Record]:
        names = [name for name, _ in (*self.numbers, *self.categories)]
        if not names:
            return [{} for _ in range(len(self))]
        columns: list[list[Any]] = [column.tolist() for _, column in self.numbers]
        columns += [column.to_list() for _, column in self.categories]
        # a quarter faster than a comprehension, of what is half the harness's time
        records: list[Record] = list(map(dict, map(zip, repeat(names), zip(*columns, strict=True))))
        for row in np.flatnonzero(self.incomplete()).tolist():
            records[row] = {
                name: value for name, value in records[row].items() if value is not None and value == value
            }
        return records


class Task(NamedTuple):
    """What is learnt.

    is_binary  labels are positive or not, and scores are probabilities of positive; else labels are classes
    threshold  predicted positive from this score on: above 0, up to 1
    classes    all classes, where they are known beforehand: scikit-learn's learners ask for them
    """

    is_binary: bool
    threshold: float = 0.5
    classes: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """What a learner said of n instances.

    scores     float64[n]: NaN where it was not tested or failed; 0 for a class
    predicted  int8[n] of 1 and 0, 0 where it was not tested or failed; or classes, None where it was not or
               did. No opinion yet is the negative class, or the class "", which no instance has
    failures   (row, one sentence) of the instances at which it raised an error or said what is no
               prediction, each once, in order
    """

    scores: FloatArray
    predicted: Int8Array | list[str | None]
    failures: list[tuple[int, str]]


class Learner(Protocol):
    """A classifier that learns from a stream, in one fold."""

    def run(self, instances: Instances, weights: Int64Array, tests: BoolArray) -> Outcome:
        """Predict each instance that is tested, then learn it so many times; in order.

        A learner that fails at an instance goes on with the next. KeyboardInterrupt, SystemExit and
        MemoryError are nobody's failure and pass.
        """

    def to_bytes(self) -> bytes:
        """Return what `LearnerSpec.load` goes on from. Raises InputError for too much, or what cannot be."""


def outcome_of(task: Task, outputs: Sequence[float | str | None], failures: list[tuple[int, str]]) -> Outcome:
    """Return the outcome of scores, or classes, None where there are none."""
    if not task.is_binary:
        scores = np.array([np.nan if output is None else 0.0 for output in outputs])
        return Outcome(scores, [None if output is None else str(output) for output in outputs], failures)
    scores = np.array(outputs, np.float64)  # None is NaN
    return Outcome(scores, (scores >= task.threshold).astype(np.int8), failures)
