"""The settings and options that are refused together with scores of classes, each with its reason.

This table is the only place of these refusals. When a setting works with class scores, too, it is removed
from the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...core.alerts.rules import AlertRule
from ...core.errors import ConfigError
from ...core.rows.measure_table import MEASURES
from ...core.settings.classes import Classes
from ..events.fields import EventFields

_LATER = "in this version"

REFUSED: Final[Mapping[str, str]] = {
    "score": "the columns of class scores are the scores",
    "positive": "each class is the positive one in its own rows",
    "flip_if_below_half": "a class whose AUC is below .5 is to be seen as such",
    "pairs": f"models with classes are not compared with a champion {_LATER}",
    "champion": f"models with classes are not compared with a champion {_LATER}",
    "against": f"models with classes are not compared with a champion {_LATER}",
}
"""For each keyword that does not go with class scores, the reason."""

_OF_PAIRS = ("auc_m", "auc_m_low", "auc_m_high", "worst_pair_auc")
_NAMED = 12
"""The most classes that an error names."""

_USUAL = {"score": "score"}
"""The defaults of settings that are not None, False or an empty list."""


def refuse_with_class_scores(
    given: Mapping[str, Any],
    said: Callable[[str, Any], str] = lambda name, value: f"{name}={value!r}",
    scores: str = "class_scores=",
) -> None:
    """Raise ConfigError for the first given setting that does not go with class scores.

    given   settings by name; None, False, an empty list and a default count as not given
    said    a function that writes a setting and its value for the error
    scores  the name of the setting of class scores, for the error
    """
    for name, why in REFUSED.items():
        value = given.get(name)
        if value is None or value is False or value == [] or value == _USUAL.get(name):
            continue
        raise ConfigError(f"{said(name, value)} with {scores}: {why}; leave it out")
    if given.get("multi_label") is not None:
        for name, usual in (("label", "label"), ("predicted", None)):
            if given.get(name, usual) != usual:
                raise ConfigError(
                    f"{said(name, given[name])} with several labels an event: the columns of labels say of "
                    "each class who is of it, and the threshold decides; leave it out"
                )


def classes_of(fields: EventFields) -> Classes | None:
    """Return the classes of a job's models; None if an event has one score."""
    return Classes(fields.class_names, bool(fields.class_labels)) if fields.class_names else None


def check_rule(rule: AlertRule, classes: Classes | None) -> None:
    """Raise ConfigError for a rule that no row of models with these classes can satisfy.

    `classes` is None if models have one score.
    """
    if classes is None:
        if rule.kind == "roll-up row" and rule.tests_class:
            raise ConfigError(
                f"alert {str(rule)!r}: only models with a score of each class have groups of a class; name "
                "the scores with --class-scores"
            )
        if (part := rule.needs_classes) is not None:
            raise ConfigError(
                f"alert {str(rule)!r}: only models with a score of each class have {part!r}; name the scores "
                "with --class-scores"
            )
        return
    tests = [test for test in rule.where if test.column == "class"]
    if not any(all(test.holds(name) for test in tests) for name in classes.names):
        named = ", ".join(map(repr, classes.names[:_NAMED])) + ", ..." * (len(classes.names) > _NAMED)
        raise ConfigError(f"alert {str(rule)!r}: the classes are {named}, and 'where' covers none of them")
    if not classes.multi_label or rule.watches_classes:
        return
    for column in rule.columns:
        if column in MEASURES:
            raise ConfigError(
                f"alert {str(rule)!r}: with several labels an event, {column} is of each class; write "
                "where class like '*' for all of them"
            )
        if column in _OF_PAIRS:
            raise ConfigError(
                f"alert {str(rule)!r}: with several labels an event there are no pairs of classes; take "
                "auc_macro"
            )
