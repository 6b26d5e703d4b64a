"""What does not go with scores of classes: the settings and options that are refused, each with its reason.

This table is the only place of these refusals. A setting that later serves class scores, too, leaves it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...core.errors import ConfigError
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
    "alert": f"rules do not watch rows of classes {_LATER}",
    "roll_up": f"rows of classes are not rolled up {_LATER}",
    "roll_ups": f"rows of classes are not rolled up {_LATER}",
}
"""Why a setting or option does not go with class scores, by its name as a keyword."""

_USUAL = {"score": "score"}
"""The defaults of settings that are not None, False or an empty list."""


def refuse_with_class_scores(
    given: Mapping[str, Any],
    said: Callable[[str, Any], str] = lambda name, value: f"{name}={value!r}",
    scores: str = "class_scores=",
) -> None:
    """Raise ConfigError for the first setting that is given and does not go with class scores.

    given   settings by name; None, False, an empty list and a default are not given
    said    writes a setting and its value for the error
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
    """Return the classes of a job's models; None: an event has one score."""
    return Classes(fields.class_names, bool(fields.class_labels)) if fields.class_names else None
