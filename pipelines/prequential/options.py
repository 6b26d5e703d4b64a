"""Reads the options of `rocsteady prequential` as settings. Each error names its option."""

from __future__ import annotations

import argparse
from typing import cast

from ...core.compare.comparisons import COMPARED
from ...core.errors import ConfigError
from ...core.prequential.folds import Folds, Method
from ...core.prequential.instances import Task
from ...core.prequential.learners import LearnerSpec
from ...core.prequential.settings import PrequentialSettings
from ...core.settings.evaluator import EvaluatorSettings
from ...transforms.events.fields import EventFields
from ..arguments import level, number, whole_number
from ..evaluate.options import evaluator_of, time_format_of
from .columns import InstanceColumns


def instance_fields(options: argparse.Namespace) -> EventFields:
    """Return the roles of the columns, without the features."""
    if options.multiclass and options.positive is not None:
        raise ConfigError(
            f"--positive {options.positive} with --multiclass: classes have no positive one; leave one out"
        )
    return EventFields(
        label=options.label,
        positive=options.positive,
        model_name="instances",
        time=options.time,
        time_unit=options.time_unit,
        time_format=time_format_of(options),
        id=options.id,
        classes=options.multiclass,
    )


def prequential_settings(options: argparse.Namespace, columns: InstanceColumns) -> PrequentialSettings:
    """Return the settings of the run. Raises ConfigError."""
    evaluator = evaluator_of(options, None)
    noise = number("--noise", options.noise)
    batch = whole_number("--batch", options.batch, 1)
    learners = tuple(
        LearnerSpec.parse(text, noise, batch, trust=options.trust_learners) for text in options.learner
    )
    folds = Folds(
        cast(Method, options.method),
        whole_number("--folds", options.folds, 2),
        whole_number("--seed", options.seed, 0),
        not options.no_prequential,
    )
    task = Task(not options.multiclass, evaluator.threshold, columns.classes if options.multiclass else ())
    alpha = level(f"--alpha {options.alpha}", options.alpha, ".05")
    return PrequentialSettings(learners, folds, evaluator, task, _compared(options, evaluator), alpha)


def _compared(options: argparse.Namespace, evaluator: EvaluatorSettings) -> tuple[str, ...]:
    """Return the measures by which learners are compared. Raises ConfigError."""
    measures = tuple(dict.fromkeys(options.compare))
    for name in measures:
        if name not in COMPARED:
            raise ConfigError(
                f"--compare {name} does not say who is better; there are {', '.join(sorted(COMPARED))}"
            )
        if name not in (evaluator.measures or ()):
            raise ConfigError(f"--compare {name}: it is not among --measures; add it there")
    return measures
