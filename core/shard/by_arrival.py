"""Order of arrival: events apply in the order in which their packets arrive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import InputError
from ..events.batch import EventBatch
from ..events.records import EndOfInput, EndOfPartition, Heartbeat, Record, StateMarker
from ..events.rejected import Rejected
from ..events.wire import UNORDERED
from .order import Held, InputOrder, Ledger
from .partitions import SourcePartitions


class _Uncounted:
    """The ledger of a state of an earlier version, which did not count packets in order of arrival."""

    count = None

    def received(self, number: int) -> int | None:  # noqa: ARG002
        """Return None."""
        return None

    def has_ended(self, number: int) -> bool:  # noqa: ARG002
        """Return False."""
        return False


class ArrivalOrder(InputOrder):
    """Yields every batch as it arrives. `EndOfInput` may come more than once: a pane may fire late.

    Packets that have numbers are counted, so that an export misses no packet and no packet counts twice. The
    input ends when all its partitions have ended: on a stream no `EndOfInput` may ever come.
    """

    is_finished = False

    def __init__(self) -> None:
        self._sources = SourcePartitions()
        self._counts = True
        # True if the order began with the state of another job, whose packets were counted
        self._begun = False

    def receive(self, content: Record, record: bytes) -> Iterator[EventBatch | Rejected]:  # noqa: ARG002
        """Yield the batch of a record at once, unless the record repeats a packet."""
        if isinstance(content, EventBatch):
            if not self._counts or content.sequence == UNORDERED or self._sources.receive(content):
                yield content
        elif isinstance(content, StateMarker) and not self._counts:
            raise InputError(
                "the state is one of an earlier rocsteady in order of arrival, which did not count its "
                "packets, so that an export could miss some; let the job end, and begin a new one"
            )
        elif isinstance(content, Heartbeat | EndOfPartition | StateMarker) and self._counts:
            self._sources.receive(content)
        self.is_finished = isinstance(content, EndOfInput) or self._sources.ended

    @property
    def ledger(self) -> Ledger:
        """What the partitions have sent. The ledger knows nothing if the state did not count packets."""
        return self._sources if self._counts else _Uncounted()

    def progress(self) -> dict[str, Any]:
        """Return what the partitions have said; empty if packets have no numbers."""
        return {"sources": self._sources.progress()} if self._sources or self._begun else {}

    def go_on_from(self, progress: dict[str, Any], held: Sequence[Held]) -> None:
        """Take over what `progress` gave. Raises ValueError if `held` has packets: none waits in this order.

        With an empty `progress` no packet is counted from here on: earlier packets may have had numbers that
        the state did not note.
        """
        if held:
            raise ValueError("packets wait, although the order of arrival applies each at once")
        self._counts = self._begun = bool(progress)
        if progress:
            self._sources = SourcePartitions.of_progress(progress["sources"])
        self.is_finished = self._sources.ended

    def snapshot_bytes(self) -> int:
        """Return about how many bytes the order adds to a snapshot."""
        return self._sources.snapshot_bytes()
