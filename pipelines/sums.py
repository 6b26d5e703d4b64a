"""Counters of events, or of labels, as sums: the records read, and the fates of all records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..core.events.earlier import EARLIER_LOST, EARLIER_USED
from .words import counted


class Sum(NamedTuple):
    """Counters of events, or of labels, that add up to the records read and taken up.

    taken_up  the counter of records that were read earlier and came with the state
    kinds     records that were not applied: (singular, plural, counter); dead letters of events are shown
              even if there are none
    """

    read: str
    taken_up: str
    applied: str
    done: str
    kinds: tuple[tuple[str, str, str], ...]

    def told(self, counts: Mapping[str, int], noun: str) -> str:
        """Return the sum as text."""
        terms = [f"{counts.get(self.applied, 0):,} {self.done}"]
        for one, many, name in self.kinds:
            if (count := counts.get(name, 0)) or name == "dead_letters":
                terms.append(f"{count:,} {one if count == 1 else many}")
        source = f"{counted(counts.get(self.read, 0), noun)} read"
        if before := counts.get(self.taken_up, 0):
            source += f" + {before:,} of the state"
        return f"{source} = {' + '.join(terms)}"

    def missing(self, counts: Mapping[str, int]) -> int:
        """Return how many records no counter has."""
        came = counts.get(self.read, 0) + counts.get(self.taken_up, 0)
        return came - sum(counts.get(name, 0) for name in (self.applied, *(name for *_, name in self.kinds)))


def own_applied(counts: Mapping[str, int]) -> int:
    """Return how many of the records that a job read itself were applied: events, or labels of events.

    Events of an imported state are not records of the job, nor are its labels. A label of the job that served
    a prediction of the state was applied.
    """
    lost = sum(counts.get(name, 0) for *_, name in EVENTS.kinds) - counts.get(EARLIER_LOST, 0)
    events = counts.get(EVENTS.read, 0) - lost
    return max(events, 0) + max(counts.get(LABELS.applied, 0) - counts.get(EARLIER_USED, 0), 0)


def own_waiting(counts: Mapping[str, int]) -> int:
    """Return how many of the records that a job read itself may wait in the state that it exports.

    At most so many events of the job can wait as were neither refused nor dropped. The others that wait are
    of the imported state. Labels that wait are taken for the job's own.
    """
    events = counts.get("events_kept", 0)
    if counts.get(EVENTS.taken_up, 0):
        lost = sum(counts.get(name, 0) for *_, name in EVENTS.kinds) - events - counts.get(EARLIER_LOST, 0)
        events = min(events, max(counts.get(EVENTS.read, 0) - lost, 0))
    return events + counts.get("labels_kept", 0)


EVENTS = Sum(
    "events_read", "events_taken_up", "events_applied", "applied",
    (
        ("dead letter", "dead letters", "dead_letters"),
        ("late", "late", "late"),
        ("unmatched", "unmatched", "unmatched"),
        ("duplicate", "duplicates", "duplicate"),
        ("kept in the state", "kept in the state", "events_kept"),
    ),
)  # fmt: skip

LABELS = Sum(
    "labels_read", "labels_taken_up", "labels_used", "used",
    (
        ("unmatched", "unmatched", "labels_unmatched"),
        ("duplicate", "duplicates", "labels_duplicate"),
        ("second label", "second labels", "labels_second"),
        ("dead letter", "dead letters", "labels_invalid"),
        ("late", "late", "labels_late"),
        ("kept in the state", "kept in the state", "labels_kept"),
    ),
)  # fmt: skip
