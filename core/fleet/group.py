"""One group of a `FleetTable`: the rows of its members, and the roll-up row of a grid point.

`FleetTable` decides when a grid point is closed.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..encoding.fields import Reader, packed_text
from ..errors import InputError
from ..events.times import NO_TIME
from ..rows.reasons import DEGENERATE, REASONS
from ..rows.roll_ups import RollUpRow
from .formulas import roll_up_numbers, variances
from .members import NUMBERS, are_possible
from .roll_up_settings import RollUpSettings
from .surely import surely_columns

_GROUP = struct.Struct("<2qI")
_ROW = struct.Struct(f"<?q{len(NUMBERS)}d")

_UNKNOWN_INTERVAL = "its interval is from 0 to 1"
_UNKNOWN_COUNTS = "its positives and negatives are not known"

Key = tuple[tuple[str, ...], int, int]
"""The name of a group, alone or with a class, and the start and end of the pane (NO_TIME if there is no
pane).

The class is "" for the rows of all classes.
"""


class MemberRow(NamedTuple):
    """The row of a member.

    It has the grid point, the reason why its AUC or interval is null or has no width, and `NUMBERS`.
    """

    due: int
    why: str
    numbers: tuple[float, ...]


@dataclass(slots=True)
class Group:
    """The state of a group.

    key      the name of the group, and its pane
    config   the configuration of all rows of the group
    row      the ordinal of the next roll-up row
    closed   the last grid point that has a roll-up row; NO_TIME if there is no such point
    last     the last row of each member, among the rows at closed grid points
    waiting  for each grid point that is not closed, the rows of members
    size     the length of the wire form in bytes
    """

    key: Key
    config: str
    row: int = 0
    closed: int = NO_TIME
    last: dict[str, MemberRow] = field(default_factory=dict)
    waiting: dict[int, dict[str, MemberRow]] = field(default_factory=dict)
    size: int = 0

    def __post_init__(self) -> None:
        self.size = len(packed_text(self.config)) + _GROUP.size

    def take(self, member: str, config: str, row: MemberRow) -> None:
        """Add a row of a member.

        A row at a closed grid point becomes the member's last row, if it is newer than that row.

        Raises InputError for a row of another configuration, and for a second row of a grid point.
        """
        if config != self.config:
            raise InputError(
                f"the group {self.key[0][0]!r} has rows of different windows, grids or other settings (config"
                f" {self.config!r} and {config!r}, of {member!r}); roll up rows of one evaluation at a time"
            )
        if row.due <= self.closed:
            last = self.last.get(member)
            if last is None or last.due < row.due:
                self._replace_last(member, row)
            return
        waiting = self.waiting.setdefault(row.due, {})
        if (known := waiting.setdefault(member, row)) is row:
            self.size += _row_bytes(member, row)
        elif not _equal(known, row):
            raise InputError(
                f"the group {self.key[0][0]!r} has two rows of {member!r} at one grid point that differ; two "
                "jobs wrote to one place: read them apart"
            )

    def _replace_last(self, member: str, row: MemberRow) -> None:
        if (before := self.last.get(member)) is not None:
            self.size -= _row_bytes(member, before)
        self.last[member] = row
        self.size += _row_bytes(member, row)

    def close(self, due: int, settings: RollUpSettings) -> RollUpRow:
        """Close the next grid point; return its roll-up row. O(members log members)."""
        for member, row in self.waiting.pop(due).items():
            self.size -= _row_bytes(member, row)
            self._replace_last(member, row)
        gone = [member for member, row in self.last.items() if row.due < due - settings.stale]
        for member in gone:
            self.size -= _row_bytes(member, self.last.pop(member))
        self.closed = due
        self.row += 1
        return self._roll_up(due, settings)

    def _roll_up(self, due: int, settings: RollUpSettings) -> RollUpRow:
        members = sorted(self.last)
        numbers = np.array([self.last[member].numbers for member in members])
        auc, low, high, positives, negatives, log_e = numbers.T
        variance = variances(auc, low, high, settings.confidence)
        of_all = self.key[0][1:] == ("",)
        known = np.isfinite(auc) & np.isfinite(variance) & (positives > 0) & (of_all | (negatives > 0))
        counts = known & (variance > 0)
        without = Counter(
            _why(self.last[members[place]], float(variance[place]))
            for place in np.flatnonzero(~counts).tolist()
        )
        (name, *class_), start, end = self.key
        dependent = settings.intervals_of(name)
        kept = np.flatnonzero(known)
        found = roll_up_numbers(
            [members[place] for place in kept.tolist()],
            auc[kept],
            variance[kept],
            positives[kept],
            None if of_all else negatives[kept],
            settings.confidence,
            dependent=dependent,
        )
        return RollUpRow(
            group=name,
            class_="".join(class_) or None,
            row=self.row - 1,
            due=due,
            pane_start=_known(start),
            pane_end=_known(end),
            members=int(np.count_nonzero(counts)),
            members_silent=sum(
                self.last[members[place]].due < due for place in np.flatnonzero(counts).tolist()
            ),
            members_without=sum(without.values()),
            without_reason=min(without, key=lambda why: (-without[why], why), default=None),
            **found,
            **surely_columns(members, log_e, settings.confidence),
            intervals="dependent" if dependent else "independent",
            config=self.config,
        )

    # ---- state

    def pack(self) -> Iterator[bytes]:
        """Yield the parts of the wire form of the group."""
        rows = [(False, member, row) for member, row in self.last.items()]
        rows += [(True, member, row) for moment in self.waiting.values() for member, row in moment.items()]
        yield _GROUP.pack(self.row, self.closed, len(rows))
        yield packed_text(self.config)
        for waits, member, row in rows:
            yield packed_text(member) + packed_text(row.why) + _ROW.pack(waits, row.due, *row.numbers)

    @classmethod
    def read(cls, key: Key, reader: Reader) -> Group:
        """Read a group from its wire form. Raises ValueError for content that no group has."""
        row, closed, rows = reader.numbers(_GROUP.format)
        self = cls(key, reader.text(), row, closed)
        if row < 0:
            raise ValueError(f"{row} roll-up rows")
        for _ in range(rows):
            member, why = reader.text(), reader.text()
            waits, due, *numbers = reader.numbers(_ROW.format)
            place = self.waiting.setdefault(due, {}) if waits else self.last
            if member in place or not are_possible(np.array([numbers])):
                raise ValueError(f"{member!r} is twice in {key}, or has {numbers}")
            if waits and due <= closed:
                raise ValueError(f"{member!r} waits for {due}, and {closed} is closed")
            place[member] = found = MemberRow(due, why, tuple(numbers))
            self.size += _row_bytes(member, found)
        return self


def _row_bytes(member: str, row: MemberRow) -> int:
    return len(packed_text(member)) + len(packed_text(row.why)) + _ROW.size


def _equal(one: MemberRow, other: MemberRow) -> bool:
    """Return whether two rows are the same, where NaN is equal to NaN."""
    return one[:2] == other[:2] and np.array_equal(one.numbers, other.numbers, equal_nan=True)


def _why(row: MemberRow, variance: float) -> str:
    """Return the reason why a member does not count."""
    auc, low, high, positives, negatives, _ = row.numbers
    if variance == 0:
        return REASONS[DEGENERATE]
    if not np.isfinite(auc) or not np.isfinite(low + high):
        return row.why
    return _UNKNOWN_INTERVAL if positives > 0 and negatives > 0 else _UNKNOWN_COUNTS


def _known(time: int) -> int | None:
    return None if time == NO_TIME else time
