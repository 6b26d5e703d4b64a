"""Windows and emissions by a list that is searched anew for every event: slow and obvious."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.support.oracles.measures import NaiveEvaluator


class Held(NamedTuple):
    """An event of the window."""

    label: int
    score: float
    predicted: int
    majority_hit: bool
    persistent_hit: bool
    time: int | None
    arrival: int


@dataclass
class WindowOracle:
    """Rows of one window and emission, event by event; `row_of` of a NaiveEvaluator says what is in them.

    last      events held, or None
    duration  microseconds held, or None; with neither, all are held
    every     events between rows, or None
    grid      microseconds between grid points, or None
    searched  rows between those of which everything is known, not the window's size alone
    """

    naive: NaiveEvaluator
    last: int | None = None
    duration: int | None = None
    every: int | None = None
    grid: int | None = None
    searched: int = 1
    held: list[Held] = field(default_factory=list)
    seq: int = 0
    greatest: int | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    reported: Any = None
    entered: int = 0
    last_seen: dict[int, int] = field(default_factory=dict)
    last_label: int | None = None

    def apply(self, label: int, score: float, time: int | None) -> None:
        """Let time go on to an event, and apply it."""
        if time is not None:
            self.go_on_to(time)
        self.seq += 1
        self.greatest = time if self.greatest is None else max(self.greatest, time or self.greatest)
        if self.duration is None or time > self.greatest - self.duration:  # type: ignore[operator]
            majority = self.majority() == label if self.last_seen else not label
            persistent = (self.last_label == label) if self.last_label is not None else not label
            predicted = int(score >= self.naive.threshold)
            self.held.append(Held(label, score, predicted, majority, persistent, time, self.seq))
            self.last_label = label
            self.last_seen[label] = self.seq
            self.entered += 1
            self.let_go(self.greatest)
        if self.every and self.seq % self.every == 0:
            self.report(None)

    def majority(self) -> int | None:
        """The label that most of the window has, of tied ones the one that came in last; or None."""
        masses = Counter(event.label for event in self.held)
        return max(masses, key=lambda label: (masses[label], self.last_seen[label]), default=None)

    def let_go(self, now: int | None) -> None:
        """Drop what is not in the window any more."""
        if self.duration is not None:
            self.held = [event for event in self.held if event.time > now - self.duration]  # type: ignore[operator]
        if self.last is not None:
            self.held = self.held[-self.last :]

    def go_on_to(self, time: int) -> None:
        """Report at every grid point before a time, one after another, where the window has changed."""
        if self.grid is None or self.greatest is None:
            return
        due = -(-self.greatest // self.grid) * self.grid
        while due < time:
            if due not in {row["due"] for row in self.rows}:
                self.let_go(due)
                if (self.entered, self.held) != self.reported:
                    self.report(due)
            due += self.grid

    def report(self, due: int | None) -> None:
        """Add a row."""
        by_age = sorted(
            self.held, key=lambda event: (event.time, event.arrival) if self.duration else event.arrival
        )
        said = {"window_events": len(by_age), "positives": sum(event.label for event in by_age)}
        if by_age and len(self.rows) % self.searched == 0:
            said |= self.naive.row_of([event[:-1] for event in by_age])
        self.rows.append({"row": len(self.rows), "seq": self.seq, "time": self.greatest, "due": due, **said})
        self.reported = (self.entered, list(self.held))
