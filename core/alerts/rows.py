"""The input and the output of alert rules: rows with the columns that rules read, and records of alerts.

`WatchedRows` are rows in columns, reduced to the columns that the rules of a job read: 76 bytes a row and 8
for each column, while a whole row takes 400. `message_of` writes the message of an alert.

Wire form, version 1: a frame (encoding/fields.py) with magic "RSAB"; payload: columns (u32 count, texts),
keys (u32 count; two texts each), rows u32, key codes i32, integers i64 (nine a row, `INTEGER_COLUMNS`),
numbers f64. A text is a u32 length and UTF-8.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays import FloatArray, Int32Array, Int64Array
from ..encoding.fields import Reader, framed, packed_text, unframed
from ..encoding.json import reading
from ..errors import CorruptBytesError, InputError
from ..events.times import NO_TIME
from ..process.console import name_text, visible
from ..rows.columns import COUNT_COLUMNS, INTEGER_COLUMNS
from ..rows.differences import comparable_half_width
from ..rows.display import figure
from ..rows.pairs import PairRow, pair_name
from ..rows.records import MeasureRow
from ..rows.roll_ups import RollUpRow
from ..rows.rows import Rows
from .rules import AlertRule, Change, Kind, Limit, kind_of
from .surely import Surely

MAGIC = b"RSAB"
VERSION = 1

HALF_WIDTH = "auc_half_width"
"""The name of a column of `WatchedRows` that `Rows` lacks: half the width of the AUC's interval.

