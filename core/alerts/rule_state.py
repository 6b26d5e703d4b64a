"""One rule over the rows of one (model, slice, pane): the streak, the open alert, the reference.

The module of `AlertTable` defines the meaning of rules; this module judges one row after another. O(1) a row.

The level of a test of a change
    For an unchanged model, one row has its whole interval beyond 0 on the worse side with probability
    (1 - confidence) / 2, 2.5% by default. This level is for a single test. Neighbouring rows share most of
    their events, but every new window is a new test: an unchanged stream has false alarms now and then, and
    more of them with a shorter window. docs/how-to/alerts.md gives their rate, and the effect of `by` and
    `for`.
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
from ..settings.evidence import PeriodBound
from ..settings.periods import Period
from .rules import Change, Limit, Span
from .surely import Figures, Surely

MOST_REFERENCES = 4_096
"""The most rows that wait to become a reference, for one rule and key: 200 KB. With more rows, every second
row is dropped. Then a reference may lie further back than the rule asks, by up to the new distance between
rows.
"""

MOST_BEGINNINGS = 16
"""The most rows that are kept to name the row with which evidence began to grow: the row is a rough estimate.
"""

_STATE = struct.Struct("<??6qI")
_REFERENCE = struct.Struct("<4q2d")
_SURE = struct.Struct("<2d")
STATE_BYTES, REFERENCE_BYTES, SURE_BYTES = _STATE.size, _REFERENCE.size, _SURE.size


class WatchedRow(NamedTuple):
    """A row, reduced to the columns that rules read; NO_TIME for a null time.

    moment  the row's `due`, or else its `time`
    begin   the number of events before the row's window
    since   the time before the row's window
    """

    row: int
    moment: int
    time: int
    seq: int
    begin: int
    since: int
    numbers: tuple[float, ...]


class Reference(NamedTuple):
    """A row with which later rows may be compared; half_width is 0 if its value has no interval."""

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
class Sure:
    """The evidence that a rule on evidence remembers (`surely`).

    mark    while no alert is open, the logarithm of the baseline; else the greatest evidence since the alert
            opened
    latest  the evidence of the latest row that has evidence
    limit   the evidence at which the latest row's decision changes; the limit is not stored
    bound   the bound that the period of the rule gave, by the latest row; the bound is not stored
    """

    mark: float = 0.0
    latest: float = 0.0
    limit: float = math.nan
    bound: float | None = None

    def turn(self, is_open: bool) -> None:
        """Set `mark` again when an alert opens or closes.

        Behind a closed alert the baseline is the latest row's evidence, or 0 if that is less.
        """
        self.mark = self.latest if is_open else max(0.0, self.latest)

    def pack(self) -> bytes:
        """Return the wire form of this evidence."""
        return _SURE.pack(self.mark, self.latest)

    @classmethod
    def read(cls, reader: Reader) -> Sure:
        """Read the evidence from its wire form; raises ValueError for numbers that no rule remembers."""
        sure = cls(*reader.numbers(_SURE.format))
        if not (math.isfinite(sure.mark) and math.isfinite(sure.latest)):
            raise ValueError("a rule remembers evidence that is not finite")
        return sure


@dataclass(slots=True)
class Watch:
    """The state of one rule for one series of rows.

    It says whether the rule's alert is open and since when, and has the present streak and the references.

    references      the reference and the rows that may become the reference, oldest first; the ordinals of
                    the rows behind the first are multiples of `stride`
    opened_against  the reference of an open alert: this reference stays until the alert closes
    untold          whether the open alert is beyond the cap of its rule, so that its closing is not told
    sure            the evidence that the rule remembers, if the rule is on evidence
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
    sure: Sure | None = None

    @property
    def kept(self) -> int:
        """The number of references that the watch holds."""
        return len(self.references) + (self.opened_against is not None)

    @property
    def period_bound(self) -> float | None:
        """The bound that the period of the rule gave, by the latest row.

        None if the rule has no such bound.
        """
        return None if self.sure is None else self.sure.bound

    def goes_on(self, holds: bool | None, row: WatchedRow, held: Span) -> bool:
        """Add a row to the streak; return whether the streak is long enough.

        If `holds` is None, the condition has no result for the row.
        """
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
        """Open the alert if it is closed, else close the alert."""
        self.is_open = not self.is_open
        self.opened_against = reference if self.is_open else None
        self.opened_row, self.opened_time, self.streak = row.row, row.moment, 0
        if self.sure is not None:
            self.sure.turn(self.is_open)

    def is_sure(self, surely: Surely, row: WatchedRow, figures: Figures) -> bool | None:
        """Return whether an alert on evidence opens, or stays open; None if there is no result (`surely`).

        `streak_row` is the row at which the evidence began to grow, as the latest row estimates it. The rows
        that may become `streak_row` are `references`; if there are many, every second row is dropped.
        """
        assert self.sure is not None
        sure = self.sure
        if isinstance(surely.bound, PeriodBound):
            sure.bound = None if math.isnan(figures.evidence_bound) else figures.evidence_bound
        if math.isnan(figures.evidence):
            return None
        level = surely.level(figures.block_events)
        sure.latest = figures.evidence
        held = self.references
        held.append(Reference(row.row, row.moment, row.time, row.seq, figures.evidence, 0.0))
        while len(held) > 1 and held[0].seq <= figures.evidence_since:
            held.popleft()
        if len(held) > MOST_BEGINNINGS:
            self.references = held = deque([*list(held)[:-1:2], held[-1]])
        if self.is_open:
            sure.mark = max(sure.mark, figures.evidence)
            sure.limit = sure.mark - level
            return figures.evidence > sure.limit
        self.streak_row, self.streak_time = held[0].row, held[0].moment
        sure.mark = max(0.0, min(sure.mark, figures.evidence))
        sure.limit = sure.mark + level
        return figures.evidence >= sure.limit

    def limit_of(self, decided: Limit | Change | Surely) -> float:
        """Return the limit of the latest row's value, or for a change the limit of the size of the change."""
        if isinstance(decided, Surely):
            assert self.sure is not None
            return self.sure.limit
        return decided.by if isinstance(decided, Change) else decided.number

    def changed(
        self, change: Change, row: WatchedRow, value: float, half_width: float
    ) -> tuple[bool | None, Reference | None]:
        """Return whether a value has changed, and the reference; the first is None if there is no result.

        The row is kept, because it may become the reference of later rows.

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
        """Yield the wire form of the watch: `_STATE`, the `Sure`, and a `_REFERENCE` for each reference.

        The reference of the open alert comes last.
        """
        against = self.opened_against
        yield _STATE.pack(
            self.is_open, against is not None, self.opened_row, self.opened_time, self.streak,
            self.streak_row, self.streak_time, self.stride, len(self.references),
        )  # fmt: skip
        if self.sure is not None:
            yield self.sure.pack()
        for reference in (*self.references, *(() if against is None else (against,))):
            yield _REFERENCE.pack(*reference)

    @classmethod
    def read(cls, reader: Reader, *, of_evidence: bool) -> Watch:
        """Read a watch from its wire form.

        Raises ValueError or struct.error for bytes that `pack` cannot have written.

        of_evidence  whether the rule is on evidence
        """
        is_open, has_reference, *state, count = reader.numbers(_STATE.format)
        watch = cls(is_open, *state)
        if watch.stride < 1:
            raise ValueError(f"every {watch.stride}th row is kept")
        if of_evidence:
            watch.sure = Sure.read(reader)
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
