"""The order in which the events of a shard apply, and the ledger of what its partitions have sent.

    arrival   as they come (`by_arrival`)
    position  partition after partition, packet by packet; what comes early is held (`by_position`)
    time      by (time, model, id, a hash of the record) (`by_time`): what is not settled yet is held until
              every partition is settled beyond it. Nothing else decides: not how events were cut into
              packets, nor in which order packets and words came

Each order takes in records and gives the events that may apply now, in their order. `orders` makes an order
by its name in the settings. See docs/architecture.md, "Order and lateness".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from ..events.batch import EventBatch
from ..events.records import Record
from ..events.rejected import Rejected
from ..events.times import NO_TIME

Held = tuple[int, int, bytes]
"""A packet that waits, in a snapshot: (partition, sequence, bytes)."""

RUNNER = -1
"""The "partition" of packets that waited for the clock, in a snapshot."""


class Ledger(Protocol):
    """What the partitions of an input have sent so far."""

    @property
    def count(self) -> int | None:
        """How many partitions there are; None = nobody has said so yet."""

    def received(self, number: int) -> int | None:
        """Return how many packets of a partition are here without a gap; None where they are not counted."""

    def has_ended(self, number: int) -> bool:
        """Return whether a partition has ended and all of its packets are here."""


class InputOrder(ABC):
    """An order, with the answers of one that keeps nothing back."""

    tied = 0
    """Events given whose order among each other nothing in the input says."""

    @property
    def clock(self) -> int:
        """Every event before it has been given; NO_TIME = not known, END_OF_TIME = all."""
        return NO_TIME

    @property
    def clock_is_given(self) -> bool:
        """Whether the clock is another's, who tells it at will (`Clock`), and not that of the partitions."""
        return False

    @property
    def grid_clock(self) -> int:
        """Rows before it on a grid of times can be made, also of models that are silent; NO_TIME = none.

        It never passes `greatest`: chance decides how far heartbeats run ahead of events.
        """
        return NO_TIME

    @property
    def greatest(self) -> int:
        """The greatest time that the partitions have told of; of all of them, where they have ended."""
        return NO_TIME

    @property
    def is_finished(self) -> bool:
        """Whether the last event has been given."""
        return False

    @property
    def waiting(self) -> int:
        """How many events are here and may not apply yet. O(what waits) in order of position."""
        return 0

    @property
    @abstractmethod
    def ledger(self) -> Ledger:
        """What the partitions have sent."""

    @abstractmethod
    def take(self, content: Record, record: bytes) -> Iterator[EventBatch | Rejected]:
        """Take in a record; yield what may apply now, and what came too late for that."""

    @abstractmethod
    def progress(self) -> dict[str, Any]:
        """Return all but the packets that wait, for JSON."""

    @abstractmethod
    def go_on_from(self, progress: dict[str, Any], held: Sequence[Held]) -> None:
        """Take over what `progress` and `held` gave; raises ValueError and the like for damage."""

    @abstractmethod
    def snapshot_bytes(self) -> int:
        """Return about how many bytes the order adds to a snapshot. O(1)."""

    def live_bytes(self) -> int:
        """Return about how many bytes the order takes in memory. O(1)."""
        return self.snapshot_bytes()

    def wakes_at(self) -> int | None:
        """Return the moment at which the order wants to hear a `Clock`; None = it waits for none."""
        return None

    def held(self) -> list[Held]:
        """Return the packets that wait."""
        return []