The value is NaN if the AUC must not be compared.
"""


class AlertRow(NamedTuple):
    """An alert that opens or closes at a row. Times are microseconds UTC.

    (rule, model, slice, pane, row) is its identity: a sink that receives an alert twice keeps it once.

    rule             the rule in its canonical spelling
    state            "open" or "closed"
    model, slice     whose rows the rule watches; `model` is the group of a roll-up row, and of a pair row a
                     name such as "v2 against v1"
    pane_start, pane_end
                     the Beam window of the rows, if the input is windowed
    row, time        the row at which the alert opened or closed; `time` is the row's `due`, or else its
                     `time`
    since_row        of an alert that opens, the first row of its streak; of an alert that closes, the row at
                     which the alert opened
    since_time       the time of `since_row`
    column, value    the column of the condition that decided, and its value in the row
    limit            the limit of the condition; of a change, the size that the rule asks for
    reference_row    of a change, the row with which the row was compared
    reference_value  of a change, the value in that row; of `surely drops`, the bound that the period gave, on
                     which the promise is conditional
    message          a sentence for people
    """

    rule: str
    state: str
    model: str
    slice: str
    pane_start: int | None
    pane_end: int | None
    row: int
    time: int | None
    since_row: int
    since_time: int | None
    column: str
    value: float
    limit: float
    reference_row: int | None
    reference_value: float | None
    message: str


SomeRows = Rows | Sequence[MeasureRow] | Sequence[RollUpRow] | Sequence[PairRow]
"""Rows that rules watch: rows in columns, single rows, roll-up rows, or pair rows."""


class WatchedRows(NamedTuple):
    """n rows with the columns that rules read.

    columns    names of the columns of `numbers`: `watched_columns`
    keys       the (model, slice) pairs that occur
    key_codes  int32[n], the index in `keys` of each row's pair
    integers   int64[n, len(INTEGER_COLUMNS)]; NO_TIME stands for null
    numbers    float64[n, len(columns)]; NaN stands for null
    """

    columns: tuple[str, ...]
    keys: tuple[tuple[str, str], ...]
    key_codes: Int32Array
    integers: Int64Array
    numbers: FloatArray

    @classmethod
    def of(cls, rows: SomeRows, columns: Sequence[str]) -> WatchedRows:
        """Make watched rows. O(cells). Raises InputError for rows of another kind than the columns are."""
        if isinstance(rows, Rows):
            return cls.of_rows(rows, columns)
        try:
            return cls.of_records(rows, columns)
        except AttributeError as missing:
            raise InputError(
                f"a {type(missing.obj).__name__!r} has no {missing.name!r}, which a rule reads; give it "
                f"{kind_of(columns)}s"
            ) from None

    @classmethod
    def of_rows(cls, rows: Rows, columns: Sequence[str]) -> WatchedRows:
        """Make watched rows from rows in columns. O(cells). Raises InputError for columns of other rows."""
        check_kind("row", columns)

        def number(name: str) -> FloatArray:
            if name in COUNT_COLUMNS:
                return rows.integer(name).astype(np.float64)
            if name == "drift":
                return np.where(rows.drift < 0, np.nan, rows.drift)
            return rows.number(name)

        numbers = numbers_of(columns, number, len(rows))
        return cls(tuple(columns), rows.keys, rows.key_codes, rows.integers, numbers)

    @classmethod
    def of_records(
        cls, records: Sequence[MeasureRow | RollUpRow | PairRow], columns: Sequence[str]
    ) -> WatchedRows:
        """Make watched rows from single rows, roll-up rows or pair rows. O(cells), in Python.

        Raises InputError for rows of another kind than that of the columns.
        """
        watched = [_watched(row) for row in records]
        for kind in {kind for kind, _ in watched}:
            check_kind(kind, columns)
        rows = [row for _, row in watched]
        keys: dict[tuple[str, str], int] = {}
        codes = [keys.setdefault((row.model, row.slice), len(keys)) for row in rows]
        integers = [
            [NO_TIME if (value := getattr(row, name)) is None else value for name in INTEGER_COLUMNS]
            for row in rows
        ]

        def number(name: str) -> FloatArray:
            return np.array([getattr(row, name) for row in rows], np.float64)  # None gives NaN

        return cls(
            tuple(columns),
            tuple(keys),
            np.array(codes, np.int32),
            np.array(integers, np.int64).reshape(len(rows), len(INTEGER_COLUMNS)),
            numbers_of(columns, number, len(rows)),
        )

    def take(self, rows: Int64Array) -> WatchedRows:
        """Return the chosen rows, with the keys of these rows only."""
        used, codes = np.unique(self.key_codes[rows], return_inverse=True)
        keys = tuple(self.keys[code] for code in used.tolist())
        return WatchedRows(
            self.columns, keys, codes.astype(np.int32), self.integers[rows], self.numbers[rows]
        )

    def covered(self, rules: Sequence[AlertRule]) -> WatchedRows:
        """Return the rows of the models and slices that at least one rule covers. O(rows + keys * rules)."""
        if not all(rule.where for rule in rules):
            return self
        inside = np.array([any(rule.covers(*key) for rule in rules) for key in self.keys], np.bool_)
        return self if inside.all() else self.take(np.flatnonzero(inside[self.key_codes]))

    def in_order_of_time(self) -> WatchedRows:
        """Return the rows by `due`, or else `time`; of one time by slice; those without come first."""
        moments = np.where(self._times("due") == NO_TIME, self._times("time"), self._times("due"))
        slices = np.array([slice_ for _, slice_ in self.keys], np.object_)
        ranks = np.unique(slices, return_inverse=True)[1]
        return self.take(np.lexsort((ranks[self.key_codes], moments)))

    def _times(self, name: str) -> Int64Array:
        return self.integers[:, INTEGER_COLUMNS.index(name)]

    def pack(self) -> bytes:
        """Return the wire form."""
        parts = [struct.pack("<I", len(self.columns)), *map(packed_text, self.columns)]
        parts.append(struct.pack("<I", len(self.keys)))
        parts += [packed_text(text) for key in self.keys for text in key]
        parts += [
            struct.pack("<I", len(self.key_codes)),
            self.key_codes.astype("<i4").tobytes(),
            self.integers.astype("<i8").tobytes(),
            self.numbers.astype("<f8").tobytes(),
        ]
        return framed(MAGIC, VERSION, b"".join(parts))

    @classmethod
    def unpack(cls, data: bytes) -> WatchedRows:
        """Read the wire form. Raises a `WireError` for any other bytes."""
        reader = Reader(unframed(data, MAGIC, VERSION, "a record of watched rows"))
        with reading("a record of watched rows"):
            columns = tuple(reader.text() for _ in range(reader.number("<I")))
            keys = tuple((reader.text(), reader.text()) for _ in range(reader.number("<I")))
            n = reader.number("<I")
            codes = reader.array("<i4", n)
            integers = reader.array("<i8", n * len(INTEGER_COLUMNS)).reshape(n, len(INTEGER_COLUMNS))
            numbers = reader.array("<f8", n * len(columns)).reshape(n, len(columns))
            reader.end()
        if n and not 0 <= codes.min() <= codes.max() < len(keys):
            raise CorruptBytesError(f"a record of watched rows has rows of more keys than its {len(keys)}")
        return cls(columns, keys, codes, integers, numbers)


def check_kind(kind: Kind, columns: Sequence[str]) -> None:
    """Raise InputError if the columns of rules are those of other rows."""
    if kind != (wanted := kind_of(columns)):
        raise InputError(
            f"a {kind} was given to rules that watch {wanted}s, such as a rule on {columns[0]}; give "
            f"{wanted}s"
        )


def _watched(row: Any) -> tuple[Kind, Any]:
    """Return the kind of a single row, and the row as rules watch it."""
    if isinstance(row, RollUpRow):
        return "roll-up row", _RollUp(row)
    return ("pair row", _Pair(row)) if isinstance(row, PairRow) else ("row", row)


class _Pair:
    """A pair row as a row that rules watch: the pair is its model."""

    def __init__(self, row: PairRow) -> None:
        self.model = pair_name(row.model, row.against)
        self.pair_row = row

    def __getattr__(self, name: str) -> Any:
        return getattr(self.pair_row, name)


class _RollUp:
    """A roll-up row as a row that rules watch: the group is its model, the grid point its time."""

    slice = ""
    window_events = 0
    window_start = window_end = None

    def __init__(self, row: RollUpRow) -> None:
        self.model = row.group
        self.row = self.seq = row.row
        self.time = row.due
        self.roll_up = row

    def __getattr__(self, name: str) -> Any:
        return getattr(self.roll_up, name)


def watched_columns(rules: Iterable[AlertRule]) -> tuple[str, ...]:
    """Return the names of the columns that rules read, each once.

    >>> from .grammar import parse_alert
    >>> watched_columns([parse_alert("auc drops against 7d until h > 0.5"), parse_alert("auc < 0.6")])
    ('auc', 'h', 'auc_half_width')
    """
    rules = tuple(rules)
    names = [name for rule in rules for name in rule.columns]
    if any(isinstance(rule.opens, Change) and rule.opens.tested for rule in rules):
        names.append(HALF_WIDTH)
    return tuple(dict.fromkeys(names))


def numbers_of(columns: Sequence[str], number: Callable[[str], FloatArray], n: int) -> FloatArray:
    """Return float64[n, len(columns)]; `number` returns a column of the rows by name."""
    numbers = np.empty((n, len(columns)))
    for place, name in enumerate(columns):
        if name == HALF_WIDTH:
            rarer = np.minimum(number("positives"), number("negatives"))
            auc, low, high = (number(end) for end in ("auc", "auc_low", "auc_high"))
            numbers[:, place] = comparable_half_width(auc, low, high, rarer)
        else:
            numbers[:, place] = number(name)
    return numbers


_SIDES = {"drops": "below", "rises": "above"}
"""The side of the reference on which a value is after a change."""


def message_of(alert: AlertRow, rule: AlertRule, streak: int, half_width: float | None) -> str:
    """Return the message of an alert: a sentence with the event, the place, the figures and the rule.

    streak      number of rows of the streak that opened or closed the alert
    half_width  half the width of the difference's interval; None if the rule is no change, or if its
                difference has no interval
    """
    name = name_text(alert.model) + (f" [{name_text(alert.slice)}]" if alert.slice else "")
    if alert.state == "open":
        did, what = "opened", _opening(alert, rule, streak, half_width)
    else:
        did, what = "closed", _closing(alert, rule, streak)
    return (
        f"{name}: alert {did} at row {alert.row:,}{_when(alert.time)}: {what} (rule: {visible(alert.rule)})"
    )


def _opening(alert: AlertRow, rule: AlertRule, streak: int, half_width: float | None) -> str:
    what, opens = f"{alert.column} {_value(alert.value)}", rule.opens
    if isinstance(opens, Limit):
        what += f" {opens.comparison} {_value(opens.number)}"
    elif isinstance(opens, Surely):
        grew = f"which grew since row {alert.since_row:,}{_when(alert.since_time)}"
        enough = f"evidence {_value(alert.value)} >= {_value(alert.limit)}"
        given = ""
        if alert.reference_value is not None:
            given = f", to below {_value(alert.reference_value)}, the bound that the period gave"
        return f"auc surely {opens.claim}{given}: {enough}, {grew}"
    else:
        assert alert.reference_value is not None
        size, interval = abs(alert.reference_value - alert.value), ""
        if half_width is not None:
            interval = f" [{_value(size - half_width)}, {_value(size + half_width)}]"
        what += f" is {_value(size)}{interval} {_SIDES[opens.direction]} the {_reference(alert)}"
    if streak > 1:
        what += f" in {streak:,} rows since row {alert.since_row:,}{_when(alert.since_time)}"
    return what


def _closing(alert: AlertRow, rule: AlertRule, streak: int) -> str:
    what, opens = f"{alert.column} {_value(alert.value)}", rule.opens
    if rule.until is not None:
        what += f" {rule.until.comparison} {_value(rule.until.number)}"
        what += f" in {streak:,} rows" if streak > 1 else ""
    elif isinstance(opens, Limit):
        what += f", no longer {opens.comparison} {_value(opens.number)}"
    elif isinstance(opens, Surely):
        what += f" fell to {_value(alert.limit)} or less"
    else:
        sure = "significantly " if opens.tested else ""
        far = f"by more than {_value(opens.by)} " if opens.by else ""
        what += f" is no longer {sure}{far}{_SIDES[opens.direction]} the {_reference(alert)}"
    return f"{what}; it was opened at row {alert.since_row:,}{_when(alert.since_time)}"


def _reference(alert: AlertRow) -> str:
    assert alert.reference_value is not None
    return f"{_value(alert.reference_value)} of row {alert.reference_row:,}"


def _when(time: int | None) -> str:
    return "" if time is None else f", {figure('time', time)}"


def _value(number: float) -> str:
    """Return a number with six digits: four decimals would show 0.79996 on the wrong side of 0.8."""
    return f"{number:.6g}"
