"""The settings of a comparison of models with one other model; they are checked when they are made."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any, TypedDict

import scipy  # parts of scipy take up to .5 s of processor time to import, each when it is first used

from ..errors import ConfigError
from ..settings.choices import settings_with
from ..settings.evaluator import config_of, plain
from ..settings.windows import (
    Adaptive,
    Emission,
    EveryEvents,
    LastEvents,
    Window,
    check_emission,
    is_count,
    needs_times,
)

LEAST_TUNED = 100
"""The least `anytime_at`: for fewer instances the normal distribution is no good approximation."""


@dataclass(frozen=True)
class PairSettings:
    """How two models are compared over the instances that both scored.

    window      which instances the AUCs of a row count; see `EvaluatorSettings`. An adaptive window is
                refused: it follows the signal of one model.
    every       when a row is due, by instances that both models scored
    confidence  the confidence of both intervals, in (0, 1); a verdict is wrong with probability 1 -
                confidence at the most
    anytime_at  the number of instances for which the interval that holds at any time is narrowest
    exact       how many instances make a block; see `anytime`

    Raises ConfigError, which names the field, the value and the remedy.
    """

    window: Window = field(default_factory=LastEvents)
    every: Emission = field(default_factory=EveryEvents)
    confidence: float = 0.95
    anytime_at: int = 10_000
    exact: int = 10_000

    def __post_init__(self) -> None:
        if isinstance(self.window, Adaptive):
            raise ConfigError(
                f"window={str(self.window)!r}: an adaptive window follows the signal of one model, and two "
                "models are compared over the same instances; give LastEvents(k), LastDuration('7d'), "
                "Fading(half_life) or AllEvents()"
            )
        if not isinstance(self.window, Window):
            raise ConfigError(
                f"window={self.window!r}: give LastEvents(k), LastDuration('7d'), Fading(half_life) or "
                "AllEvents()"
            )
        check_emission(self.every)
        given: Any = self.confidence
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < 1 - given < 1:
            raise ConfigError(f"confidence={given!r}: give the share of intervals that hold, between 0 and 1")
        object.__setattr__(self, "confidence", float(given))
        for name in ("anytime_at", "exact"):
            count = getattr(self, name)
            if not is_count(count) or count < LEAST_TUNED:
                raise ConfigError(
                    f"{name}={count!r}: give a whole number of instances, {LEAST_TUNED} or more"
                )
            object.__setattr__(self, name, int(count))

    @property
    def needs_times(self) -> str | None:
        """The setting that needs event times, as on the command line; None if no setting does."""
        return needs_times(self.window, self.every)

    @cached_property
    def z(self) -> float:
        """How many standard errors the interval of a row reaches to each side."""
        return float(scipy.special.ndtri(0.5 + self.confidence / 2))

    @cached_property
    def alpha(self) -> float:
        """1 - confidence."""
        return 1 - self.confidence

    @cached_property
    def rho_squared(self) -> float:
        """The rho^2 that makes the interval of `anytime` narrowest after `anytime_at` instances.

        With x = t rho^2 the width has its minimum in rho where x = log(1 + x) + 2 log(1 / alpha). The
        iteration contracts, because its derivative is 1 / (1 + x).
        """
        start = x = 2 * math.log(1 / self.alpha)
        for _ in range(200):
            x = start + math.log1p(x)
        return x / self.anytime_at

    @cached_property
    def bad_instances(self) -> float:
        """How many bad instances of each class `anytime` adds to the variance: 2, more above .95."""
        return max(2.0, 2 / 3 * math.log(1 / self.alpha))

    def meaning(self) -> dict[str, Any]:
        """Return, by name, the settings that decide the values of rows and the meaning of a state."""
        return {name: plain(value) for name, value in vars(self).items() if name in _FIELDS}

    def to_json(self) -> str:
        """Return the settings as a canonical text."""
        return json.dumps(self.meaning(), sort_keys=True)

    @cached_property
    def config(self) -> str:
        """The hash of the settings: the column `config` of every row."""
        return config_of(self.to_json())


_FIELDS = frozenset(("window", "every", "confidence", "anytime_at", "exact"))


class PairChoices(TypedDict, total=False):
    """The fields of `PairSettings` as keywords, in the forms that `settings_of` reads."""

    window: Window | str | None
    every: Emission | int | str | timedelta | None
    confidence: float
    anytime_at: int
    exact: int


def settings_of(choices: Mapping[str, Any], settings: PairSettings | None = None) -> PairSettings:
    """Return settings in which the given choices replace fields; None leaves a field as it is.

    See `read_choices` for texts and numbers. Raises ConfigError for settings of another class.
    """
    given = {name: value for name, value in choices.items() if value is not None}
    return settings_with(given, settings, PairSettings)
