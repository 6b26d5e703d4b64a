"""The count behind `at most N a day`: how many alerts of a rule were told, by model and day.

An alert is told if the table gives it to the sinks. A day is a UTC day of row time. Rows without a time are
all of one day. A pane is on its own: its alerts count apart from those of other panes, as a Beam runner keeps
the state of each window apart.

Whether an alert opens never depends on the cap. If M alerts of a rule open for a model and pane on a day,
min(M, N) alerts are told, in whatever order rows arrive. The order of arrival may decide which alerts are
told: rows of one slice apply in their own order, but of alerts in several slices the first N that open are
told. Rows that arrive in one record apply in order of time, and rows of one time in order of slice.

Only days with an alert have a count. Of a rule, model and pane the newest MOST_DAYS days with an alert are
kept. An alert that opens on an older day is told, whatever the cap.

Wire form: number of counts u32; each count: `_PLACE` (place of the rule, pane, number of days), model (text),
then `_DAY` for each day (day since 1970, alerts told), oldest day first.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from ..encoding.fields import Reader, packed_text
from .rules import AlertRule

DAY = 86_400_000_000
"""The length of a day in microseconds."""

MOST_DAYS = 400
"""The most days with an alert whose counts are kept, for one rule, model and pane: 7 KB."""

_NUMBER = struct.Struct("<I")
_PLACE = struct.Struct("<I2qI")
_DAY = struct.Struct("<2q")

_Key = tuple[int, str, int, int]
"""The place of the rule, the model, and the start and the end of the pane."""


class ToldAlerts:
    """The number of alerts that were told on each day, for the rules that have a cap."""

    def __init__(self) -> None:
        self._days: dict[_Key, dict[int, int]] = {}
        self.wire_bytes = _NUMBER.size

    def admits(self, rule: AlertRule, key: _Key, moment: int) -> bool:
        """Return whether an alert that opens at a moment may be told; if so, count the alert.

        O(1), and O(days) for the first alert of a day.
        """
        if rule.a_day is None:
            return True
        day = moment // DAY
        days = self._days.setdefault(key, {})
        if not days:
            self.wire_bytes += _PLACE.size + len(packed_text(key[1]))
        told = days.get(day, 0)
        if told >= rule.a_day:
            return False
        days[day] = told + 1
        self.wire_bytes += _DAY.size * (not told)
        if len(days) > MOST_DAYS:
            del days[min(days)]
            self.wire_bytes -= _DAY.size
        return True

    def pack(self) -> Iterator[bytes]:
        """Yield the wire form of the counts."""
        yield _NUMBER.pack(len(self._days))
        for (place, model, *pane), days in self._days.items():
            yield _PLACE.pack(place, *pane, len(days))
            yield packed_text(model)
            yield from (_DAY.pack(*each) for each in sorted(days.items()))

    @classmethod
    def read(cls, reader: Reader, rules: Sequence[AlertRule]) -> ToldAlerts:
        """Read the counts from their wire form.

        Raises ValueError, IndexError or struct.error for other bytes.
        """
        told = cls()
        for _ in range(reader.number(_NUMBER.format)):
            place, start, end, number = reader.numbers(_PLACE.format)
            model, cap = reader.text(), rules[place].a_day or 0
            days = dict(reader.numbers(_DAY.format) for _ in range(number))
            in_order = list(days) == sorted(days) and len(days) == number
            if not (0 < number <= MOST_DAYS and in_order and all(0 < n <= cap for n in days.values())):
                raise ValueError(f"the alerts of {model!r} are counted as no rocsteady does")
            if (key := (place, model, start, end)) in told._days:
                raise ValueError(f"{key} is there twice")
            told._days[key] = days
            told.wire_bytes += _PLACE.size + len(packed_text(model)) + number * _DAY.size
        return told
