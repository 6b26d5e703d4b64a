"""FleetTable: the state machine that makes roll-up rows from the rows of measures of many models and slices.

From rows to roll-up rows
    A group has a roll-up row at each grid point at which at least one of its members has a row. Members of a
    roll-up row are those with a row at the grid point, and those whose last row is older by at most `stale`:
    the latter are silent. A member that is silent for longer leaves the group, and returns with its next row.

When a grid point is closed
    A roll-up row needs the rows of all members, so it waits until no row of its grid point can come:
      words    a shard of evaluators says up to which grid point it has given its rows (`Settled`). A grid
               point is closed when all shards have passed it. Each word says from where to where it counts,
               so words may come in any order, and more than once.
      Clock    the runner's watermark closes grid points, where rows come without words.
      EndOfInput  closes all grid points.
    A row that comes behind its closed grid point is late: the table counts it, and uses it at later grid
    points.

Order
    Grid points of a group close in order of time. So roll-up rows are a function of the set of rows, whatever
    their order of arrival and however they were cut into packets. Members are summed in order of their names.

For models with a score of each class, a group has a roll-up row for each class, and a roll-up row for all
classes.

Rows of one group must have one `config`: rows of other windows or grids do not belong to the group.

Snapshot, version 1: a frame (encoding/fields.py) with magic "RSFT". Payload: settings (text), `_HEAD`: the
closed time, counts of rows with and without `due`, numbers of words and of groups; words (`_WORD` each: a
shard, number of shards, from, to); groups. Each group: a u8, 1 or 2, its number of texts; its name (text),
and for models with a score of each class the class, "" for all classes; pane, and the wire form of a `Group`:
next row, the last closed grid point, number of rows; its configuration (text); each row: the member's name, a
reason (texts), whether it waits, `due`, numbers.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence

from ..encoding.fields import HEAD_BYTES, Reader, framed, packed_key, packed_text, read_key, unframed
from ..encoding.json import reading
from ..errors import ForeignBytesError, InputError, OtherConfigurationError
from ..events.records import MAGIC as WORD_MAGIC
from ..events.records import Clock, EndOfInput, unpack_record
from ..events.times import END_OF_TIME, NO_TIME
from ..process.console import lines_text
from ..rows.class_rows import ClassRow, ClassRows
from ..rows.records import MeasureRow
from ..rows.roll_ups import RollUpRow
from ..rows.rows import Rows
from .group import Group, Key, MemberRow
from .members import MemberRows, Settled
from .roll_up_settings import RollUpSettings

MAGIC = b"RSFT"
VERSION = 1

_HEAD = struct.Struct("<q2Q2I")
_WORD = struct.Struct("<2I2q")
_PANE = struct.Struct("<2q")

_MOST_UNDUE = 1_000
"""The number of rows without `due` at which an input is refused before its end, if no row had `due`."""


class FleetTable:
    """The roll-ups of many groups: a `StateMachine` whose records are packed `MemberRows`.

    settings  the groups, and how their roll-up rows are made

    A row costs 2 microseconds, and a roll-up row 0.3 milliseconds and 1 microsecond for each member. On the
    wire, the state takes 60 bytes for every member and its name, and as much for every row that waits. Raises
    InputError for rows of different configurations in one group, for two rows of a member at one grid point,
    and for an input in which no row has `due`; `apply` raises a `WireError` for bytes that are not a record.

    >>> from rocsteady import Rows
    >>> rows = Rows.blank(2, [("a", ""), ("b", "")], "")
    >>> rows.key_codes[:], rows.integer("due")[:] = [0, 1], 3_600_000_000
    >>> for name, values in (("auc", [0.9, 0.8]), ("auc_low", [0.86, 0.76]), ("auc_high", [0.94, 0.84])):
    ...     rows.number(name)[:] = values
    >>> rows.number("positives")[:], rows.number("negatives")[:] = 200, 800
    >>> table = FleetTable(RollUpSettings())
    >>> [row] = table.take(rows) + table.finish()
    >>> row.group, row.members, round(row.auc_mean, 3), row.worst, round(row.worst_p, 3)
    ('models', 2, 0.85, 'b', 0.001)
    """

    def __init__(self, settings: RollUpSettings) -> None:
        self.settings = settings
        self._groups: dict[Key, Group] = {}
        self._closed = NO_TIME
        self._reached: dict[int, int] = {}
        self._ahead: dict[int, dict[int, int]] = {}
        self._sources = 0
        self._taken = self._undue = 0
        self._counts = Counter(dict.fromkeys(("roll_up_rows_late", "roll_up_rows_undue"), 0))
        self._bytes = HEAD_BYTES + _HEAD.size + len(packed_text(settings.meaning()))

    # ---- records

    def apply(self, record: bytes) -> list[RollUpRow]:
        """Apply packed `MemberRows`, a `Clock` or the `EndOfInput`.

        Return the roll-up rows of the grid points that close.
        """
        if record[:4] != WORD_MAGIC:
            return self.receive(MemberRows.unpack(record))
        word = unpack_record(record)
        if isinstance(word, Clock):
            return self._close(word.settled - 1)
        if isinstance(word, EndOfInput):
            return self.finish()
        raise ForeignBytesError(f"{word} was given to a table of roll-ups, which is fed rows")

    def take(self, rows: Rows | ClassRows | Sequence[MeasureRow] | Sequence[ClassRow]) -> list[RollUpRow]:
        """Apply rows that are not packed.

        Return the roll-up rows of the grid points that these rows close.
        """
        if isinstance(rows, ClassRows):
            rows = rows.rows
        made = MemberRows.of_rows if isinstance(rows, Rows) else MemberRows.of_records
        return self.receive(made(rows, self.settings))  # type: ignore[arg-type]

    def finish(self) -> list[RollUpRow]:
        """Close all grid points, because no row will come; return their roll-up rows.

        Raises InputError if rows came, and none had `due`.
        """
        self._refuse_undue(1)
        return self._close(END_OF_TIME)

    def receive(self, rows: MemberRows) -> list[RollUpRow]:
        """Apply rows in columns, and their word; return the roll-up rows of the grid points that close."""
        self._taken += rows.taken
        self._undue += rows.undue
        self._counts["roll_up_rows_undue"] += rows.undue
        cells = zip(
            rows.key_codes.tolist(), rows.text_codes.tolist(), rows.integers.tolist(), rows.numbers.tolist(),
            strict=True,
        )  # fmt: skip
        for code, (why, config), (due, start, end), numbers in cells:
            name, member, *class_ = rows.keys[code]
            group = self._group(((name, *class_), start, end), rows.texts[config])
            before = group.size
            group.take(member, rows.texts[config], MemberRow(due, rows.texts[why], tuple(numbers)))
            self._bytes += group.size - before
            self._counts["roll_up_rows_late"] += due <= self._closed
        if not rows.word.sources:
            self._refuse_undue(_MOST_UNDUE)
            return []
        return self._hear(rows.word)

    def _refuse_undue(self, fewest: int) -> None:
        if self._undue >= fewest and not self._taken:
            raise InputError(
                f"none of {self._undue:,} rows has a grid point in 'due', and a roll-up needs rows of one "
                "moment; evaluate on a grid of times, such as --every 1h"
            )

    def _group(self, key: Key, config: str) -> Group:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(key, config)
            self._note(key, group)
        return group

    def _note(self, key: Key, group: Group) -> None:
        """Note the size of a new group."""
        self._bytes += len(packed_key(key[0])) + _PANE.size + group.size

    # ---- time

    def _hear(self, word: Settled) -> list[RollUpRow]:
        """Apply the word of a shard; close the grid points that all shards have passed."""
        if self._sources not in (0, word.sources):
            raise InputError(
                f"a shard of evaluators says that there are {word.sources}, and another one "
                f"{self._sources}; all workers of a job must have the same settings"
            )
        self._sources = word.sources
        ahead = self._ahead.setdefault(word.source, {})
        ahead[word.since] = max(word.until, ahead.get(word.since, NO_TIME))
        reached = self._reached.get(word.source, NO_TIME)
        for since in sorted(ahead):
            if since <= reached:
                reached = max(reached, ahead.pop(since))
        self._reached[word.source] = reached
        if len(self._reached) < self._sources:
            return []
        until = min(self._reached.values())
        return self._close(until) if until > self._closed else []

    def _close(self, until: int) -> list[RollUpRow]:
        """Close the grid points up to a time; return their roll-up rows, in order of time and group."""
        self._closed = max(self._closed, until)
        due = [
            (moment, key)
            for key, group in self._groups.items()
            for moment in group.waiting
            if moment <= self._closed
        ]
        return [self._roll_up(self._groups[key], moment) for moment, key in sorted(due)]

    def _roll_up(self, group: Group, due: int) -> RollUpRow:
        before = group.size
        row = group.close(due, self.settings)
        self._bytes += group.size - before
        return row

    def wakes_at(self) -> int | None:
        """Return the moment behind the earliest grid point that is not closed; None if no row waits."""
        waiting = [moment for group in self._groups.values() for moment in group.waiting]
        return None if not waiting else min(waiting) + 1

    # ---- state

    def counts(self) -> dict[str, int]:
        """Return counts since the table was made: rows that came late, and rows without `due`."""
        return dict(self._counts)

    def gauges(self) -> dict[str, int]:
        """Return how many groups there are."""
        return {"roll_up_groups": len(self._groups)}

    def snapshot_bytes(self) -> int:
        """Return the length of `to_bytes()` in bytes, without packing the state. O(shards of evaluators)."""
        words = len(self._reached) + sum(map(len, self._ahead.values()))
        return self._bytes + words * _WORD.size

    def live_bytes(self) -> int:
        """Estimate the table's memory in bytes: objects take some five times their wire form."""
        return 2_000 + 5 * self.snapshot_bytes()

    def describe(self) -> str:
        """Describe the state of the table in words."""
        waiting = sum(map(len, (group.waiting for group in self._groups.values())))
        return lines_text(
            [
                f"rocsteady roll-ups, version {VERSION}",
                f"settings: {self.settings.meaning()}",
                f"groups: {len(self._groups):,}; grid points that wait for shards: {waiting:,}",
            ]
        )

    def to_bytes(self) -> bytes:
        """Return a snapshot of the table. A table loaded from the snapshot gives the same later rows.

        O(state).
        """
        words = [(source, NO_TIME, reached) for source, reached in self._reached.items()]
        words += [
            (source, since, until) for source, ahead in self._ahead.items() for since, until in ahead.items()
        ]
        parts = [packed_text(self.settings.meaning())]
        parts.append(_HEAD.pack(self._closed, self._taken, self._undue, len(words), len(self._groups)))
        parts += [_WORD.pack(source, self._sources, since, until) for source, since, until in words]
        for (names, *pane), group in self._groups.items():
            parts += [packed_key(names), _PANE.pack(*pane), *group.pack()]
        return framed(MAGIC, VERSION, b"".join(parts))

    @classmethod
    def from_bytes(cls, data: bytes, settings: RollUpSettings) -> FleetTable:
        """Read a table from a snapshot, `data`.

        Raises OtherConfigurationError if the snapshot has other settings, a `WireError` for any other bytes.
        """
        reader = Reader(unframed(data, MAGIC, VERSION, "a snapshot of roll-ups"))
        self = cls(settings)
        with reading("a snapshot of roll-ups"):
            if (said := reader.text()) != settings.meaning():
                raise OtherConfigurationError(
                    f"the state was made under other settings of roll-ups: they were {said}, and are now "
                    f"{settings.meaning()}. Go on with the old ones, or start from an empty state"
                )
            self._closed, self._taken, self._undue, words, groups = reader.numbers(_HEAD.format)
            for _ in range(words):
                self._read_word(reader)
            for _ in range(groups):
                self._read_group(reader)
            reader.end()
        return self

    def _read_word(self, reader: Reader) -> None:
        source, self._sources, since, until = reader.numbers(_WORD.format)
        if source >= self._sources:
            raise ValueError(f"shard {source} of {self._sources}")
        if since == NO_TIME:
            self._reached[source] = until
        else:
            self._ahead.setdefault(source, {})[since] = until

    def _read_group(self, reader: Reader) -> None:
        names = read_key(reader, fewest=1)
        start, end = reader.numbers(_PANE.format)
        key = (names, start, end)
        if key in self._groups:
            raise ValueError(f"{key} is there twice")
        group = self._groups[key] = Group.read(key, reader)
        self._note(key, group)


def roll_up_all(rows: MemberRows, settings: RollUpSettings) -> list[RollUpRow]:
    """Return the roll-up rows of a complete set of rows, in order of group, pane and row."""
    table = FleetTable(settings)
    found = table.receive(rows) + table.finish()
    return sorted(found, key=lambda row: (row.group, row.pane_start or NO_TIME, row.row, row.class_ or ""))
