"""What a reader needs of a partition of a stream: messages or records from any offset on, and its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from .parts import Part


class Fetched(NamedTuple):
    """Consecutive messages, or records, of a partition.

    offsets  of the messages; rising, not always by 1
    values   their bytes; None = a message has none
    next     the offset to go on from
    at_end   nothing was there behind it when it was read
    deleted  so many messages before `next` were deleted before anybody read them; nothing else was found then
    parts    the records instead of messages, where the partition knows their columns
    place    where `next` is, in the partition's own words, if an offset alone does not say it
    ended    nothing will ever be there behind `next`
    """

    offsets: Sequence[int]
    values: Sequence[bytes | None]
    next: int
    at_end: bool
    deleted: int = 0
    parts: Sequence[Part] = ()
    place: str = ""
    ended: bool = False


class StreamPartition(Protocol):
    """One partition of a stream. One that is sent to workers holds no connection itself."""

    @property
    def name(self) -> str:
        """Its name: of a topic's partition the source of dead letters, too."""
        ...

    @property
    def origin(self) -> str:
        """What tells the partition from another of the same name; "" where the name does, or nobody knows."""
        ...

    @property
    def resumes(self) -> bool:
        """Whether another job can go on from an offset of this one."""
        ...

    def fetch(self, offset: int, limit: int, wait: float, place: str = "") -> Fetched:
        """Return up to `limit` records from an offset on; wait up to `wait` seconds for the first.

        place  what the fetch before said, whoever did it; "" at the beginning
        """
        ...

    def stop(self) -> None:
        """Let this process end the partition soon: records that it has begun to read come, later ones do not.

        The fetch that gives the last of them says `ended`.
        """
        ...

    def end(self) -> int:
        """Return the offset behind the last message, as far as known; -1 = not known."""
        ...

    def unread_partitions(self) -> int:
        """Return how many partitions the stream has that nobody reads: they came when the job ran."""
        ...

    def close(self) -> None:
        """Let go of what this process holds of the partition; to fetch again is no mistake."""
        ...
