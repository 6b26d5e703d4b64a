"""AlertTable: the state machine of a shard of models that applies alert rules to rows.

The result of a rule for one row
    A limit holds if the comparison of the column with the number is true. A change `COLUMN drops by X against
    REFERENCE` holds iff value(reference) - value(row) > X; for the AUC, iff the whole interval of the
    difference, at the confidence of the rows, is above X: difference - root(half width^2 + half width of the
    reference^2) > X (`rows.differences`). `rises` is the same with the opposite sign.

    The reference is an earlier row of the same (model, slice, pane) whose window shares no event with the
    row's, and, of the AUC, that can be compared (FEWEST events of a class, an interval with a width):
      against N rows, DURATION  the latest such row at least so far back, by ordinal or by row time
      against START..END        the last such row whose window lies within the period; rows are judged from
                                END on
    While an alert is open, its reference is the reference at which it opened. So the alert closes when the
    model has recovered, and not when the reference has moved to rows after the drop.
    A reference never moves back. Late events may move the start of a row's window to before the end of the
    reference's window: such a row is not judged. The state is bounded: of more than MOST_REFERENCES rows,
    only every second, fourth, ... row can become a reference.

    `auc surely ...` goes by the evidence of the row; `surely` says when its alerts open and close, and how
    often falsely.

    A row has no result if its value is null, if it has no reference or cannot be compared, or if the rule
    needs times and the row has no time. Such a row changes nothing: it neither adds to a streak nor ends a
    streak, and neither opens nor closes an alert. A model without known values for an hour has not recovered.

From rows to alerts
    A streak begins at a row where the condition holds and ends at a row where it does not. `for N rows`: the
    alert opens at the N-th row of the streak at which the condition holds; `for DURATION`: at the first row
    at least DURATION after the streak's first row by row time (`due`, or else `time`). An open alert closes
    at the first row at which the condition does not hold; with `until`, as soon as the `until` condition has
    held for its own rows or duration, counted from the row after the opening. A row never both opens and
    closes an alert. An alert that is open at the end of the input stays open.

Order
    In each (model, slice, class, pane), rows are applied by their ordinals 0, 1, 2, ..., whatever their order
    of arrival: early rows wait, and repeated rows are dropped. So alerts are a function of the set of rows.
    At the end of the input, waiting rows are applied although rows before them are missing.

Scope and cap
    A rule watches the rows of the models, slices and classes that its `where` covers. For a model with a
    score of each class, a rule watches either the row of all classes or the row of each class
    (`AlertRule.watches_classes`). Other rows need no state, and do not count as watched rows. `at most N a
    day` decides which alerts are told, not which alerts open (`caps`). An alert beyond the cap is told
    neither when it opens nor when it closes, on whatever day.

Snapshot, version 1: a frame (encoding/fields.py) with magic "RSAL". Payload: rules (u32 count, texts), then
keys (u32 count). Each key: a u8, the number of its texts; model and slice (texts), and the class of a model
with classes; `_KEY`: pane, next row, number of rows that wait; each row that waits, as `_ROW` and an f64 for
each watched column; a `Watch` for every rule that covers the key, and of a rule with a cap one byte behind
it, whether the open alert is untold. The counts of `caps` follow.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import numpy as np

from ..encoding.fields import HEAD_BYTES, Reader, framed, packed_key, packed_text, read_key, unframed
from ..encoding.json import reading
from ..errors import CorruptBytesError, ForeignBytesError, OtherConfigurationError
from ..events.records import MAGIC as WORD_MAGIC
from ..events.records import EndOfInput, unpack_record
from ..events.times import NO_TIME
from ..process.console import lines_text
from ..rows.columns import INTEGER_COLUMNS
from ..rows.differences import first_time, half_width_of_difference
from .alert_rows import (
    AlertRow,
    Key,
    SomeRows,
    WatchedRows,
    half_width_of,
    watched_columns,
)
from .caps import ToldAlerts
from .grammar import parse_alert
from .messages import message_of
from .rule_sets import checked_rules
from .rule_state import REFERENCE_BYTES, Reference, Watch, WatchedRow
from .rules import AlertRule, Limit
from .series import Pane, Series, row_bytes
from .surely import Figures, Surely

MAGIC = b"RSAL"
VERSION = 1

_Place = tuple[Key, Pane]
"""The names of a series of rows, and the pane."""


class AlertTable:
    """The alerts of many models, slices and classes: a `StateMachine` whose records are packed `WatchedRows`.

    rules  one or more distinct rules; the watched rows must have the columns of the rules (`watched_columns`)

    A row takes 2.5 microseconds, 0.4 more for every limit and 2 more for every change. On the wire, the state
    takes 54 bytes for every rule and key that the rule covers. A change takes 48 bytes more for each row
    between a row and its reference, for up to 4,096 rows. Raises ConfigError for an empty or repeated set of
    rules; `apply` raises a `WireError` for bytes that are not a record.

    >>> table = AlertTable([parse_alert("auc < 0.8 for 2 rows")])
    >>> from rocsteady import Rows
    >>> rows = Rows.blank(4, [("churn", "")], "")
    >>> rows.integer("row")[:], rows.number("auc")[:] = range(4), [0.79, 0.78, 0.75, 0.81]
    >>> alerts = table.watch(rows)
    >>> [(alert.state, alert.row, alert.since_row, alert.value) for alert in alerts]
    [('open', 1, 0, 0.78), ('closed', 3, 1, 0.81)]
    >>> alerts[0].message
    'churn: alert opened at row 1: auc 0.78 < 0.8 in 2 rows since row 0 (rule: auc < 0.8 for 2 rows)'
    """

    def __init__(self, rules: Sequence[AlertRule]) -> None:
        self.rules = checked_rules(rules)
        self.columns = watched_columns(self.rules)
        place = self.columns.index
        halves = map(half_width_of, self.rules)
        self._half_widths = [-1 if half is None else place(half) for half in halves]
        self._texts = [str(rule) for rule in self.rules]
        self._opens = [place(rule.opens.column) for rule in self.rules]
        self._until = [-1 if rule.until is None else place(rule.until.column) for rule in self.rules]
        self._series: dict[_Place, Series] = {}
        self._counts = dict.fromkeys(
            ("alert_rows", "alert_rows_repeated", "alerts_opened", "alerts_closed", "alerts_capped"), 0
        )
        self._told = ToldAlerts()
        self._has_cap = any(rule.a_day for rule in self.rules)
        self._sure = [isinstance(rule.opens, Surely) for rule in self.rules]
        if any(self._sure):
            self._figures = [place(name) for name in Surely.columns]
        self._series_bytes = self._waiting = self._references = 0

    def apply(self, record: bytes) -> list[AlertRow]:
        """Apply packed `WatchedRows`, or the `EndOfInput`.

        Return the alerts of the rows that were applied.
        """
        if record[:4] == WORD_MAGIC:
            word = unpack_record(record)
            if not isinstance(word, EndOfInput):
                raise ForeignBytesError(f"{word} was given to a table of alerts, which is fed rows")
            return [alert for key in self._series for alert in self._drained(key)]
        rows = WatchedRows.unpack(record)
        if rows.columns != self.columns:
            raise OtherConfigurationError(
                f"rows come with {', '.join(rows.columns)} where the rules read {', '.join(self.columns)}; "
                "the workers of a job must all have the same rules"
            )
        return list(self._taken(rows))

    def watch(self, rows: SomeRows) -> list[AlertRow]:
        """Apply rows that are not packed, as in a notebook or a service; return their alerts."""
        return list(self._taken(WatchedRows.of(rows, self.columns)))

    def _taken(self, rows: WatchedRows) -> Iterator[AlertRow]:
        rows = rows.covered(self.rules)
        if self._has_cap and len(rows.key_codes):
            rows = rows.in_order_of_time()
        column = dict(zip(INTEGER_COLUMNS, rows.integers.T, strict=True))
        due, time = column["due"], column["time"]
        lists = [
            values.tolist()
            for values in (
                rows.key_codes, column["pane_start"], column["pane_end"],
                column["row"], np.where(due == NO_TIME, time, due), time, column["seq"],
                column["seq"] - column["window_events"], first_time(column["window_start"], time),
            )
        ]  # fmt: skip
        for cells, numbers in zip(zip(*lists, strict=True), rows.numbers.tolist(), strict=True):
            code, start, end, *integers = cells
            row = WatchedRow._make((*integers, tuple(numbers)))
            key = rows.keys[code], (start, end)
            series = self._series.get(key) or self._begun(key)
            if row.row < series.next_row or row.row in series.waiting:
                self._counts["alert_rows_repeated"] += 1
            elif row.row > series.next_row:
                series.waiting[row.row] = row
                self._waiting += 1
            else:
                yield from self._applied(key, series, row)
                while series.waiting and series.next_row in series.waiting:
                    self._waiting -= 1
                    yield from self._applied(key, series, series.waiting.pop(series.next_row))

    def _begun(self, key: _Place) -> Series:
        names, _ = key
        rules = {place: rule for place, rule in enumerate(self.rules) if rule.covers(*names)}
        series, size = Series.begun(names, rules)
        self._series[key] = series
        self._series_bytes += size
        return series

    def _drained(self, key: _Place) -> Iterator[AlertRow]:
        series = self._series[key]
        for ordinal in sorted(series.waiting):
            self._waiting -= 1
            yield from self._applied(key, series, series.waiting.pop(ordinal))

    def _applied(self, key: _Place, series: Series, row: WatchedRow) -> Iterator[AlertRow]:
        series.next_row = row.row + 1
        self._counts["alert_rows"] += 1
        for place, watch in series.watches.items():
            kept = watch.kept
            alert = self._watched(key, place, watch, row)
            self._references += watch.kept - kept
            if alert is not None:
                yield alert

    def _watched(self, key: _Place, place: int, watch: Watch, row: WatchedRow) -> AlertRow | None:
        """Apply one rule to a row; return the alert if it opens or closes, else None."""
        rule, value = self.rules[place], row.numbers[self._opens[place]]
        reference = None
        if isinstance(rule.opens, Limit):
            holds = rule.opens.holds(value)
        elif isinstance(rule.opens, Surely):
            figures = Figures(*(row.numbers[place] for place in self._figures))
            holds = watch.is_sure(rule.opens, row, figures)
        else:
            half_width = row.numbers[self._half_widths[place]] if rule.opens.tested else 0.0
            holds, reference = watch.changed(rule.opens, row, value, half_width)
        if not watch.is_open and isinstance(rule.opens, Surely):
            turns = holds is True
        elif not watch.is_open:
            turns = watch.goes_on(holds, row, rule.held)
        elif rule.until is None:
            turns = holds is False
        else:
            reference = None
            ends = rule.until.holds(row.numbers[self._until[place]])
            turns = watch.goes_on(ends, row, rule.until_held)
        return self._alert(key, place, watch, row, reference) if turns else None

    def _alert(
        self, key: _Place, place: int, watch: Watch, row: WatchedRow, reference: Reference | None
    ) -> AlertRow | None:
        """Open or close the alert of a rule.

        Return its record, or None if the cap of the rule lets no more alerts be told.
        """
        rule, ((model, slice_, *class_), pane) = self.rules[place], key
        opens = not watch.is_open
        if opens:
            watch.untold = not self._told.admits(rule, (place, model, *pane), row.moment)
            self._counts["alerts_capped"] += watch.untold
        if watch.untold:
            watch.untold = opens
            watch.turn(row, reference)
            return None
        decided = rule.opens if opens or rule.until is None else rule.until
        at = self._until[place] if decided is rule.until else self._opens[place]
        since = (watch.streak_row, watch.streak_time) if opens else (watch.opened_row, watch.opened_time)
        alert = AlertRow(
            rule=self._texts[place],
            state="open" if opens else "closed",
            model=model,
            slice=slice_,
            class_=(class_ and class_[0]) or None,
            pane_start=_known(pane[0]),
            pane_end=_known(pane[1]),
            row=row.row,
            time=_known(row.moment),
            since_row=since[0],
            since_time=_known(since[1]),
            column=decided.column,
            value=row.numbers[at],
            limit=watch.limit_of(decided),
            reference_row=None if reference is None else reference.row,
            reference_value=watch.period_bound if reference is None else reference.value,
            message="",
        )
        half_width = None
        if reference is not None and reference.half_width:
            half_width = half_width_of_difference(row.numbers[self._half_widths[place]], reference.half_width)
        alert = alert._replace(message=message_of(alert, rule, watch.streak, half_width))
        self._counts["alerts_opened" if opens else "alerts_closed"] += 1
        watch.turn(row, reference)
        return alert

    def wakes_at(self) -> int | None:
        """Return None: the table applies each row on arrival, and waits for no moment."""
        return None

    # ---- state

    def counts(self) -> dict[str, int]:
        """Return counts since the table was made: rows applied and repeated, alerts opened and closed."""
        return dict(self._counts)

    def gauges(self) -> dict[str, int]:
        """Return how many models, slices and panes the table watches."""
        return {"alert_series": len(self._series)}

    def snapshot_bytes(self) -> int:
        """Return the length of `to_bytes()` in bytes, without packing the state. O(rules)."""
        rules = sum(len(packed_text(text)) for text in self._texts)
        waiting = self._waiting * row_bytes(len(self.columns))
        references = self._references * REFERENCE_BYTES
        return HEAD_BYTES + 8 + rules + self._series_bytes + waiting + references + self._told.wire_bytes

    def live_bytes(self) -> int:
        """Estimate the table's memory in bytes: objects take some five times their wire form."""
        return 2_000 + 5 * self.snapshot_bytes()

    def describe(self) -> str:
        """Describe the state of the table in words."""
        waiting = self._waiting
        return lines_text(
            [
                f"rocsteady alerts, version {VERSION}",
                *(f"rule: {text}" for text in self._texts),
                f"series of rows watched: {len(self._series):,}; rows that wait for others: {waiting:,}",
            ]
        )

    def to_bytes(self) -> bytes:
        """Return a snapshot of the table. A table loaded from the snapshot gives the same later alerts.

        O(state).
        """
        parts = [struct.pack("<I", len(self.rules)), *map(packed_text, self._texts)]
        parts.append(struct.pack("<I", len(self._series)))
        for (names, pane), series in self._series.items():
            parts.append(packed_key(names))
            parts += series.pack(pane, self.rules)
        parts += self._told.pack()
        return framed(MAGIC, VERSION, b"".join(parts))

    @classmethod
    def from_bytes(cls, data: bytes, rules: Sequence[AlertRule] | None = None) -> AlertTable:
        """Read a table from a snapshot, `data`. Without `rules`, the rules of the snapshot are used.

        Raises OtherConfigurationError if the snapshot has other rules than `rules`, a `WireError` for any
        other bytes.
        """
        reader = Reader(unframed(data, MAGIC, VERSION, "a snapshot of alerts"))
        with reading("a snapshot of alerts"):
            texts = [reader.text() for _ in range(reader.number("<I"))]
            table = cls([parse_alert(text) for text in texts])
            if texts != table._texts:
                raise CorruptBytesError(
                    f"a snapshot of alerts spells its rules {texts}, as no rocsteady does"
                )
            for _ in range(reader.number("<I")):
                table._read_series(reader)
            table._told = ToldAlerts.read(reader, table.rules)
            reader.end()
        if rules is not None and list(rules) != list(table.rules):
            raise OtherConfigurationError(
                f"the state was made under other rules: they were {texts} and are now {[*map(str, rules)]}. "
                "Go on with the old ones, or start from an empty state"
            )
        return table

    def _read_series(self, reader: Reader) -> None:
        names = read_key(reader)
        pane, next_row, waiting = Series.read_head(reader)
        key = names, pane
        if key in self._series:
            raise ValueError(f"{key} is there twice")
        series = self._begun(key)
        series.next_row = next_row
        series.read(reader, waiting, len(self.columns), self.rules)
        self._references += sum(watch.kept for watch in series.watches.values())
        self._waiting += waiting


def _known(time: int) -> int | None:
    return None if time == NO_TIME else time
