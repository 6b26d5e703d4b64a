"""A partition of a stream that is a list: what reads partitions is tested without a broker."""

from __future__ import annotations

from dataclasses import dataclass, field

from rocsteady.transforms.sources.streams.partition import Fetched


@dataclass(frozen=True)
class ListPartition:
    """Message i has offset `offsets[i]`; at most `at_once` are given, as a broker gives what it likes.

    low       what was before this offset is deleted
    origin    see `StreamPartition`
    siblings  partitions that were added meanwhile
    """

    name: str
    values: tuple[bytes | None, ...]
    at_once: int = 1_000_000
    offsets: tuple[int, ...] | None = None
    low: int = 0
    origin: str = ""
    resumes: bool = True
    siblings: list[ListPartition] = field(default_factory=list, compare=False)
    stopped: list[bool] = field(default_factory=list, compare=False)

    def fetch(self, offset: int, limit: int, wait: float, place: str = "") -> Fetched:  # noqa: ARG002
        if self.stopped:
            return Fetched([], [], offset, True, ended=True)
        if offset < self.low:
            return Fetched([], [], self.low, False, self.low - offset)
        places = range(len(self.values)) if self.offsets is None else self.offsets
        found = [(place, value) for place, value in zip(places, self.values, strict=True) if place >= offset]
        taken = found[: min(limit, self.at_once)]
        after = taken[-1][0] + 1 if len(taken) < len(found) else max(self.end(), offset)
        offsets, values = [place for place, _ in taken], [value for _, value in taken]
        return Fetched(offsets, values, after, len(taken) == len(found))

    def end(self) -> int:
        return len(self.values) if self.offsets is None else max(self.offsets, default=-1) + 1

    def stop(self) -> None:
        self.stopped.append(True)

    known = 0
    is_first = True

    def as_of(self, known: int) -> ListPartition:  # noqa: ARG002
        return self

    def added(self) -> list[int]:
        return [*range(len(self.siblings))]

    def sibling(self, number: int) -> ListPartition:
        return self.siblings[number]

    def close(self) -> None:
        pass
