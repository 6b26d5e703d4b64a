"""Deduplicator: of several events of one model with one id within a horizon of time, only the first counts.

For sources that deliver an event more than once. An event is dropped if and only if the deduplicator
remembers a kept event of the same (model, id), whose time differs by at most `horizon`. The clock is the
greatest time seen, over all models. A kept event is remembered until the clock has advanced by more than
`horizon` since the event came, and by 9/8 of `horizon` at most. Events are forgotten by panes of one eighth
of the horizon. So

    in order of time    an event is compared with every kept event within the horizon, and with no other event
    in any other order  an event counts twice only if it comes again after the clock has advanced by more than
                        the horizon; it is never dropped for an event that is farther away than the horizon

An event without an id is never dropped, nor remembered.

A kept event is remembered as the 128-bit hash of its (model, id) (hash128.py) and its time: 24 bytes. An
event is dropped wrongly only if two hashes are equal. Among n remembered hashes two are equal with a
probability below n^2 / 2^129, for a thousand million hashes 1.5e-21.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..arrays import Int64Array
from ..encoding.fields import Reader
from ..encoding.json import reading
from ..errors import InputError
from ..events.batch import EventBatch
from ..events.columns import IdColumn, TextColumn
from ..events.rejected import Reason, Rejected, details_of, in_words
from ..events.times import FARTHEST, NO_TIME, are_near
from .hash128 import hash128
from .remembered import (
    CLOCK,
    COUNT,
    ENTRIES,
    NUMBER,
    PANES,
    PANES_AT_MOST,
    contents,
    filled,
    is_too_large,
    judge,
    new_memory,
    resized,
)

_FOR_EVER = 2**62
_HEAD = struct.Struct("<qBqQI")


class Deduplicator:
    """Tells which events repeat an earlier event within a horizon, in microseconds.

    forgets  False: kept events are remembered to the end of the input, however the clock advances. An event
             is then dropped if and only if a kept event of its model and id is within the horizon, in any
             order of arrival.

    >>> deduplicator = Deduplicator(10)
    >>> models, ids = TextColumn.of(["a"] * 4), IdColumn.of(["x", "x", "y", "x"])
    >>> keep, kept_times = deduplicator.judge(models, ids, np.array([0, 10, 10, 11]))
    >>> keep.tolist(), kept_times[~keep].tolist()
    ([True, False, True, True], [0])
    """

    def __init__(self, horizon: int, *, forgets: bool = True) -> None:
        self.horizon = horizon
        self.forgets = forgets
        self._remembered = horizon if forgets else _FOR_EVER
        self._pane = -(-self._remembered // 8)
        self._memory = new_memory()

    def __len__(self) -> int:
        """Return how many events are remembered."""
        return int(self._memory.counters[COUNT])

    @property
    def clock(self) -> int:
        """The greatest time seen; NO_TIME before the first event."""
        return int(self._memory.counters[CLOCK])

    def judge(
        self, models: TextColumn, ids: IdColumn, times: Int64Array
    ) -> tuple[npt.NDArray[np.bool_], Int64Array]:
        """Return which of n events count (bool[n]), and for all other events the time of the kept event.

        Among several kept events within the horizon the nearest is chosen, and of two equally near the
        earlier. The time is NO_TIME for events that count. Costs 0.15 us an event, however many are
        remembered. The result does not depend on how events are cut into calls.

        Raises InputError for a missing time or a time over 70,000 years from 1970; the deduplicator is then
        unchanged.
        """
        n = len(times)
        keep, kept_times = np.ones(n, np.bool_), np.full(n, NO_TIME)
        if not n:
            return keep, kept_times
        if not are_near(times):
            raise InputError(
                "an event to be deduplicated has no time, or one that lies more than 70,000 years from 1970; "
                "check the unit of the times"
            )
        hashes = hash128(ids, models.codes, hash128(IdColumn.of([*models.values])))
        at = 0
        while True:
            at = judge(
                self._memory, self.horizon, self._remembered, self._pane, hashes, ids.lengths, times, at,
                keep, kept_times,
            )  # fmt: skip
            if at == n:
                break
            self._memory = resized(self._memory)
        if is_too_large(self._memory):
            self._memory = resized(self._memory)
        return keep, kept_times

    def sift(self, events: EventBatch) -> tuple[EventBatch, Rejected]:
        """Return the events that count, and the other events as rejected, with the reason in words.

        Raises InputError for events without times or ids.
        """
        if events.times is None or events.ids is None:
            missing, option = ("times", "time") if events.times is None else ("ids", "id")
            raise InputError(
                f"events without {missing} cannot be deduplicated; name the column with {option}= "
                f"(--{option}), or leave deduplicate= (--deduplicate) out"
            )
        keep, kept_times = self.judge(events.models, events.ids, events.times)
        if keep.all():
            return events, Rejected("duplicate", events.part(0, 0), Reason.SECOND_EVENT, TextColumn.of([]))
        again = np.flatnonzero(~keep)
        apart = (events.times - kept_times)[again]
        refused = Rejected(
            "duplicate", events.take(again), Reason.SECOND_EVENT, details_of(apart, _in_words), np.abs(apart),
            self.horizon,
        )  # fmt: skip
        return events.take(np.flatnonzero(keep)), refused

    @classmethod
    def merged(cls, parts: Sequence[Deduplicator]) -> Deduplicator:
        """Merge deduplicators of one horizon into one that remembers every event any of them remembers.

        O(entries). The clock of the result is the latest of their clocks; events too old for that clock are
        forgotten. `parts` must not be empty.
        """
        self = cls(parts[0].horizon, forgets=parts[0].forgets)
        clock = max(part.clock for part in parts)
        if clock == NO_TIME:
            return self
        opened, hashes, times = [
            np.concatenate(columns) for columns in zip(*map(_entries, parts), strict=True)
        ]
        first = np.sort(
            np.unique(np.column_stack((hashes, times.view(np.uint64))), axis=0, return_index=True)[1]
        )
        first = first[(opened[first] + 1) * self._pane - 1 >= clock - self._remembered]
        order = first[np.argsort(opened[first], kind="stable")]
        numbers, counts = np.unique(np.append(opened[order], clock // self._pane), return_counts=True)
        counts[-1] -= 1  # the pane of the clock is open, with entries or without
        panes = np.column_stack((numbers, counts))
        self._memory = filled(hashes[order], times[order], panes, clock)
        return self

    # ---- state

    @property
    def nbytes(self) -> int:
        """Bytes of memory: 36 to 40.5 for each remembered event, or up to four times as many after a peak."""
        return sum(array.nbytes for array in self._memory)

    def snapshot_bytes(self) -> int:
        """Return the length of `to_bytes()` in bytes. O(1)."""
        return 4 + _HEAD.size + 16 * int(self._memory.counters[PANES]) + 24 * len(self)

    def to_bytes(self) -> bytes:
        """Return a snapshot. A deduplicator loaded from the snapshot decides exactly as this deduplicator.

        Wire form, little-endian: crc32 of the rest (u32); horizon (i64), 1 if `forgets` and else 0 (u8),
        clock (i64), entries (u64), panes (u32); number and entries of each pane (i64); then of all entries,
        the oldest first, their hashes (two u64), and their times (i64).
        """
        panes, hashes, times = contents(self._memory)
        payload = b"".join(
            [
                _HEAD.pack(self.horizon, self.forgets, self.clock, len(times), len(panes)),
                panes.astype("<i8").tobytes(),
                hashes.astype("<u8").tobytes(),
                times.astype("<i8").tobytes(),
            ]
        )
        return struct.pack("<I", zlib.crc32(payload)) + payload

    @classmethod
    def from_bytes(cls, data: bytes) -> Deduplicator:
        """Return the deduplicator that wrote a snapshot; CorruptBytesError for any other bytes."""
        with reading("a snapshot of a deduplicator"):
            reader = Reader(memoryview(data))
            if reader.number("<I") != zlib.crc32(reader.payload[reader.at :]):
                raise ValueError("their checksum is another")
            horizon, forgets, clock, count, held = reader.numbers(_HEAD.format)
            if not 0 < horizon < FARTHEST or held > PANES_AT_MOST:
                raise ValueError(f"a horizon of {horizon} and {held} panes")
            self = cls(horizon, forgets=bool(forgets))
            panes = reader.array("<i8", 2 * held).reshape(held, 2)
            hashes = reader.array("<u8", 2 * count).reshape(count, 2)
            times = reader.array("<i8", count)
            reader.end()
            numbers, entries = panes[:, NUMBER], panes[:, ENTRIES]
            if (entries < 0).any() or entries.sum() != count or (held == 0) != (clock == NO_TIME):
                raise ValueError(f"panes of {entries.tolist()} entries where there are {count}")
            if (np.diff(numbers) <= 0).any() or (held and numbers[-1] != clock // self._pane):
                raise ValueError(f"panes {numbers.tolist()} up to a clock of {clock}")
            self._memory = filled(hashes, times, panes, clock)
            return self


def _entries(part: Deduplicator) -> tuple[Int64Array, npt.NDArray[np.uint64], Int64Array]:
    """Return three columns of the events that `part` remembers, the oldest first: pane number, hash, time."""
    panes, hashes, times = contents(part._memory)
    return np.repeat(panes[:, NUMBER], panes[:, ENTRIES]), hashes, times


def _in_words(apart: int) -> str:
    """Return in words how far a duplicate is from the event that counts."""
    if not apart:
        return "its model and id came before, with the same time"
    side = "earlier" if apart > 0 else "later"
    return f"its model and id came before, with a time {in_words(abs(apart))} {side}"
