"""Which events come again, by a list of all that was kept."""

from __future__ import annotations

from rocsteady.core.events.times import NO_TIME

Event = tuple[str, str | None, int]
"""Model, id and time."""

Verdict = int | None
"""The time of the kept event for which one is dropped; None for one that is kept."""


class DuplicateOracle:
    """The first paragraph of ids/deduplicator.py: each kept event with the clock's pane when it came."""

    def __init__(self, horizon: int, *, forgets: bool = True) -> None:
        self.horizon, self.pane, self.forgets = horizon, -(-horizon // 8), forgets
        self.clock = NO_TIME
        self.kept: list[tuple[str, str, int, int]] = []

    def take(self, event: Event) -> Verdict:
        model, name, time = event
        self.clock = max(self.clock, time)
        if self.forgets:
            self.kept = [
                entry
                for entry in self.kept
                if self.clock - (entry[3] * self.pane + self.pane - 1) <= self.horizon
            ]
        if name is None:
            return None
        near = [
            (abs(kept - time), kept)
            for its_model, its_name, kept, _ in self.kept
            if (its_model, its_name) == (model, name) and abs(kept - time) <= self.horizon
        ]
        if near:
            return min(near)[1]
        self.kept.append((model, name, time, self.clock // self.pane))
        return None
