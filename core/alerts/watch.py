"""One rule over the rows of one (model, slice, pane): the streak, the open alert, the reference.

What the words of a rule mean stands at `AlertTable`; here is how one row after another is judged. O(1) a row.
"""

from __future__ import annotations

import math
import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ..encoding.fields import Reader
from ..events.times import NO_TIME
from ..rows.differences import half_width_of_difference
from .rules import Change, Period, Span

MOST_REFERENCES = 4_096
"""Rows that wait to become a reference, of a rule and key: 200 KB. Beyond it every second of them is dropped,
so that a reference may lie further back than it must, by as many rows as the new distance between two."""

_STATE = struct.Struct("<??6qI")
_REFERENCE = struct.Struct("<4q2d")
STATE_BYTES, REFERENCE_BYTES = _STATE.size, _REFERENCE.size


class WatchedRow(NamedTuple):
    """A row as rules read it; times NO_TIME where null.

    moment  its `due`, or else its `time`
    begin   events, and
    since   the time, that lie before its window
    """

    row: int
    moment: int
    time: int
    seq: int
    begin: int
    since: int
    numbers: tuple[float, ...]


class Reference(NamedTuple):
    """A row that others may be held against; half_width is 0 where its value has no interval."""

    row: int
    moment: int
    time: int
    seq: int
    value: float
    half_width: float

    def apart(self, row: WatchedRow) -> bool:
        """Return whether its window shares no event with that of a later row (`rows.differences`)."""
        if self.seq > row.begin:
            return False
        return NO_TIME in (self.time, row.since) or self.time < row.since


@dataclass(slots=True)
class Watch:
    """Whether the alert is open and since when; the streak towards the next change of that; references.

    references      rows that are the reference or may become it, oldest first; behind the first, their
                    ordinals are multiples of `stride`
    opened_against  the reference of an open alert: it stays until the alert closes
    """

    is_open: bool = False
    opened_row: int = 0
    opened_time: int = NO_TIME
    streak: int = 0
    streak_row: int = 0
    streak_time: int = NO_TIME
    stride: int = 1
    references: deque[Reference] = field(default_factory=deque)
    opened_against: Reference | None = None

    @property
    def kept(self) -> int:
        """How many references it holds."""
        return len(self.references) + (self.opened_against is not None)

    def goes_on(self, holds: bool | None, row: WatchedRow, held: Span) -> bool:
        """Take a row into the streak; return whether it is long enough now. None: the row does not say."""
        if holds is None or (held.unit == "time" and row.moment == NO_TIME):
            return False
        if not holds:
            self.streak = 0
            return False
        if not self.streak:
            self.streak_row, self.streak_time = row.row, row.moment
        self.streak += 1
        return (row.moment - self.streak_time if held.unit == "time" else self.streak) >= held.count

    def turn(self, row: WatchedRow, reference: Reference | None) -> None:
        """Open what is closed, or close what is open."""
        self.is_open = not self.is_open
        self.opened_against = reference if self.is_open else None
        self.opened_row, self.opened_time, self.streak = row.row, row.moment, 0

    def changed(
        self, change: Change, row: WatchedRow, value: float, half_width: float
    ) -> tuple[bool | None, Reference | None]:
        """Return whether a value has changed, None = the row does not say, and against what; keep the row.

        half_width  of its interval: 0 where there is none, NaN where it is not to be compared
        """
        reference = self._reference(change.against, row)
        if math.isnan(value + half_width):
            return None, None
        self._keep(change.against, row, value, half_width)
        if self.is_open:
            reference = self.opened_against
        if reference is None:
            return None, None
        size = reference.value - value if change.direction == "drops" else value - reference.value
        if math.isnan(size):  # both are infinite
            return None, None
        return size - half_width_of_difference(half_width, reference.half_width) > change.by, reference

    def _reference(self, against: Span | Period, row: WatchedRow) -> Reference | None:
        """Return what a row is held against; drop what no later row will be."""
        held = self.references
        if isinstance(against, Period):
            return held[0] if held and row.time >= against.end and held[0].apart(row) else None
        while len(held) > 1 and _far_enough(against, held[1], row):
            held.popleft()
        return held[0] if held and _far_enough(against, held[0], row) else None

    def _keep(self, against: Span | Period, row: WatchedRow, value: float, half_width: float) -> None:
        held = self.references
        one = Reference(row.row, row.moment, row.time, row.seq, value, half_width)
        if isinstance(against, Period):
            if NO_TIME not in (row.since, row.time) and against.start <= row.since and row.time < against.end:
                held.clear()
                held.append(one)
            return
        if row.row % self.stride or (against.unit == "time" and row.moment == NO_TIME):
            return
        held.append(one)
        if len(held) > MOST_REFERENCES:
            self.stride *= 2
            first = held.popleft()
            rest = [reference for reference in held if reference.row % self.stride == 0]
            held.clear()
            held.extend((first, *rest))

    def pack(self) -> Iterator[bytes]:
        """Yield the wire form: `_STATE`, then a `_REFERENCE` of each, that of the open alert last."""
        against = self.opened_against
        yield _STATE.pack(
            self.is_open, against is not None, self.opened_row, self.opened_time, self.streak,
            self.streak_row, self.streak_time, self.stride, len(self.references),
        )  # fmt: skip
        for reference in (*self.references, *(() if against is None else (against,))):
            yield _REFERENCE.pack(*reference)

    @classmethod
    def read(cls, reader: Reader) -> Watch:
        """Return what `pack` gave. Raises ValueError or struct.error for what it cannot have given."""
        is_open, has_reference, *state, count = reader.numbers(_STATE.format)
        watch = cls(is_open, *state)
        if watch.stride < 1:
            raise ValueError(f"every {watch.stride}th row is kept")
        watch.references.extend(Reference(*reader.numbers(_REFERENCE.format)) for _ in range(count))
        if has_reference:
            watch.opened_against = Reference(*reader.numbers(_REFERENCE.format))
        return watch


def _far_enough(against: Span, reference: Reference, row: WatchedRow) -> bool:
    if against.unit == "rows":
        back = row.row - reference.row
    else:
        back = -1 if row.moment == NO_TIME else row.moment - reference.moment
    return back >= against.count and reference.apart(row)
