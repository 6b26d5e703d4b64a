"""The protocol of an order of events in a shard, and of the ledger of packets that the partitions have sent.

    arrival   in the order in which packets arrive
    position  partition after partition, packet by packet; early packets are held
    time      by (time, model, id, a hash of the record). An event waits until every partition is settled
              beyond its time. How events were cut into packets has no influence, nor has the order in which
              packets, heartbeats and ends came.

Each order takes in records and gives the events that may apply now, in their order. `orders` has the three
orders, and makes an order by its name in the settings. See docs/architecture/overview.md, "Order and
lateness".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from ..errors import InputError
from ..events.batch import EventBatch, LabelBatch, PredictionBatch
from ..events.records import Record
from ..events.rejected import Rejected
from ..events.times import NO_TIME

Held = tuple[int, int, bytes]
"""A waiting packet in a snapshot: (partition, sequence, bytes)."""

RUNNER = -1
"""The "partition" number that a snapshot gives to packets that waited for the clock."""


class Ledger(Protocol):
    """A ledger: how many packets the partitions of an input have sent so far."""

    @property
    def count(self) -> int | None:
        """How many partitions there are; None if no record has said this number yet."""

    def received(self, number: int) -> int:
        """Return how many packets of a partition are here without a gap."""

    def has_ended(self, number: int) -> bool:
        """Return whether a partition has ended and all of its packets have arrived."""


def check_joined(content: Record) -> None:
    """Raise InputError for predictions or labels, where events are wanted."""
    if isinstance(content, PredictionBatch | LabelBatch):
        raise InputError(f"a packet of {content.source!r} holds no events; join labels to predictions first")


class InputOrder(ABC):
    """The base of the orders. Its methods return the values of an order that holds nothing back."""

    tied = 0
    """How many given events tie with another event: the input does not say which of two tied events is first.
    """

    @property
    def clock(self) -> int:
        """The clock: every event before this time has been given.

        NO_TIME = not known, END_OF_TIME = all events.
        """
        return NO_TIME

    @property
    def clock_is_given(self) -> bool:
        """Whether `Clock` records, at arbitrary moments, give the clock, and not the partitions."""
        return False

    @property
    def greatest(self) -> int:
        """The greatest time that any partition has reported.

        If all partitions have ended, it is the greatest time of the input.
        """
        return NO_TIME

    @property
    def is_finished(self) -> bool:
        """Whether the last event has been given."""
        return False

    @property
    def waiting(self) -> int:
        """How many events have arrived but may not apply yet.

        In order of position this takes O(events that wait).
        """
        return 0

    @property
    @abstractmethod
    def ledger(self) -> Ledger:
        """The ledger of the packets that the partitions have sent."""

    @abstractmethod
    def receive(self, content: Record, record: bytes) -> Iterator[EventBatch | Rejected]:
        """Take in a record; yield the events that may apply now and the events that came too late."""

    @abstractmethod
    def progress(self) -> dict[str, Any]:
        """Return the state of the order as JSON values, without the packets that wait."""

    @abstractmethod
    def go_on_from(self, progress: dict[str, Any], held: Sequence[Held]) -> None:
        """Load the state that `progress` and `held` returned.

        Raises ValueError, KeyError or TypeError for damaged values.
        """

    @abstractmethod
    def snapshot_bytes(self) -> int:
        """Return about how many bytes the order adds to a snapshot. O(1)."""

    def live_bytes(self) -> int:
        """Return about how many bytes the order takes in memory. O(1)."""
        return self.snapshot_bytes()

    def wakes_at(self) -> int | None:
        """Return the moment at which the order needs a `Clock`; None if it waits for none."""
        return None

    def held(self) -> list[Held]:
        """Return the packets that wait."""
        return []
