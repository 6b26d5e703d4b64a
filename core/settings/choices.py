"""The settings of `EvaluatorSettings` as keywords of a function, which may be texts of the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Literal, TypedDict

from ..errors import ConfigError
from .costs import Cost
from .durations import Duration
from .evaluator import EvaluatorSettings, declared
from .evidence import Bound
from .windows import Emission, EveryEvents, EverySeconds, Window, is_count, parse_every, parse_window


class MeasureChoices(TypedDict, total=False):
    """The settings that decide what a row says of a window, and the curves, as keywords of functions."""

    measures: tuple[str, ...] | list[str] | str | None
    priors: float | Literal["window"]
    threshold: float
    confidence: float
    probabilities: bool
    at_fpr: float
    false_positive_cost: float
    partial_fpr: tuple[float, float] | str
    flip_if_below_half: bool
    evidence_below: Bound | str | None
    evidence_blocks: int
    block_gap: Duration | None
    curves: EveryEvents | int | Literal["end"] | None


class EvaluatorChoices(MeasureChoices, total=False):
    """The settings of `EvaluatorSettings`, as keywords of functions that make an object of the class.

    `read_choices` reads them. `positive` is left out, because callers differ in the form of labels, and
    `sketch_bytes`, because only `Rows` hold sketches.
    """

    window: Window | str | None
    every: Emission | int | str | timedelta | None
    cost: Cost | str | None
    order: str


class SettingsChoices(EvaluatorChoices, total=False):
    """The fields of `EvaluatorSettings`, as keywords."""

    positive: str | None
    sketch_bytes: int | None


_READERS: dict[str, Callable[[str], Any]] = {
    "window": parse_window,
    "every": parse_every,
    "measures": lambda text: tuple(text.split(",")),
    **{name: each.parse for name, each in declared(EvaluatorSettings).items() if each.parse},
}
"""What reads a setting from a text of the command line."""


def read_choices(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords as `EvaluatorSettings` takes them; it knows keywords that are no settings, too.

    A text is read as the command line reads it. A number is a number of events, and a timedelta the step of
    a grid of times. A window, an emission or a cost that is None is left out: None means the default. Raises
    ConfigError for a text that cannot be read.

    >>> read_choices({"window": "last:500", "every": 10, "cost": None, "time": "ts"})
    {'window': LastEvents(k=500), 'every': EveryEvents(n=10), 'time': 'ts'}
    """
    read = {
        name: value
        for name, value in choices.items()
        if name not in ("window", "every", "cost") or value is not None
    }
    for name, reader in _READERS.items():
        if isinstance(text := read.get(name), str):
            try:
                read[name] = reader(text)
            except ConfigError as error:
                raise ConfigError(f"{name}={text!r}: {error}") from None
    if isinstance(measures := read.get("measures"), list):
        read["measures"] = tuple(measures)
    if isinstance(every := read.get("every"), timedelta):
        read["every"] = EverySeconds(every)
    for name in ("every", "curves"):
        if is_count(read.get(name)):
            read[name] = EveryEvents(read[name])
    return read
