"""What a reader needs of a partition of a stream: messages from any offset on, and where it ends now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

from ...files.lines import LongLine

_NONE: Mapping[int, LongLine] = MappingProxyType({})


class Fetched(NamedTuple):
    """Consecutive messages of a partition.

    offsets  of the messages; rising, not always by 1
    values   their bytes; None = a message has none
    next     the offset to go on from
    at_end   nothing was there behind it when it was read
    deleted  so many messages before `next` were deleted before anybody read them; nothing else was found then
    place    where that is, in words of the partition's own, if an offset alone does not say it
    ended    nothing will ever be there behind it
    long     by offset what was too long to be a message, whose value is None here
    """

    offsets: Sequence[int]
    values: Sequence[bytes | None]
    next: int
    at_end: bool
    deleted: int = 0
    place: str = ""
    ended: bool = False
    long: Mapping[int, LongLine] = _NONE


class StreamPartition(Protocol):
    """One partition of a stream. It is sent to workers, so it holds no connection itself."""

    @property
    def name(self) -> str:
        """What dead letters call it."""
        ...

    @property
    def origin(self) -> str:
        """What tells it from another of the same name; "" where the name does, or nobody knows."""
        ...

    def fetch(self, offset: int, limit: int, wait: float, place: str = "") -> Fetched:
        """Return up to `limit` messages from an offset on; wait up to `wait` seconds for the first.

        place  what the fetch before said, whoever did it; "" at the beginning
        """
        ...

    def end(self) -> int:
        """Return the offset behind the last message, as far as known; -1 = not known."""
        ...

    def unread_partitions(self) -> int:
        """Return how many partitions the stream has that nobody reads: they came when the job ran."""
        ...

    def close(self) -> None:
        """Let go of what this process holds of it; to fetch again is no mistake."""
        ...
