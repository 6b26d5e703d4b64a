"""The state of one (model, slice, class, pane) in an `AlertTable`: which row is next, and which rows wait."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..encoding.fields import Reader, packed_key
from .rule_state import STATE_BYTES, SURE_BYTES, Sure, Watch, WatchedRow
from .rules import AlertRule
from .surely import Surely

_KEY = struct.Struct("<3qI")
_ROW = struct.Struct("<6q")
_UNTOLD = struct.Struct("<?")

Pane = tuple[int, int]
"""The start and the end of a Beam window; NO_TIME if there is no pane."""


def row_bytes(columns: int) -> int:
    """Return the length of the wire form of a row that waits."""
    return _ROW.size + 8 * columns


@dataclass(slots=True)
class Series:
    """The state of the rows of one model, slice, class and pane.

    It has the ordinal of the next row to apply, the rows that came early, and the watches of rules.

    watches  the watch of each rule, by the place of the rule; only rules that cover the rows have a watch
    """

    watches: dict[int, Watch]
    next_row: int = 0
    waiting: dict[int, WatchedRow] = field(default_factory=dict)

    @classmethod
    def begun(cls, names: Sequence[str], rules: Mapping[int, AlertRule]) -> tuple[Series, int]:
        """Return a series without rows, and the length in bytes of its wire form with the names.

        rules  the rules that cover the names, by place
        """
        size = len(packed_key(names)) + _KEY.size
        watches = {}
        for place, rule in rules.items():
            is_sure = isinstance(rule.opens, Surely)
            watches[place] = Watch(sure=Sure() if is_sure else None)
            size += STATE_BYTES + SURE_BYTES * is_sure + _UNTOLD.size * (rule.a_day is not None)
        return cls(watches), size

    def pack(self, pane: Pane, rules: Sequence[AlertRule]) -> Iterator[bytes]:
        """Yield the part of the wire form that stands behind the names."""
        yield _KEY.pack(*pane, self.next_row, len(self.waiting))
        for *integers, numbers in self.waiting.values():
            yield _ROW.pack(*integers)
            yield struct.pack(f"<{len(numbers)}d", *numbers)
        for place, watch in self.watches.items():
            yield from watch.pack()
            if rules[place].a_day is not None:
                yield _UNTOLD.pack(watch.untold)

    @staticmethod
    def read_head(reader: Reader) -> tuple[Pane, int, int]:
        """Read the head of a wire form: the pane, the next row, and how many rows wait."""
        start, end, next_row, waiting = reader.numbers(_KEY.format)
        return (start, end), next_row, waiting

    def read(self, reader: Reader, waiting: int, columns: int, rules: Sequence[AlertRule]) -> None:
        """Read the part of a wire form that stands behind the head.

        Raises ValueError for content that no series has.
        """
        for _ in range(waiting):
            integers = reader.numbers(_ROW.format)
            row = WatchedRow._make((*integers, reader.numbers(f"<{columns}d")))
            self.waiting[row.row] = row
        if len(self.waiting) < waiting:
            raise ValueError("two rows of one ordinal wait")
        if not self.watches:
            raise ValueError("no rule watches them")
        for place in self.watches:
            is_sure = isinstance(rules[place].opens, Surely)
            watch = self.watches[place] = Watch.read(reader, of_evidence=is_sure)
            if rules[place].a_day is not None:
                (watch.untold,) = reader.numbers(_UNTOLD.format)
            if watch.untold and not watch.is_open:
                raise ValueError("an untold alert is not open")
