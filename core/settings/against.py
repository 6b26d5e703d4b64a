"""The model with which others are compared, and the events that are one instance of two models."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import ConfigError
from .windows import is_count


@dataclass(frozen=True)
class Against:
    """The choice of the model that others are compared with, and of the events that are one instance.

    champion  the name of the model; if there are `columns`, the name of the column of its scores
    columns   all columns of scores, if a record has the scores of several models. Their models are named
              COLUMN, or MODEL/COLUMN; each is compared with the champion of the same MODEL
    by_record whether the events of one record are an instance; else the events with one id are an instance
    within    the most microseconds between the times of the two events of an id; None if any time may lie
              between them
    """

    champion: str
    columns: tuple[str, ...] = ()
    by_record: bool = False
    within: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.champion, str) or not self.champion:
            raise ConfigError(f"champion={self.champion!r}: give the name of a model, as text")
        if self.columns and self.champion not in self.columns:
            raise ConfigError(f"against={self.champion!r} is not among the score columns {self.columns}")
        if self.by_record and not self.columns:
            raise ConfigError("a record has the scores of several models only if there are several columns")
        if self.within is not None and self.within != 0 and not is_count(self.within):
            raise ConfigError(f"within={self.within!r}: give whole microseconds, 0 or more, or None")

    def champion_of(self, model: str) -> tuple[str, str]:
        """Return the name before the column of a model's scores ("" if none), and the model's champion.

        >>> Against("b", ("a", "b")).champion_of("fraud/a"), Against("b").champion_of("a")
        (('fraud', 'fraud/b'), ('', 'b'))
        """
        for column in sorted(self.columns, key=len, reverse=True):
            if model == column:
                return "", self.champion
            if model.endswith(f"/{column}"):
                stem = model[: -len(column) - 1]
                return stem, f"{stem}/{self.champion}"
        return "", self.champion
