"""The settings of an evaluation with more than two classes; they are checked when they are made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import Int64Array
from ..encoding.json import read_object
from ..errors import ConfigError, InputError
from ..evaluator.ranked import z_of
from ..events.columns import TextColumn
from ..rows.class_columns import MOST_PAIRED
from ..settings.classes import MINUS_ONE, ZERO, class_name, class_text, named_classes
from ..settings.evaluator import EvaluatorSettings, config_of
from ..settings.evidence import DEFAULT_BLOCKS
from ..settings.table import TableSettings

MOST_CLASSES = 100_000
"""The most classes of a model: a row of the window is a matrix of their pairs."""


@dataclass(frozen=True)
class ClassSettings:
    """How a model with a score of each class is evaluated.

    classes      the names of the classes, in the order of the scores. Numbers count by value (`class_name`).
    evaluator    window, emission, measures and all else that the row of a class needs. `positive` is
                 refused; with `multi_label` adaptive windows, too.
    multi_label  whether an event may be of any number of classes.
    class_rows   whether each class has rows of its own.
    intervals    whether the means of AUCs have intervals.

    Raises ConfigError, which names the field, the value and the remedy.
    """

    classes: tuple[str, ...]
    evaluator: EvaluatorSettings = field(default_factory=EvaluatorSettings)
    multi_label: bool = False
    class_rows: bool = True
    intervals: bool = True

    def __post_init__(self) -> None:
        given: Any = self.classes
        if isinstance(given, str) or not isinstance(given, Sequence) or not len(given):
            raise ConfigError(
                f"classes={given!r}: give the names of the classes, in the order of the scores, such as "
                "['cat', 'dog']"
            )
        names = tuple(class_name(name) for name in given)
        object.__setattr__(self, "classes", names)
        if len(names) > MOST_CLASSES:
            raise ConfigError(f"{len(names):,} classes: give {MOST_CLASSES:,} at the most")
        texts = [class_text(name) for name in names]
        if len(set(texts)) < len(names):
            twice = next(name for number, name in enumerate(names) if texts[number] in texts[:number])
            raise ConfigError(f"classes: {twice!r} is named twice; every class has one score")
        if "" in names:
            raise ConfigError("classes: a name is empty; give every class a name")
        settings = self.evaluator
        if settings.window.signal is not None and self.multi_label:
            raise ConfigError(
                f"window={str(settings.window)!r}: an adaptive window follows one signal, and an event of "
                "several labels has one of each class; give another kind of window"
            )
        if settings.curves is not None and not self.class_rows:
            raise ConfigError(
                f"curves={settings.curves!r} with class_rows=False: each class has a curve beside its rows; "
                "leave one of both out"
            )
        if settings.positive is not None:
            raise ConfigError(
                f"positive={settings.positive!r}: every class is the positive one in its own row; leave "
                "positive out"
            )
        for name in ("multi_label", "class_rows", "intervals"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"{name}={getattr(self, name)!r}: give True or False")

    @classmethod
    def of_table(cls, table: TableSettings) -> ClassSettings | None:
        """Return the settings of the models of a table; None if its models have one score."""
        if (classes := table.classes) is None:
            return None
        return cls(classes.names, table.evaluator, classes.multi_label)

    @property
    def says_pairs(self) -> bool:
        """Whether the row of a class has the AUCs of the class against each other class."""
        return self.class_rows and not self.multi_label and 1 < len(self.classes) <= MOST_PAIRED

    @cached_property
    def evaluated(self) -> tuple[str, ...]:
        """The classes that have evaluators, either all classes or none.

        They serve rows of the classes, or placements as the signal.
        """
        return self.classes * (self.class_rows or self.evaluator.window.signal == "placement")

    @cached_property
    def decided(self) -> tuple[str, ...]:
        """The classes by their names in the evaluator of all classes: -1 and 0 in a list stay two classes."""
        if not {MINUS_ONE, ZERO} <= {*map(class_text, self.classes)}:
            return self.classes
        return tuple(f"class {name}" for name in self.classes)

    def of_class(self, name: str) -> EvaluatorSettings:
        """Return the settings of the rows of one class."""
        return self.evaluator if self.multi_label else replace(self.evaluator, positive=name)

    @cached_property
    def of_model(self) -> EvaluatorSettings:
        """The settings of the decision measures of all classes together."""
        with_values = tuple(each.text for each in self.evaluator.with_values)
        return replace(
            self.evaluator,
            measures=(*(EvaluatorSettings().measures or ()), *with_values) if with_values else None,
            curves=None,
            probabilities=self.evaluator.window.signal == "brier",  # only this signal asks for probabilities
            evidence_below=None,
            evidence_blocks=DEFAULT_BLOCKS,
            block_gap=None,
        )

    @cached_property
    def z(self) -> float:
        """How many standard errors an interval reaches to each side."""
        return z_of(self.evaluator)

    @cached_property
    def places(self) -> dict[str, int]:
        """The number of each class, by each text that a label may have for the class (`named_classes`)."""
        numbers = {name: number for number, name in enumerate(self.classes)}
        return {text: numbers[name] for text, name in named_classes(self.classes).items()}

    def number_of(self, value: object) -> int | None:
        """Return the number of the class that a label or a prediction names; None if it names no class."""
        return self.places.get(class_text(value))

    def numbers_of(self, column: TextColumn) -> Int64Array:
        """Return the numbers of classes that are given by name. Raises InputError for an unknown class."""
        of_values = [self.number_of(value) for value in column.values]
        numbers = np.array([-1 if each is None else each for each in of_values], np.int64)[column.codes]
        for event in np.flatnonzero(numbers < 0)[:1].tolist():
            raise InputError(f"{column.to_list()[event]!r} is none of the {len(self.classes):,} classes")
        return numbers

    def meaning(self) -> dict[str, Any]:
        """Return, by name, the settings that decide the values of rows and the meaning of a state."""
        said: dict[str, Any] = json.loads(self.evaluator.canonical())
        return {**said, "classes": list(self.classes), "multi_label": self.multi_label}

    def canonical(self) -> str:
        """Return the text of all settings that change values."""
        return json.dumps(self.meaning(), sort_keys=True)

    @cached_property
    def config(self) -> str:
        """The hash of the settings: the column `config` of every row."""
        return config_of(self.canonical())

    def to_json(self) -> str:
        """Return the settings as a text that `from_json` reads."""
        of_classes = {"classes": self.classes, "multi_label": self.multi_label}
        shown = {"class_rows": self.class_rows, "intervals": self.intervals}
        return json.dumps({**of_classes, **shown, "evaluator": TableSettings(self.evaluator).to_json()})

    @classmethod
    def from_json(cls, text: str) -> ClassSettings:
        """Read settings. Raises an error for a text that `to_json` did not write."""
        content = read_object(text, "the settings of a model with classes")
        evaluator = TableSettings.from_json(content.pop("evaluator")).evaluator
        return cls(tuple(content.pop("classes")), evaluator, **content)
