"""The settings of `EvaluatorSettings` as keywords of a function, which may be texts of the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Literal, TypedDict, TypeVar

from ..errors import ConfigError
from .costs import Cost
from .durations import Duration
from .evaluator import CurvePoints, EvaluatorSettings, declared
from .evidence import Bound
from .windows import Emission, EveryEvents, EverySeconds, Window, is_count, parse_every, parse_window


class MeasureChoices(TypedDict, total=False):
    """The settings that decide which measures and curves a window has, as keywords of functions."""

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
    curves_points: CurvePoints


class EvaluatorChoices(MeasureChoices, total=False):
    """The settings of `EvaluatorSettings`, as keywords of functions that make an object of the class.

    `read_choices` reads them. `positive` is left out, because callers differ in the form of labels.
    """

    window: Window | str | None
    every: Emission | int | str | timedelta | None
    cost: Cost | str | None
    order: str


class SettingsChoices(EvaluatorChoices, total=False):
    """The fields of `EvaluatorSettings`, as keywords of functions."""

    positive: str | None


_READERS: dict[str, Callable[[str], Any]] = {
    "window": parse_window,
    "every": parse_every,
    "measures": lambda text: tuple(name.strip() for name in text.split(",")),
    **{name: each.parse for name, each in declared(EvaluatorSettings).items() if each.parse},
}
"""The function that reads a setting from a text of the command line, by the setting's name."""

Settings = TypeVar("Settings")


def read_choices(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords in the form that `EvaluatorSettings` takes.

    Keywords that are no settings stay unchanged.

    A text is read as the command line reads it. A number is a number of events, and a timedelta the step of a
    grid of times. A window, an emission or a cost that is None is left out, so that its default, or its
    present value, stays. Raises ConfigError for a value that cannot be read.

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
                read[name] = reader(text.strip())
            except ConfigError as error:
                raise ConfigError(f"{name}={text!r}: {error}") from None
    if (measures := read.get("measures")) is not None:
        if not isinstance(measures, Iterable) or isinstance(measures, bytes):
            raise ConfigError(f"measures={measures!r}: give names, such as ['auc', 'h'], or 'auc,h'")
        read["measures"] = tuple(measures)
    if isinstance(every := read.get("every"), timedelta):
        try:
            read["every"] = EverySeconds(every)
        except ConfigError:
            raise ConfigError(
                f"every={every!r}: a grid of times has a step of 1 microsecond to 73,000 years, such as "
                "timedelta(hours=1) or '1h'"
            ) from None
    for name in ("every", "curves"):
        if is_count(read.get(name)):
            read[name] = EveryEvents(read[name])
    return read


def settings_with(choices: Mapping[str, Any], settings: Settings | None, kind: type[Settings]) -> Settings:
    """Return settings in which some fields have new values, in the forms that `read_choices` reads.

    settings  None for the defaults
    kind      the class of the settings

    Raises ConfigError for settings of another class.
    """
    check_kind(settings, kind)
    chosen: Any = read_choices(choices)
    return kind(**chosen) if settings is None else replace(settings, **chosen)  # type: ignore[type-var]


def check_kind(settings: Any, kind: type) -> None:
    """Raise ConfigError unless settings are None or of the class `kind`."""
    if not (settings is None or isinstance(settings, kind)):
        raise ConfigError(
            f"settings={settings!r}: give {kind.__name__}(...), or a setting by its keyword, such as "
            "window='last:500'"
        )
