"""The settings of a distributed prequential evaluation: learners, folds, and how both are evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, replace

import numpy as np

from ..classes.class_settings import ClassSettings
from ..compare.comparison_settings import ComparisonSettings
from ..compare.comparisons import OF_CLASSES
from ..errors import ConfigError
from ..events.columns import TextColumn
from ..settings.classes import Classes
from ..settings.evaluator import EvaluatorSettings
from ..settings.table import TableSettings
from ..settings.windows import EveryEvents
from .folds import Folds
from .instances import Instances, Task
from .learners import LearnerSpec

_NEVER = EveryEvents(2**62 - 1)
"""The stride of a fold's evaluator: it makes no row by itself, because the machine asks at checkpoints."""


@dataclass(frozen=True)
class PrequentialSettings:
    """k folds of every learner, tested and trained in the order of the stream.

    learners   the learners, each with a name of its own
    folds      how instances are dealt to folds
    evaluator  how predictions are measured. `every` counts instances of the stream, or is a grid of their
               times, so that all learners and folds have their rows at the same moments
    task       what is predicted: 1 and 0 (where 1 stands for `positive` of the evaluator), or a class
    compared   measures by which learners are compared over folds; empty: the usual ones
    alpha      the level of the statistical tests

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

        if self.task.scores:
            _ = self.rows_of_classes  # makes the checks of these settings

        for each in self.evaluator.with_values:
            raise ConfigError(
                f"measure {each.text!r}: the rows of learners have no columns of measures at other values; "
                "leave the value out, and set it for the measure itself"
            )
        object.__setattr__(self, "compared", self.comparison.measures)
        for name in self.compared:
            if name in OF_CLASSES:
                if not self.task.scores:
                    raise ConfigError(
                        f"learners cannot be compared by {name}: only learners with a score of each class "
                        "have it; name the classes with class_scores= (--class-scores)"
                    )
            elif name not in (self.evaluator.measures or ()):
                raise ConfigError(
                    f"learners cannot be compared by {name}: add it to the measures of the rows"
                )

    @property
    def comparison(self) -> ComparisonSettings:
        """The settings of the comparison of learners."""
        return ComparisonSettings(
            self.names,
            self.folds.count,
            self.evaluator.window,
            self.alpha,
            self.task.is_binary,
            self.compared,
            self.task.scores,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the learners, in their order."""
        return tuple(spec.name for spec in self.learners)

    def try_learners(self, numbers: Sequence[str], categories: Sequence[str]) -> None:
        """Make every learner once, for these numeric and text features, before any instance comes.

        Raises a RocsteadyError for a learner that cannot be made, does not take the features, or cannot be
        written and read again: it would most likely fail on a worker, too.
        """
        none, no_text = np.empty(0), TextColumn.of([])
        labels = none.astype(np.int8) if self.task.is_binary else no_text
        columns = tuple((name, none) for name in numbers), tuple((name, no_text) for name in categories)
        for spec in self.learners:
            learner = spec.make(self.task, 0, self.evaluator.window.size)
            nothing = Instances(*columns, labels, np.empty(0, np.uint64))
            learner.run(nothing, np.empty(0, np.int64), np.empty(0, np.bool_))
            spec.make(self.task, 0, self.evaluator.window.size, learner.to_bytes())

    @property
    def of_folds(self) -> EvaluatorSettings:
        """The settings of the evaluator of a fold.

        If `every` counts events, the machine asks for the rows.
        """
        if self.evaluator.every.events:
            return replace(self.evaluator, every=_NEVER)
        return self.evaluator

    @property
    def classes(self) -> Classes | None:
        """The classes, if learners give a score of each class; None if they give one score, or a class."""
        return Classes(self.task.classes) if self.task.scores else None

    @property
    def compiled(self) -> EvaluatorSettings | TableSettings:
        """The settings whose kernels a fold's evaluator needs."""
        return TableSettings(self.of_folds, classes=self.classes) if self.task.scores else self.of_folds

    @property
    def fold_of_classes(self) -> ClassSettings | None:
        """The settings of the evaluator of a fold, if learners give a score of each class; None otherwise."""
        return ClassSettings(self.task.classes, self.of_folds) if self.task.scores else None

    @property
    def rows_of_classes(self) -> ClassSettings | None:
        """The settings of rows, if learners give a score of each class; None if rows are of one score."""
        return ClassSettings(self.task.classes, self.evaluator) if self.task.scores else None

    def meaning(self) -> dict[str, object]:
        """Return the settings that decide the meaning of a state, by name, as JSON values."""
        return {
            **TableSettings(self.evaluator).meaning(),
            "learners": [[spec.name, spec.factory, spec.noise, spec.batch] for spec in self.learners],
            "folds": [*astuple(self.folds)],
            "classes": None if self.task.is_binary else [*self.task.classes],
            "compared": [*self.compared],
            "alpha": self.alpha,
            **({"class_scores": True} if self.task.scores else {}),
        }


def key_of(learner: int, fold: int) -> str:
    """Return the Beam key of a fold of a learner.

    The key never changes, because a job finds a state by its key.

    >>> key_of(3, 7)
    'learner-003-fold-007'
    """
    return f"learner-{learner:03d}-fold-{fold:03d}"


def place_of(key: str) -> tuple[int, int]:
    """Return the numbers of learner and fold from a key.

    >>> place_of("learner-003-fold-007")
    (3, 7)
    """
    _, learner, _, fold = key.split("-")
    return int(learner), int(fold)


def all_keys(learners: Sequence[LearnerSpec], folds: Folds) -> tuple[str, ...]:
    """Return the keys of all folds of all learners, learner by learner."""
    return tuple(key_of(learner, fold) for learner in range(len(learners)) for fold in range(folds.count))
