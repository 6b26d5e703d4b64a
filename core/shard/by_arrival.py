"""Order of arrival: events apply as they come."""

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
    """The ledger of a state of an earlier version, which counted no packets in order of arrival."""

    count = None

    def received(self, number: int) -> int | None:  # noqa: ARG002
        """Return None."""
        return None

    def has_ended(self, number: int) -> bool:  # noqa: ARG002
        """Return False."""
        return False


class ArrivalOrder(InputOrder):
    """As they come; `EndOfInput` may come more than once, as a pane fires late.

    Packets that have numbers are counted, so that none is missing in an export, and none counts twice. The
    end of all their partitions is that of the input: on a stream no other word may ever say so.
    """

    is_finished = False

    def __init__(self) -> None:
        self._sources: SourcePartitions | None = SourcePartitions()
        self._begun = False  # with the state of another job, whose packets were counted

    def take(self, content: Record, record: bytes) -> Iterator[EventBatch | Rejected]:  # noqa: ARG002
        """Yield a batch."""
        sources = self._sources
        if isinstance(content, EventBatch):
            place = (content.source, content.partition, content.sequence)
            if sources is None or content.sequence == UNORDERED or sources.take(content, place):
                yield content
        elif isinstance(content, Heartbeat | EndOfPartition) and sources is not None:
            sources.take(content, (content.source, content.partition, UNORDERED))
        elif isinstance(content, StateMarker):
            if sources is None:
                raise InputError(
                    "the state is one of an earlier rocsteady in order of arrival, which did not count its "
                    "packets, so that an export could miss some; let the job end, and begin a new one"
                )
            sources.take(content, (content.source, content.partition, content.sequence))
        self.is_finished = isinstance(content, EndOfInput) or self._has_ended()

    def _has_ended(self) -> bool:
        return self._sources is not None and self._sources.ended

    @property
    def ledger(self) -> Ledger:
        """What the partitions have sent; nothing of it is known in a state that did not count packets."""
        return _Uncounted() if self._sources is None else self._sources

    def progress(self) -> dict[str, Any]:
        """Return what the partitions have said, if packets have numbers."""
        if self._sources is None or not (self._sources or self._begun):
            return {}
        return {"sources": self._sources.progress()}

    def go_on_from(self, progress: dict[str, Any], held: Sequence[Held]) -> None:
        """Take over what `progress` gave; raises ValueError where packets wait.

        Without any nothing is counted from here on: packets may have had numbers that were not noted.
        """
        if held:
            raise ValueError("packets wait where they apply as they come")
        self._sources = SourcePartitions.of_progress(progress["sources"]) if progress else None
        self._begun = bool(progress)
        self.is_finished = self._has_ended()

    def snapshot_bytes(self) -> int:
        """Return about what it adds to a snapshot."""
        return 0 if self._sources is None else self._sources.snapshot_bytes()
