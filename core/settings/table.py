"""How all models of a job are evaluated: in slices, over shards, remembered for how long."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from ..encoding.json import read_object
from ..errors import ConfigError
from .costs import parse_cost
from .evaluator import ADDED_SINCE, EvaluatorSettings
from .shards import Shards
from .slices import SLICE_CAP, checked_slices, escape_slice
from .windows import LONGEST, duration_text, is_count, microseconds, parse_every, parse_window


@dataclass(frozen=True)
class TableSettings:
    """What a shard's table of evaluators is made for.

    evaluator  how every (model, slice) is evaluated
    slices     every slice is one column, or several for a cross; the whole model is always there
    shards     number of shards that the models are spread over, or `Shards`; None = every model is its own
    deduplicate  microseconds within which a second event of a model with the same id does not count
                 (ids/deduplicator.py); None = every event counts. Needs times and ids
    slice_cap  values of a model and a slice that have a slice of their own; those of all later ones are
               "other" (table/slices.py)
    idle_ttl   microseconds after which a (model, slice) that is silent gives a last row and leaves
               (table/idle.py); None = never. Needs times
    """

    evaluator: EvaluatorSettings = field(default_factory=EvaluatorSettings)
    slices: tuple[tuple[str, ...], ...] = ()
    shards: int | None = None
    deduplicate: int | None = None
    slice_cap: int = SLICE_CAP
    idle_ttl: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "slices", checked_slices(self.slices))
        for name in ("deduplicate", "idle_ttl"):
            value = getattr(self, name)
            if value is not None and not (is_count(value) and value < LONGEST):
                raise ConfigError(f"{name}={value!r}: give whole microseconds, 1 or more, or None")
            object.__setattr__(self, name, value and int(value))
        if not is_count(self.slice_cap):
            raise ConfigError(
                f"slice_cap={self.slice_cap!r}: give how many values of a slice have their own, 1 or more"
            )
        object.__setattr__(self, "slice_cap", int(self.slice_cap))
        if self.shards is not None:
            object.__setattr__(self, "shards", Shards.of(self.shards))

    def meaning(self) -> dict[str, Any]:
        """Return what decides the meaning of a state, by name."""
        slices = [",".join(escape_slice(name) for name in names) for names in self.slices]
        return {
            **json.loads(self.evaluator.canonical()),
            "positive": self.evaluator.positive,
            "slices": slices,
            "shards": self.shards,
            **self._since(),
        }

    def _since(self) -> dict[str, Any]:
        """Return those of `ADDED_SINCE` that are not what they were before."""
        values: dict[str, Any] = {
            "deduplicate": self.deduplicate and duration_text(self.deduplicate),
            "slice_cap": self.slice_cap,
            "idle_ttl": self.idle_ttl and duration_text(self.idle_ttl),
            "own_shards": [] if self.shards is None else [*Shards.of(self.shards).own],
        }
        return {name: value for name, value in values.items() if value != ADDED_SINCE[name]}

    def fingerprint(self) -> bytes:
        """Return the 16 bytes by which a state knows that it is read as it was written."""
        text = json.dumps(self.meaning(), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).digest()

    def to_json(self) -> str:
        """Return the whole of it as text, without `curves`: they follow from no state, and leave none."""
        evaluator = {
            **json.loads(self.evaluator.canonical()),
            "positive": self.evaluator.positive,
            "measures": self.evaluator.measures,
        }
        table = {"slices": self.slices, "shards": self.shards, **self._since()}
        return json.dumps({"evaluator": evaluator, **table})

    @classmethod
    def from_json(cls, text: str) -> TableSettings:
        """Read what `to_json` wrote."""
        content = read_object(text, "the settings of a state")
        choices = content["evaluator"]
        choices["window"] = parse_window(choices["window"])
        choices["every"] = parse_every(choices["every"])
        choices["cost"] = parse_cost(choices["cost"])
        choices["measures"] = tuple(choices["measures"])
        slices = tuple(tuple(names) for names in content["slices"])
        since = {name: content[name] for name in ADDED_SINCE if name in content}
        for name in ("deduplicate", "idle_ttl"):
            if name in since:
                since[name] = microseconds(since[name], name)
        shards, own = content["shards"], since.pop("own_shards", [])
        if shards is not None:
            shards = Shards(shards - len(own), own)
        return cls(EvaluatorSettings(**choices), slices, shards, **since)
