"""What a distributed prequential evaluation is: the learners, the folds, and how they are measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..compare.settings import ComparisonSettings
from ..errors import ConfigError
from ..events.columns import TextColumn
from ..settings.evaluator import EvaluatorSettings
from ..settings.table import TableSettings
from ..settings.windows import EveryEvents
from .folds import Folds
from .instances import Instances, Task
from .learners import LearnerSpec

_NEVER = EveryEvents(2**62 - 1)
"""The machine of a fold makes rows at the checkpoints of the stream, not of what a fold tested."""


@dataclass(frozen=True)
class PrequentialSettings:
    """k folds of every learner, tested and trained in the order of the stream.

    learners   with names that differ
    folds      how instances are dealt
    evaluator  how they are measured. `every` counts instances of the stream, or is a grid of their times: so
               that all learners and folds have their rows at the same moments
    task       what is predicted: 1 and 0 (`positive` of the evaluator is what 1 stands for), or a class
    compared   measures by which learners are compared over folds; empty: the usual ones
    alpha      the level of the tests

    Raises ConfigError, which names the field and the remedy.
    """

    learners: tuple[LearnerSpec, ...]
    folds: Folds = field(default_factory=Folds)
    evaluator: EvaluatorSettings = field(default_factory=EvaluatorSettings)
    task: Task = field(default_factory=lambda: Task(is_binary=True))
    compared: tuple[str, ...] = ()
    alpha: float = 0.05

    def __post_init__(self) -> None:
        names = [spec.name for spec in self.learners]
        if not names:
            raise ConfigError("learners: there are none; name one with --learner, such as majority")
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ConfigError(f"two learners are named {twice!r}; name one with NAME=module:factory")
        if self.evaluator.curves is not None:
            raise ConfigError("curves are not drawn of folds; evaluate their scores with rocsteady evaluate")
        if not 0 < self.task.threshold < 1:
            raise ConfigError(
                f"threshold={self.task.threshold}: scores of learners are probabilities; give a number "
                "between 0 and 1"
            )

        object.__setattr__(self, "compared", self.comparison.measures)
        for name in self.compared:
            if name not in (self.evaluator.measures or ()):
                raise ConfigError(
                    f"learners cannot be compared by {name}: add it to the measures of the rows"
                )

    @property
    def comparison(self) -> ComparisonSettings:
        """How learners are compared."""
        return ComparisonSettings(
            self.names,
            self.folds.count,
            self.evaluator.window,
            self.alpha,
            self.task.is_binary,
            self.compared,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The learners' names, in their order."""
        return tuple(spec.name for spec in self.learners)

    def try_learners(self, numbers: Sequence[str], categories: Sequence[str]) -> None:
        """Make every learner once, and show it no instance with these features, numbers and text.

        What cannot be made here, does not take them, or cannot be written down and read again, can hardly do
        so on a worker. Raises a RocsteadyError.
        """
        none, no_text = np.empty(0), TextColumn.of([])
        labels = none.astype(np.int8) if self.task.is_binary else no_text
        columns = tuple((name, none) for name in numbers), tuple((name, no_text) for name in categories)
        for spec in self.learners:
            learner = spec.make(self.task, 0, self.window_events)
            nothing = Instances(*columns, labels, np.empty(0, np.uint64))
            learner.run(nothing, np.empty(0, np.int64), np.empty(0, np.bool_))
            spec.load(learner.to_bytes(), self.task, 0, self.window_events)

    @property
    def of_folds(self) -> EvaluatorSettings:
        """How the evaluator of a fold is set: rows every so many events are asked for by the machine."""
        if self.evaluator.every.events:
            return replace(self.evaluator, every=_NEVER)
        return self.evaluator

    @property
    def window_events(self) -> int | None:
        """How many events the window holds, of windows that slide by count."""
        return self.evaluator.window.size

    def meaning(self) -> dict[str, object]:
        """Return what decides the meaning of a state, by name, as JSON has it."""
        return {
            **TableSettings(self.evaluator).meaning(),
            "learners": [[spec.name, spec.factory, spec.noise, spec.batch] for spec in self.learners],
            "folds": [getattr(self.folds, name) for name in ("method", "count", "seed", "prequential")],
            "classes": None if self.task.is_binary else [*self.task.classes],
            "compared": [*self.compared],
            "alpha": self.alpha,
        }


def key_of(learner: int, fold: int) -> str:
    """Return the Beam key of a fold of a learner; it never changes, because state is found by it.

    >>> key_of(3, 7)
    'learner-003-fold-007'
    """
    return f"learner-{learner:03d}-fold-{fold:03d}"


def place_of(key: str) -> tuple[int, int]:
    """Return learner and fold of a key.

    >>> place_of("learner-003-fold-007")
    (3, 7)
    """
    _, learner, _, fold = key.split("-")
    return int(learner), int(fold)


def all_keys(learners: Sequence[LearnerSpec], folds: Folds) -> tuple[str, ...]:
    """Return the keys of all folds of all learners."""
    return tuple(key_of(learner, fold) for learner in range(len(learners)) for fold in range(folds.count))
