"""One rule over the rows of one (model, slice, pane): the streak, the open alert, the reference.

The module of `AlertTable` defines the meaning of rules; this module judges one row after another. O(1) a row.
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
"""Most rows that wait to become a reference, of a rule and key: 200 KB. With more rows, every second row is
dropped. A reference may then lie further back than the rule says, by up to the new distance between rows."""

_STATE = struct.Struct("<??6qI")
_REFERENCE = struct.Struct("<4q2d")
STATE_BYTES, REFERENCE_BYTES = _STATE.size, _REFERENCE.size


class WatchedRow(NamedTuple):
    """A row with the columns that rules read; NO_TIME for a null time.

    moment  the row's `due`, or else its `time`
    begin   number of events before the row's window
    since   time before the row's window
    """

    row: int
    moment: int
    time: int
    seq: int
    begin: int
    since: int
    numbers: tuple[float, ...]


class Reference(NamedTuple):
    """A row that later rows may be compared with; half_width is 0 if its value has no interval."""

    row: int
    moment: int
    time: int
    seq: int
    value: float
    half_width: float

    def apart(self, row: WatchedRow) -> bool:
        """Return whether the windows of the reference and a later row share no event (`rows.differences`)."""
        if self.seq > row.begin:
            return False
        return NO_TIME in (self.time, row.since) or self.time < row.since


@dataclass(slots=True)
class Watch:
    """The state of one rule: whether its alert is open and since when, the present streak, and references.

    references      the reference and the rows that may become it, oldest first; after the first of them,
                    their ordinals are multiples of `stride`
    opened_against  the reference of an open alert: it stays until the alert closes
    untold          whether the open alert is beyond the cap of its rule, so that its closing is not told
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
    untold: bool = False

    @property
    def kept(self) -> int:
        """Number of references held."""
        return len(self.references) + (self.opened_against is not None)

    def goes_on(self, holds: bool | None, row: WatchedRow, held: Span) -> bool:
        """Add a row to the streak; return whether the streak is long enough. `holds` None: no result."""
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
        """Open the alert if it is closed, else close it."""
        self.is_open = not self.is_open
        self.opened_against = reference if self.is_open else None
        self.opened_row, self.opened_time, self.streak = row.row, row.moment, 0

    def changed(
        self, change: Change, row: WatchedRow, value: float, half_width: float
    ) -> tuple[bool | None, Reference | None]:
        """Return whether a value has changed (None = no result), and the reference.

        The row is kept: it may become a reference of later rows.

        half_width  half the width of the value's interval: 0 = no interval, NaN = do not compare the value
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
        if math.isnan(size):  # both values are infinite
            return None, None
        return size - half_width_of_difference(half_width, reference.half_width) > change.by, reference

    def _reference(self, against: Span | Period, row: WatchedRow) -> Reference | None:
        """Return the reference of a row; drop rows that no later row will be compared with."""
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
        """Yield the wire form: `_STATE`, then a `_REFERENCE` of each; the open alert's is the last."""
        against = self.opened_against
        yield _STATE.pack(
            self.is_open, against is not None, self.opened_row, self.opened_time, self.streak,
            self.streak_row, self.streak_time, self.stride, len(self.references),
        )  # fmt: skip
        for reference in (*self.references, *(() if against is None else (against,))):
            yield _REFERENCE.pack(*reference)

    @classmethod
    def read(cls, reader: Reader) -> Watch:
        """Read the wire form. Raises ValueError or struct.error for bytes that `pack` cannot have written."""
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
