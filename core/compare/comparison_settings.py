"""Settings for comparing learners along a stream: learners, folds, measures.

They are checked when they are made.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from ..encoding.json import read_object
from ..errors import ConfigError, check_settings
from ..rows.class_columns import MEANS_NUMBERS
from ..rows.columns import NUMBER_COLUMNS
from ..settings.windows import WINDOWS, LastEvents, Window
from .comparisons import check_measure
from .significance import check_level

MOST_INSTANCES = 1_000_000
"""The most instances of a fold's window if AUCs are compared: the window holds scores of every learner, which
are ranked again at every checkpoint.
"""

TOO_MANY_INSTANCES = f"AUCs are compared over {MOST_INSTANCES:,} instances at the most; take a shorter window"
"""The reason why AUCs are not compared in a window with too many instances."""


@dataclass(frozen=True)
class ComparisonSettings:
    """The comparison of learners that a prequential evaluation makes.

    learners       names of the learners, in the order of their numbers in `FoldReport`s
    folds          number of folds, at least 2
    window         window of the evaluation
    alpha          level of all tests
    compares_aucs  whether DeLong's test is made in every fold; labels are then 1 and 0, and learners give
                   scores
    measures       measures compared over folds, from `COMPARED`; by default auc and accuracy; with
                   `class_scores` auc_macro and accuracy; else, if AUCs are not compared, accuracy and kappa
    class_scores   whether learners give a score of each class

    Raises ConfigError, which names the field and the remedy.

    >>> ComparisonSettings(("tree", "bayes"), 10).measures
    ('auc', 'accuracy')
    """

    learners: tuple[str, ...]
    folds: int
    window: Window = field(default_factory=LastEvents)
    alpha: float = 0.05
    compares_aucs: bool = True
    measures: tuple[str, ...] = ()
    class_scores: bool = False

    def __post_init__(self) -> None:
        if not self.learners or len(set(self.learners)) != len(self.learners):
            raise ConfigError(f"learners={self.learners!r}: give the names of one or more, each its own")
        if isinstance(self.folds, bool) or not isinstance(self.folds, int) or self.folds < 2:
            raise ConfigError(f"folds={self.folds!r}: give a whole number from 2")
        if not isinstance(self.window, WINDOWS):
            raise ConfigError(f"window={self.window!r}: give a window, such as LastEvents(1000)")
        check_level(self.alpha)
        if not self.measures:
            usual = ("auc", "accuracy") if self.compares_aucs else ("accuracy", "kappa")
            object.__setattr__(self, "measures", ("auc_macro", "accuracy") if self.class_scores else usual)
        for measure in self.measures:
            check_measure(measure)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the measures of a `FoldReport`, in their order."""
        return (*NUMBER_COLUMNS, *MEANS_NUMBERS) if self.class_scores else NUMBER_COLUMNS

    @property
    def auc_refusal(self) -> str | None:
        """The reason why AUCs can never be compared in this window; None if they can."""
        if (self.window.size or 0) > MOST_INSTANCES:
            return TOO_MANY_INSTANCES
        if not (self.window.ticks or self.window.signal):
            return None
        kind = str(self.window).partition(":")[0]
        return (
            f"AUCs are compared over the same instances with equal weights, which {kind} windows do not have"
        )

    @property
    def needs_scores(self) -> bool:
        """Whether reports must contain labels and scores."""
        return self.compares_aucs and self.auc_refusal is None and len(self.learners) > 1

    @property
    def needs_times(self) -> bool:
        """Whether reports must contain times as well."""
        return self.needs_scores and self.window.micros > 0

    def to_json(self) -> str:
        """Return the settings that decide what the bytes of a state mean, as a canonical text."""
        return json.dumps(self._meaning())

    def _meaning(self) -> dict[str, Any]:
        return {
            "learners": list(self.learners), "folds": self.folds, "window": str(self.window),
            "alpha": self.alpha, "compares_aucs": self.compares_aucs, "measures": list(self.measures),
            **({"class_scores": True} if self.class_scores else {}),
        }  # fmt: skip

    def check(self, stored: str) -> None:
        """Raise OtherConfigurationError, naming every difference, unless a state has these settings."""
        there = read_object(stored, "the settings of a comparison")
        check_settings(self._meaning(), there)
