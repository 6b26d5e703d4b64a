"""Checks of the settings of estimators, which `fit` makes, as in scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ConfigError


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Raise ConfigError unless a setting is one of the choices."""
    if value not in choices:
        raise ConfigError(f"{name}={value!r}; there are {', '.join(repr(each) for each in choices)}")


def check_whole(name: str, value: Any, least: int) -> None:
    """Raise ConfigError unless a setting is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ConfigError(f"{name}={value!r}; give a whole number from {least} on")


def is_number(value: Any) -> bool:
    """Return whether a setting is a real number and not a boolean."""
    return isinstance(value, float | int | np.integer | np.floating) and not isinstance(value, bool)


def check_number(name: str, value: Any, low: float, high: float) -> None:
    """Raise ConfigError unless a setting is a number of at least `low` and below `high`."""
    if not is_number(value) or not low <= value < high:
        raise ConfigError(f"{name}={value!r}; give a number from {low:g} on, below {high:g}")
