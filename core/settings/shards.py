"""The number of shards, and the models that have a shard of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import ConfigError


class Shards(int):
    """A number of shards, of which the last ones belong to one model each.

    number  the number of shards over which all other models are spread, by a hash of a model's name.
    own     the models that have a shard of their own. Give a model with so many events that other models
            would wait, or with a window so large that it alone makes a shard's state large.

    As an int, the value is the total number of shards. The shards are part of the meaning of a state. Raises
    ConfigError for an impossible number or impossible names.

    >>> shards = Shards(64, own=["fraud"])
    >>> int(shards), shards.shared, shards.own
    (65, 64, ('fraud',))
    """

    own: tuple[str, ...]

    def __new__(cls, number: int, own: Iterable[str] = ()) -> Shards:
        """Return `number` shared shards and a shard for each of `own`."""
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise ConfigError(f"shards={number!r}: give a whole number, 1 or more")
        models = (own,) if isinstance(own, str) else tuple(own)
        for model in models:
            if not isinstance(model, str) or models.count(model) > 1:
                raise ConfigError(f"own={model!r}: give the names of models, each once")
        made = super().__new__(cls, int(number) + len(models))
        made.own = models
        return made

    @classmethod
    def of(cls, number: int) -> Shards:
        """Return a number of shards as `Shards`; no model has a shard of its own. Raises ConfigError."""
        return number if isinstance(number, Shards) else cls(number)

    @property
    def shared(self) -> int:
        """The number of shards over which models without a shard of their own are spread."""
        return int(self) - len(self.own)

    def __eq__(self, other: object) -> bool:
        return int.__eq__(self, other) is True and self.own == getattr(other, "own", ())

    def __ne__(self, other: object) -> bool:  # int has its own __ne__
        return not self == other

    def __hash__(self) -> int:
        return hash((int(self), self.own)) if self.own else int.__hash__(self)

    def __getnewargs__(self) -> Any:
        return self.shared, self.own

    def __repr__(self) -> str:
        return f"Shards({self.shared}, own={self.own!r})" if self.own else int.__repr__(self)

    __str__ = int.__repr__
