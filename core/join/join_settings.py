"""Settings of a label join: how long predictions and labels wait, and which label counts."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import ConfigError
from ..settings.durations import duration_text, microseconds
from ..settings.table import Shards
from .matching import LONGEST_TTL, LabelMatcher


@dataclass(frozen=True)
class JoinSettings:
    """How labels are joined, and over how many shards.

    ttl     microseconds: greatest time of a label after its prediction
    lead    microseconds: greatest time of a label before its prediction; None = ttl
    second  which of several such labels counts: "first", "last", or "dead-letter". With "dead-letter" the
            first label counts, and the others are mistakes.
    shards  number of shards of the join.
    evaluator_shards  number of shards of the evaluators that receive the joined events
    deduplicate  microseconds within which a second prediction of a model and id does not count; None: every
                 prediction counts
    """

    ttl: int
    lead: int | None = None
    second: str = "first"
    shards: int = 16
    evaluator_shards: int = 64
    deduplicate: int | None = None

    def __post_init__(self) -> None:
        if self.second not in ("first", "last", "dead-letter"):
            raise ConfigError(f"second_label={self.second!r}: give 'first', 'last' or 'dead-letter'")
        for name in ("shards", "evaluator_shards"):
            if isinstance(number := getattr(self, name), bool) or not isinstance(number, int) or number < 1:
                raise ConfigError(f"{name}={number!r}: give a whole number, 1 or more")
        if self.ttl > LONGEST_TTL:
            raise ConfigError(
                f"ttl={duration_text(self.ttl)!r} is longer than 36,000 years; give at most that"
            )
        if self.lead is not None and self.lead > self.ttl:
            raise ConfigError(
                f"label_lead={duration_text(self.lead)!r} is longer than ttl={duration_text(self.ttl)!r}; "
                "give at most that"
            )

    @classmethod
    def of(cls, ttl: object, lead: object = None, **more: object) -> JoinSettings:
        """Make settings from durations in a user's spelling, such as "7d". A lead of 0 is allowed."""
        lead_micros = None
        if lead is not None:
            zero = lead in (0, "0", "0s")
            lead_micros = 0 if zero else microseconds(lead, "label_lead")  # type: ignore[arg-type]
        return cls(microseconds(ttl, "ttl"), lead_micros, **more)  # type: ignore[arg-type]

    def matcher(self) -> LabelMatcher:
        """Return a new matcher with these settings."""
        return LabelMatcher(self.ttl, self.lead, self.second)  # type: ignore[arg-type]

    @property
    def output_delay(self) -> int:
        """Microseconds by which a joined event may be earlier than the join's clock."""
        lead = self.ttl if self.lead is None else self.lead
        return lead + self.ttl if self.second == "last" else lead

    @property
    def runner_delay(self) -> int:
        """Microseconds by which a joined event may be earlier than the runner's watermark."""
        return self.output_delay + self.waking

    @property
    def waking(self) -> int:
        """Microseconds between the wake-ups of the join, if its clock is the runner's watermark."""
        return self.ttl // _WAKINGS + 1

    def meaning(self) -> dict[str, object]:
        """Return the settings that decide what the bytes of a state mean, by name."""
        lead = self.ttl if self.lead is None else self.lead
        return {
            "ttl": duration_text(self.ttl),
            "label_lead": duration_text(lead),
            "second_label": self.second,
            "deduplicate": self.deduplicate and duration_text(self.deduplicate),
            "shards": self.shards,
            "evaluator_shards": int(self.evaluator_shards),  # a number, as it is stored
            "own_shards": [*Shards.of(self.evaluator_shards).own],
        }


_WAKINGS = 8
"""Wake-ups per ttl. With the runner's watermark as its clock, the join is woken this many times within one
ttl, so a joined event may wait up to ttl/8 longer."""
