"""The input and the output of alert rules: rows with the columns that rules read, and records of alerts.

`WatchedRows` are rows in columns, reduced to the columns that the rules of a job read. A row takes 76 bytes
and 8 for each column, while a whole row takes 400.

Wire form, version 1: a frame (encoding/fields.py) with magic "RSAB"; payload: columns (u32 count, texts),
keys (u32 count; each a u8, its number of texts, and its texts), rows u32, key codes i32, integers i64 (nine a
row, `INTEGER_COLUMNS`), numbers f64. A text is a u32 length and UTF-8.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays import FloatArray, Int32Array, Int64Array
from ..encoding.fields import Reader, framed, packed_key, packed_text, read_key, unframed
from ..encoding.json import reading
from ..errors import CorruptBytesError, InputError
from ..events.times import NO_TIME
from ..rows.class_columns import MEANS_COLUMNS, as_numbers
from ..rows.class_rows import ClassRow, ClassRows
from ..rows.columns import COUNT_COLUMNS, INTEGER_COLUMNS, measure_of
from ..rows.differences import comparable_half_width
from ..rows.pairs import PairRow, pair_name
from ..rows.records import MeasureRow
from ..rows.roll_ups import RollUpRow
from ..rows.rows import Rows
from .columns import Kind, kind_of
from .rules import AlertRule, Change

MAGIC = b"RSAB"
VERSION = 1

_HALF_WIDTH = "_half_width"

Key = tuple[str, ...]
"""The names of a row: the model and the slice. For a model with a score of each class, also the class, or ""
for the row of all classes.
"""


class AlertRow(NamedTuple):
    """An alert that opens or closes at a row. Times are microseconds UTC.

    The identity of an alert is (rule, model, slice, class_, pane, row): a sink that receives an alert twice
    keeps one copy. In tables `class_` is the column `class`.

    rule             the rule in its canonical spelling
    state            "open" or "closed"
    model, slice     the model and the slice whose rows the rule watches; for a roll-up row `model` is the
                     group, and for a pair row a name such as "v2 against v1"
    class_           the class of the row; None for the row of a model with one score, and for the row of all
                     classes
    pane_start, pane_end
                     the Beam window of the rows, if the input is windowed
    row, time        the row at which the alert opened or closed; `time` is the row's `due`, or else its
                     `time`
    since_row        if the alert opens, the first row of its streak; if the alert closes, the row at which
                     the alert opened
    since_time       the time of `since_row`
    column, value    the column of the condition that decided, and its value in the row
    limit            the limit of the condition; for a change, the size that the rule asks for
    reference_row    for a change, the row with which the row was compared
    reference_value  for a change, the value in that row; for `surely drops`, the bound that the period gave,
                     on which the promise is conditional
    message          a sentence for people
    """

    rule: str
    state: str
    model: str
    slice: str
    class_: str | None
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


SomeRows = Rows | Sequence[MeasureRow] | Sequence[ClassRow] | Sequence[RollUpRow] | Sequence[PairRow]
"""The rows that rules watch: rows in columns, single rows, roll-up rows, or pair rows."""


class WatchedRows(NamedTuple):
    """Any number n of rows with the columns that rules read.

    columns    names of the columns of `numbers`, by `watched_columns`
    keys       the `Key`s that occur
    key_codes  int32[n], the index in `keys` of each row's key
    integers   int64[n, len(INTEGER_COLUMNS)]; NO_TIME stands for null
    numbers    float64[n, len(columns)]; NaN stands for null
    """

    columns: tuple[str, ...]
    keys: tuple[Key, ...]
    key_codes: Int32Array
    integers: Int64Array
    numbers: FloatArray

    @classmethod
    def of(cls, rows: SomeRows, columns: Sequence[str]) -> WatchedRows:
        """Make watched rows from rows of any form. O(cells).

        Raises InputError if the columns belong to another kind of rows.
        """
        if isinstance(rows, ClassRows):
            rows = rows.rows
        if isinstance(rows, Rows):
            return cls.of_rows(rows, columns)
        try:
            return cls.of_records(rows, columns)
        except AttributeError as missing:
            of = " of models with a score of each class" * (missing.name in MEANS_COLUMNS)
            raise InputError(
                f"a {type(missing.obj).__name__!r} has no {missing.name!r}, which a rule reads; give it "
                f"{kind_of(columns)}s{of}"
            ) from None

    @classmethod
    def of_rows(cls, rows: Rows, columns: Sequence[str]) -> WatchedRows:
        """Make watched rows from rows in columns. O(cells).

        Raises InputError if the columns belong to another kind of rows.
        """
        check_kind("row", columns)

        def number(name: str) -> FloatArray:
            if name in COUNT_COLUMNS:
                return rows.integer(name).astype(np.float64)
            if name == "drift":
                return np.where(rows.drift < 0, np.nan, rows.drift)
            if name not in MEANS_COLUMNS:
                if measure_of(name) and name not in rows.columns:
                    raise InputError(f"the rows have no {name!r}, which a rule reads; ask for the measure")
                return rows.number(name)
            if rows.classes is None and len(rows):
                raise InputError(f"rows of models with one score have no {name!r}, which a rule reads")
            return np.empty(0) if rows.classes is None else rows.classes.number(name)

        numbers = numbers_of(columns, number, len(rows))
        keys, codes = _keys_of(rows)
        return cls(tuple(columns), keys, codes, rows.integers, numbers)

    @classmethod
    def of_records(
        cls, records: Sequence[MeasureRow | ClassRow | RollUpRow | PairRow], columns: Sequence[str]
    ) -> WatchedRows:
        """Make watched rows from single rows, roll-up rows or pair rows. O(cells), in Python.

        Raises InputError if the columns belong to another kind of rows.
        """
        watched = [_watched(row) for row in records]
        for kind in {kind for kind, _ in watched}:
            check_kind(kind, columns)
        rows = [row for _, row in watched]
        keys: dict[Key, int] = {}
        codes = [keys.setdefault(_key_of(row), len(keys)) for row in rows]
        integers = [
            [NO_TIME if (value := getattr(row, name)) is None else value for name in INTEGER_COLUMNS]
            for row in rows
        ]

        def number(name: str) -> FloatArray:
            return as_numbers(getattr(row, name) for row in rows)

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
        """Return the rows that at least one rule covers. O(rows + keys * rules).

        Raises InputError if a rule needs classes and the rows have none.
        """
        for rule in rules:
            if (part := rule.needs_classes) and any(len(key) == 2 for key in self.keys):
                raise InputError(
                    f"rule {str(rule)!r}: only rows of models with a score of each class have {part!r}; "
                    "leave the rule out, or evaluate with class scores"
                )
        if not (all(rule.where for rule in rules) or any(map(_has_class, self.keys))):
            return self
        inside = np.array([any(rule.covers(*key) for rule in rules) for key in self.keys], np.bool_)
        return self if inside.all() else self.take(np.flatnonzero(inside[self.key_codes]))

    def in_order_of_time(self) -> WatchedRows:
        """Return the rows in order of `due`, or else of `time`.

        Rows of one time are in order of slice, then of class; rows without a time come first.
        """
        moments = np.where(self._times("due") == NO_TIME, self._times("time"), self._times("due"))
        places = {names: place for place, names in enumerate(sorted({key[1:] for key in self.keys}))}
        ranks = np.array([places[key[1:]] for key in self.keys])
        return self.take(np.lexsort((ranks[self.key_codes], moments)))

    def _times(self, name: str) -> Int64Array:
        return self.integers[:, INTEGER_COLUMNS.index(name)]

    def pack(self) -> bytes:
        """Return the wire form of the rows."""
        parts = [struct.pack("<I", len(self.columns)), *map(packed_text, self.columns)]
        parts.append(struct.pack("<I", len(self.keys)))
        parts += map(packed_key, self.keys)
        parts += [
            struct.pack("<I", len(self.key_codes)),
            self.key_codes.astype("<i4").tobytes(),
            self.integers.astype("<i8").tobytes(),
            self.numbers.astype("<f8").tobytes(),
        ]
        return framed(MAGIC, VERSION, b"".join(parts))

    @classmethod
    def unpack(cls, data: bytes) -> WatchedRows:
        """Read rows from their wire form. Raises a `WireError` for any other bytes."""
        reader = Reader(unframed(data, MAGIC, VERSION, "a record of watched rows"))
        with reading("a record of watched rows"):
            columns = tuple(reader.text() for _ in range(reader.number("<I")))
            keys = tuple(read_key(reader) for _ in range(reader.number("<I")))
            n = reader.number("<I")
            codes = reader.array("<i4", n)
            integers = reader.array("<i8", n * len(INTEGER_COLUMNS)).reshape(n, len(INTEGER_COLUMNS))
            numbers = reader.array("<f8", n * len(columns)).reshape(n, len(columns))
            reader.end()
        if n and not 0 <= codes.min() <= codes.max() < len(keys):
            raise CorruptBytesError(f"a record of watched rows has rows of more keys than its {len(keys)}")
        return cls(columns, keys, codes, integers, numbers)


def check_kind(kind: Kind, columns: Sequence[str]) -> None:
    """Raise InputError if the columns that rules name belong to another kind of rows."""
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


def _has_class(key: Key) -> bool:
    return len(key) > 2


def _key_of(row: Any) -> Key:
    of_class: tuple[str, ...] = ()
    if isinstance(row, ClassRow):
        of_class = (row.class_ or "",)
    elif isinstance(row, _RollUp) and row.roll_up.class_ is not None:
        # the roll-up of all classes has the key of a roll-up of models with one score
        of_class = (row.roll_up.class_,)
    return (row.model, row.slice, *of_class)


def _keys_of(rows: Rows) -> tuple[tuple[Key, ...], Int32Array]:
    """Return the keys of rows, and the place of each row's key."""
    classes = rows.classes
    if classes is None:
        return rows.keys, rows.key_codes
    count = len(classes.names) + 1
    used, codes = np.unique(rows.key_codes.astype(np.int64) * count + classes.codes + 1, return_inverse=True)
    names = ("", *classes.names)
    keys = tuple((*rows.keys[code // count], names[code % count]) for code in used.tolist())
    return keys, codes.astype(np.int32)


def watched_columns(rules: Iterable[AlertRule]) -> tuple[str, ...]:
    """Return the names of the columns that rules read, each once.

    >>> from .grammar import parse_alert
    >>> watched_columns([parse_alert("auc drops against 7d until h > 0.5"), parse_alert("auc < 0.6")])
    ('auc', 'h', 'auc_half_width')
    """
    rules = tuple(rules)
    names = [name for rule in rules for name in rule.columns]
    names += [half for rule in rules if (half := half_width_of(rule)) is not None]
    return tuple(dict.fromkeys(names))


def half_width_of(rule: AlertRule) -> str | None:
    """Return the name of the column of `WatchedRows` with half the width of the interval of a rule's value.

    Rows of measures lack such a column. The column is NaN where the value must not be compared. None if the
    rule compares no interval.
    """
    if isinstance(rule.opens, Change) and rule.opens.tested:
        return f"{rule.opens.column}{_HALF_WIDTH}"
    return None


def numbers_of(columns: Sequence[str], number: Callable[[str], FloatArray], n: int) -> FloatArray:
    """Return float64[n, len(columns)]; `number` returns a column of the rows by name."""
    numbers = np.empty((n, len(columns)))
    for place, name in enumerate(columns):
        if name.endswith(_HALF_WIDTH):
            auc = name.removesuffix(_HALF_WIDTH)
            mean, low, high = (number(end) for end in (auc, f"{auc}_low", f"{auc}_high"))
            if auc == "auc":
                rarer = np.minimum(number("positives"), number("negatives"))
            else:  # a mean over other classes is another figure; no row says how many events each class has
                rarer = np.where(number("classes_absent") > 0, 0.0, np.nan)
            numbers[:, place] = comparable_half_width(mean, low, high, rarer)
        else:
            numbers[:, place] = number(name)
    return numbers
