"""The settings of roll-ups: the groups, how long a silent member counts, whether members may share events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ..errors import ConfigError
from ..process.near_names import near_names
from ..rows.roll_ups import ALL_MODELS
from ..settings.durations import duration_text
from ..settings.table import escape_slice, parse_slice

SLICES = "slices"
"""The word that asks for a group for every model and column of slices."""

STALE = 86_400_000_000
"""For how many microseconds a silent member counts, unless a user chooses another number: a day."""

_REMEDY = f"give {ALL_MODELS}, {SLICES}, or a pattern of models, such as 'team1/*'"


@dataclass(frozen=True)
class RollUpSettings:
    """The settings by which a `FleetTable` makes roll-up rows. Raises ConfigError for an invalid setting.

    by          "models", "slices", and patterns of models (`fnmatch`: `*`, `?`, `[ab]`); each is there once
    stale       for how many microseconds, 0 or more, the last row of a silent member counts
    confidence  the confidence of the intervals in the members' rows, and of the intervals in roll-up rows
    dependent   whether members may score the same events. Slices of one column never share events

    >>> RollUpSettings(("models", "team1/*")).groups_of("team1/churn", "")
    [('models', 'team1/churn'), ('team1/*', 'team1/churn')]
    >>> RollUpSettings(("slices",)).groups_of("churn", "country=NZ")
    [('model=churn,slice=country', 'country=NZ')]
    """

    by: tuple[str, ...] = (ALL_MODELS,)
    stale: int = STALE
    confidence: float = 0.95
    dependent: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.by, tuple) or not self.by:
            raise ConfigError(f"by={self.by!r}: {_REMEDY}")
        for choice in self.by:
            _check_choice(choice)
            if SLICES in self.by and choice.startswith("model="):
                raise ConfigError(
                    f"by: {choice!r} with {SLICES!r}: their groups begin so, too; give it apart"
                )
            if self.by.count(choice) > 1:
                raise ConfigError(f"by: {choice!r} is there {self.by.count(choice)} times; give it once")
        if isinstance(self.stale, bool) or not isinstance(self.stale, int) or self.stale < 0:
            raise ConfigError(f"stale={self.stale!r}: give microseconds, 0 or more")
        if isinstance(self.confidence, bool) or not isinstance(self.confidence, int | float):
            raise ConfigError(f"confidence={self.confidence!r}: give a level between 0 and 1, such as .95")
        if not 0.5 < (1 + self.confidence) / 2 < 1:  # so a normal quantile is neither 0 nor infinite
            raise ConfigError(f"confidence={self.confidence!r}: give a level between 0 and 1, such as .95")

    @property
    def without_rows(self) -> str:
        """Return the sentence that there is no roll-up row, since no row belongs to these groups."""
        return f"there are no roll-up rows: no row on the grid of times belongs to {' or '.join(self.by)}"

    def groups_of(self, model: str, slice_: str) -> list[tuple[str, str]]:
        """Return (group, member) of each group to which the slice `slice_` of `model` belongs. O(choices)."""
        if slice_:
            return [(_slice_group(model, slice_), slice_)] if SLICES in self.by else []
        return [
            (choice, model)
            for choice in self.by
            if choice == ALL_MODELS or (choice != SLICES and fnmatchcase(model, choice))
        ]

    def intervals_of(self, group: str) -> bool:
        """Return whether the intervals of a group must hold for members that share events."""
        return self.dependent and group in self.by

    def meaning(self) -> str:
        """Return the settings in words: equal settings give equal words."""
        sharing = ", members may share events" if self.dependent else ""
        by = " ".join(map(repr, self.by))
        return f"by {by}, stale {duration_text(self.stale)}, confidence {self.confidence!r}{sharing}"


def choices_of(by: str | Iterable[str]) -> tuple[str, ...]:
    """Return the choices of groups as a tuple; one choice may be given as text.

    >>> choices_of("models"), choices_of(["models", "slices"])
    (('models',), ('models', 'slices'))
    """
    if isinstance(by, str):
        return (by,)
    if not isinstance(by, Iterable):
        raise ConfigError(f"by={by!r}: {_REMEDY}")
    return tuple(by)


def _check_choice(choice: Any) -> None:
    if not isinstance(choice, str) or not choice:
        raise ConfigError(f"by: {choice!r} is no choice of groups; {_REMEDY}")
    if choice in (ALL_MODELS, SLICES):
        return
    try:
        choice.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"by: {choice!a} is not UTF-8, and every name is; give another") from None
    if not any(sign in choice for sign in "*?["):
        near = near_names(choice, [ALL_MODELS, SLICES])
        hint = f"did you mean {near[0]!r}?" if near else _REMEDY
        raise ConfigError(f"by: {choice!r} is no pattern, as it has no *, ? or [; {hint}")


def columns_of(slice_: str) -> tuple[str, ...]:
    """Return the names of the columns that a slice crosses; a text that names no slice is one column.

    >>> columns_of("country=NZ,device=phone"), columns_of("country=")
    (('country', 'device'), ('country',))
    """
    try:
        return tuple(name for name, _ in parse_slice(slice_))
    except ValueError:  # the rows come from another program: the slice is a group of its own
        return (slice_,)


def _slice_group(model: str, slice_: str) -> str:
    """Return the group of a slice: its model, and the columns of the slice."""
    columns = ",".join(map(escape_slice, columns_of(slice_)))
    return f"model={escape_slice(model)},slice={columns}"
